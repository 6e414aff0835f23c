"""What is imported from may be anything: archives that lie, links, too much; nothing of it is unpacked or followed."""

from __future__ import annotations

import os
import stat
import zipfile
from pathlib import Path

import pytest
from command import WITHOUT_RIGHTS, mdmemory, write
from exports import zipped

from mdmemory.care.importers import source
from mdmemory.care.importers.source import read_source
from mdmemory.errors import InvalidArguments


def left(read: source.Source) -> dict[str, str]:
    """Why each path was not read."""
    return {each.where: each.reason for each in read.left}


def is_json(path: str) -> bool:
    """Whether a path is wanted here."""
    return path.endswith(".json")


def test_a_file_a_folder_and_an_archive_give_the_same(tmp_path: Path) -> None:
    """A lone file is read whatever its name; of folders and archives what is wanted is, and the rest is named."""
    files = {"b/two.json": b"2", "one.json": b"1", "image.png": b"\x89"}
    for path, data in files.items():
        write(tmp_path / "folder" / path, data)
    write(tmp_path / "all.zip", zipped(files))
    for name in ("folder", "all.zip"):
        read = read_source(tmp_path / name, is_json)
        assert read.files == {"b/two.json": b"2", "one.json": b"1"}
        assert left(read) == {"image.png": "it is of a kind that is not imported"}
    assert read_source(tmp_path / "folder/image.png", is_json).files == {"image.png": b"\x89"}


def test_links_and_hidden_folders_are_not_looked_into(tmp_path: Path) -> None:
    """A link to a file, to a folder or to itself is named and not followed, and so is what is hidden or no file."""
    write(tmp_path / "outside/secret.json", "1")
    root = tmp_path / "root"
    write(root / ".git/x.json", "1")
    os.symlink(tmp_path / "outside", root / "dir")
    os.symlink(tmp_path / "outside/secret.json", root / "file.json")
    os.symlink(root, root / "loop")
    os.mkfifo(root / "pipe.json")
    read = read_source(root, is_json)
    assert read.files == {}
    assert left(read) == {
        ".git": "it is hidden",
        "dir": "it is a link, which is not followed",
        "file.json": "it is a link, which is not followed",
        "loop": "it is a link, which is not followed",
        "pipe.json": "it is no file",
    }


def test_names_in_an_archive_lead_nowhere(tmp_path: Path) -> None:
    """Paths out of the archive, absolute ones, links, names that stand twice and encrypted files are named with their reason."""
    link = zipfile.ZipInfo("link.json")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "evil.zip", "w") as made:
        for name in ("../up.json", "/abs.json", "a\\b.json", "C:/x.json", "fine.json"):
            made.writestr(name, "1")
        made.writestr(link, "/etc/passwd")
        with pytest.warns(UserWarning, match="Duplicate"):
            made.writestr("fine.json", "2")
    read = read_source(tmp_path / "evil.zip", is_json)
    assert read.files.keys() == {"fine.json"}
    assert len(read.left) == 6 and "twice" in left(read)["fine.json"] and ".." in left(read)["../up.json"]
    assert os.listdir(tmp_path) == ["evil.zip"]


def test_an_archive_that_swells_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A zip bomb is read up to the limit and no further, by what comes out of it and not by what it says; so are many files."""
    monkeypatch.setattr(source, "MAX_BYTES", 1_000_000)
    write(tmp_path / "bomb.zip", zipped({f"{number}.json": bytes(400_000) for number in range(3)}))
    assert (tmp_path / "bomb.zip").stat().st_size < 5_000
    with pytest.raises(InvalidArguments, match="holds more than"):
        read_source(tmp_path / "bomb.zip", is_json)
    monkeypatch.setattr(source, "MAX_FILES", 2)
    with pytest.raises(InvalidArguments, match="more than 2 files"):
        read_source(tmp_path / "bomb.zip", lambda _: False)


def test_a_damaged_archive_is_an_error_and_a_damaged_file_in_it_a_line(tmp_path: Path) -> None:
    """What can't be unpacked is named, and the rest of the archive comes."""
    data = bytearray(zipped({"bad.json": b"0123456789" * 50, "good.json": b"[]"}))
    data[30 + len("bad.json")] ^= 0xFF  # the first byte of its data
    write(tmp_path / "damaged.zip", bytes(data))
    read = read_source(tmp_path / "damaged.zip", is_json)
    assert read.files == {"good.json": b"[]"} and left(read)["bad.json"].startswith("it can't be read")
    data[data.index(b"PK\x01\x02")] = 0  # where the list of its files begins
    write(tmp_path / "headless.zip", bytes(data))
    with pytest.raises(InvalidArguments, match="can't be read"):
        read_source(tmp_path / "headless.zip", is_json)


def test_an_encrypted_file_is_named(tmp_path: Path) -> None:
    """Nobody is asked for a password."""
    data = bytearray(zipped({"locked.json": b"1"}))
    for head, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(head) + at] |= 1
    write(tmp_path / "locked.zip", bytes(data))
    assert left(read_source(tmp_path / "locked.zip", is_json)) == {"locked.json": "it is encrypted"}


def test_what_is_not_there_is_said_without_a_path_of_the_machine(tmp_path: Path) -> None:
    """The message names the file as it is called, and no folder above it."""
    with pytest.raises(InvalidArguments) as caught:
        read_source(tmp_path / "gone.zip", is_json)
    assert "gone.zip" in str(caught.value) and str(tmp_path) not in str(caught.value)


def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    """One file without rights does not stop the others."""
    write(tmp_path / "notes/a.md", "# A\n")
    write(tmp_path / "notes/b.md", "# B\n")
    (tmp_path / "notes/a.md").chmod(0)
    done = mdmemory("import", "markdown", "notes", cwd=tmp_path, prefix=WITHOUT_RIGHTS)
    assert done.returncode == 0 and "Permission denied" in done.stdout and "b.md" in done.stdout
    assert not (tmp_path / "memory/a.md").exists()
