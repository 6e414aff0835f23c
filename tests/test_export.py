"""Exports: the same folder gives the same bytes, nothing in a file can break out of it, and what is not in it is said."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from pathlib import Path

import pytest
from command import mdmemory, write
from folders import memory, on_disk, visible
from hypothesis import given
from hypothesis import strategies as st

from mdmemory import Create
from mdmemory.backends.memory import MemoryBackend
from mdmemory.backends.protocol import etag_of
from mdmemory.care.export import Form, export
from mdmemory.care.importers.markdown import plan_markdown
from mdmemory.care.importing import import_plan
from mdmemory.files.journal import new_message
from mdmemory.folder.memory_folder import MemoryFolder

CRLF = b"\xef\xbb\xbf---\r\nname: Home\r\ndescription: city\r\ntype: user\r\n---\r\n\r\nLund."
FILES = {
    "user/home.md": CRLF,
    "notes.md": b"# Notes\n\n````\ncode\n````\n",
    "broken.md": b"---\nname: a: b\n---\n",
    "latin.md": b"caf\xe9",
    "pictures/tea.png": b"\x89PNG",
    ".obsidian/app.json": b"{}",
}
FORMS: tuple[Form, ...] = ("zip", "markdown", "json")


async def with_a_conversation(root: Path) -> MemoryFolder:
    """The files, an index and a session of two messages."""
    folder = on_disk(root, FILES)
    await folder.apply([Create("added.md", memory("Added"))], "person", "test")
    await folder.journals.append("monday", [new_message({"role": "user", "content": "Hi", "id": "msg_7"}, "m1")])
    return folder


@pytest.mark.parametrize("form", FORMS)
async def test_the_same_folder_gives_the_same_bytes(tmp_path: Path, form: Form) -> None:
    """Two exports by two processes' worth of folders are equal, and change nothing."""
    folder = await with_a_conversation(tmp_path)
    before = visible(tmp_path)
    first = await export(folder, form, journal=True)
    assert (await export(on_disk(tmp_path), form, journal=True)).data == first.data and visible(tmp_path) == before


async def test_a_zip_archive_unpacks_to_the_same_bytes(tmp_path: Path) -> None:
    """Every file that people see is in it as it is, the conversations when asked for, and nothing hidden."""
    root = tmp_path / "memory"
    folder = await with_a_conversation(root)
    for journal in (True, False):
        with zipfile.ZipFile(io.BytesIO((await export(folder, "zip", journal=journal)).data)) as archive:
            archive.extractall(tmp_path / f"out{journal}")
        seen = {path: data for path, data in visible(root).items() if journal or not path.startswith("journal/")}
        assert visible(tmp_path / f"out{journal}") == seen and "MEMORY.md" in seen
    assert not list(tmp_path.glob("out*/.*"))


async def test_an_archive_can_be_imported_again(tmp_path: Path) -> None:
    """What came out goes into another folder byte for byte; what no memory can read is named."""
    folder = await with_a_conversation(tmp_path / "one")
    with zipfile.ZipFile(io.BytesIO((await export(folder, "zip")).data)) as archive:
        files = {name: archive.read(name) for name in archive.namelist() if name.endswith(".md")}
    other = on_disk(tmp_path / "two")
    imported = await import_plan(other, "markdown", plan_markdown(files))
    assert {each.where for each in imported.left} == {"broken.md", "latin.md"}
    assert visible(tmp_path / "two") == {path: data for path, data in files.items() if path not in ("broken.md", "latin.md")}


async def test_json_has_headers_bodies_and_etags(tmp_path: Path) -> None:
    """What docs/import-and-export.md says of each file is there; a broken one has its fault, a conversation its messages."""
    folder = await with_a_conversation(tmp_path)
    whole = json.loads((await export(folder, "json", journal=True)).data)
    files = {file["path"]: file for file in whole["files"]}
    assert whole["format"] == "mdmemory-export/1" and files.keys() == {"added.md", "broken.md", "notes.md", "user/home.md"}
    home = files["user/home.md"]
    assert (home["name"], home["type"], home["body"], home["etag"]) == ("Home", "user", "\r\nLund.", etag_of(CRLF))
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", home["modified"])
    assert "line 2" in files["broken.md"]["problem"] and files["broken.md"]["text"] == FILES["broken.md"].decode()
    assert whole["index"] == visible(tmp_path)["MEMORY.md"].decode()
    (conversation,) = whole["conversations"]
    assert conversation["session"] == "monday" and conversation["messages"][0]["content"] == "Hi"
    assert (conversation["messages"][0]["id"], conversation["messages"][0]["own"]) == ("m1", {"id": "msg_7"}), "as `source` has it"
    assert whole["skipped"].keys() == {"latin.md"}
    assert json.loads((await export(folder, "json")).data)["conversations"] == []


def unfenced(document: str) -> dict[str, str]:
    """The files in a Markdown export, read as CommonMark reads fences."""
    found, path, fence, lines = dict[str, str](), "", "", list[str]()
    for line in document.split("\n"):
        if fence and re.fullmatch(rf"`{{{len(fence)},}}[ \t]*", line):
            found[path], fence = "\n".join([*lines, ""]), ""
        elif fence:
            lines.append(line)
        elif opening := re.fullmatch(r"(`{3,})markdown", line):
            fence, lines = opening[1], []
        elif line.startswith("## "):
            path = line[3:]
    assert fence == ""
    return found


@given(texts=st.dictionaries(st.sampled_from(["a.md", "b/c.md", "d.md"]), st.text("`~ \n#ab-", max_size=60), min_size=1))
async def test_no_text_breaks_out_of_the_markdown_document(texts: dict[str, str]) -> None:
    """Whatever fences and headings a file has, the document gives every file back, the index first."""
    folder = MemoryFolder(MemoryBackend())
    await folder.refresh()
    texts = {path: f"x{text}" for path, text in texts.items()}
    await folder.apply([Create(path, text.encode()) for path, text in texts.items()], "person", "test")
    document = (await export(folder, "markdown")).data.decode()
    found = unfenced(document)
    index = found.pop("MEMORY.md")
    assert found == {path: text if text.endswith("\n") else f"{text}\n" for path, text in texts.items()}
    assert index == await folder.index_file() and document.startswith("# Memory\n\n## MEMORY.md\n")


async def test_links_and_what_cannot_be_read_are_named(tmp_path: Path) -> None:
    """A link is not followed, and the export says so."""
    folder = on_disk(tmp_path, {"a.md": "# A\n"})
    os.symlink("/etc/passwd", tmp_path / "link.md")
    done = await export(folder, "zip")
    assert "link.md" in done.skipped and b"link.md" not in done.data


def test_the_command_writes_outside_of_the_memory_and_over_nothing(tmp_path: Path) -> None:
    """OUT inside the folder, by a link too, is refused; a file that is there needs --force; - is the standard output."""
    write(tmp_path / "memory/a.md", "# A\n")
    (tmp_path / "door").symlink_to(tmp_path / "memory")
    for out in ("memory/x.zip", "door/x.zip", "memory/../memory/sub.zip"):
        done = mdmemory("export", "--as", "zip", out, cwd=tmp_path)
        assert done.returncode == 1 and "inside the memory" in done.stderr
    assert sorted(os.listdir(tmp_path / "memory")) == ["a.md"]
    assert mdmemory("export", "--as", "zip", "nowhere/x.zip", cwd=tmp_path).returncode == 1
    assert json.loads(mdmemory("export", "--as", "zip", "x.zip", "--json", cwd=tmp_path).stdout)["written"] == "x.zip"
    first = (tmp_path / "x.zip").read_bytes()
    write(tmp_path / "memory/b.md", "# B\n")
    done = mdmemory("export", "--as", "zip", "x.zip", cwd=tmp_path)
    assert done.returncode == 1 and "--force" in done.stderr and (tmp_path / "x.zip").read_bytes() == first
    assert mdmemory("export", "--as", "zip", "x.zip", "--force", cwd=tmp_path).returncode == 0
    assert (tmp_path / "x.zip").read_bytes() != first
    assert json.loads(mdmemory("export", "--as", "json", "-", cwd=tmp_path).stdout)["files"][0]["path"] == "a.md"
    assert not list(tmp_path.glob(".*.part"))
