"""Which changes are refused whatever the bytes are: paths, and names that are taken or look alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from folders import everything, in_memory, index_of, memory, on_disk, refuse, visible

from mdmemory.errors import Conflict, InvalidPath, MdmemoryError, UnsafeFile
from mdmemory.files.changes import Change, Create, Delete, Rename
from mdmemory.folder.memory_folder import MemoryFolder

A, B = memory("Alpha", "the first"), memory("Beta", "the second")


@pytest.mark.parametrize(
    "path",
    [
        *("../x.md", "/etc/passwd", "memory-evil/../../x.md", "/memoriesXYZ/a.md", "a\0.md", "a\n.md", "a\x1b.md", "-a.md"),
        *(
            "x" * 300 + ".md",
            "a//b.md",
            ".git/config",
            ".mdmemory/log.jsonl",
            "",
            ".",
            "~/a.md",
            "a\\b.md",
            "journal/x.md",
            "Journal/x.md",
        ),
    ],
)
@pytest.mark.parametrize("kind", [Create, Delete, Rename])
async def test_a_path_that_no_memory_may_have(kind: type, path: str, tmp_path: Path) -> None:
    """N1: whatever the change, such a path is refused with a message that shows no host path, and nothing is written."""
    folder = on_disk(tmp_path, {"a.md": A})
    if kind is Rename:
        await refuse(tmp_path, folder, Rename("a.md", path), InvalidPath)
    else:
        await refuse(tmp_path, folder, Create(path, A) if kind is Create else Delete(path), InvalidPath)


@pytest.mark.parametrize("path", ["report..final.md", "with spaces.md", "大明科技.md", "🚢.md", "deep/er/est.md"])
async def test_unusual_paths_that_are_fine(path: str, tmp_path: Path) -> None:
    """N2: names that people give are accepted, and their index line leads to the file."""
    folder = on_disk(tmp_path)
    await folder.apply([Create(path, A)], "agent:a", "test")
    assert visible(tmp_path)[path] == A
    assert folder.listed.keys() == {path} and "[Alpha](" in index_of(tmp_path)
    await folder.apply([Delete(path)], "agent:a", "test")
    assert visible(tmp_path) == {"MEMORY.md": b""}


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (Rename("notes", "notes/old"), InvalidPath),
        (Rename("notes", "notes"), InvalidPath),
        (Rename("notes/a.md", "notes/a.md"), InvalidPath),
        (Rename("notes", "other"), UnsafeFile),
        (Rename("notes", "b.md"), Conflict),
        (Rename("notes/a.md", "b.md"), Conflict),
        (Rename("notes/a.md", "notes/a.txt"), InvalidPath),
        (Rename("picture.png", "picture.md"), InvalidPath),
        (Rename("gone.md", "b2.md"), Conflict),
        (Rename("MEMORY.md", "b2.md"), InvalidPath),
        (Rename("notes/a.md", "MEMORY.md"), InvalidPath),
        (Rename("notes/a.md", "memory.md"), InvalidPath),
        (Delete("MEMORY.md"), InvalidPath),
        (Delete("picture.png"), InvalidPath),
        (Delete("notes"), InvalidPath),
        (Delete("gone.md"), Conflict),
        (Create("b.md/c.md", A), InvalidPath),
        (Create("picture.png/c.md", A), InvalidPath),
        (Create("picture.png", A), InvalidPath),
        (Create("memory.md", A), InvalidPath),
        (Rename("b.md", "notes/a.md/b.md"), InvalidPath),
    ],
    ids=str,
)
async def test_changes_of_names_that_are_refused(change: Change, error: type[MdmemoryError], tmp_path: Path) -> None:
    """N5: a move into itself, of the root or the index, onto what is there, or below a file: refused, nothing left behind."""
    files = {"notes/a.md": A, "b.md": B, "picture.png": "PNG", "other/c.md": A, "MEMORY.md": "# Mine\n"}
    await refuse(tmp_path, on_disk(tmp_path, files), change, error)


@pytest.mark.parametrize(
    ("there", "new"),
    [
        ("site-roadmap.md", "Site Roadmap.md"),
        ("caf\u00e9.md", "cafe\u0301.md"),
        ("A.md", "a.md"),
        ("x_y.md", "x-y.md"),
        ("sub/A.md", "Sub/a.md"),
        ("MEMORY.md", "Memory.md"),
    ],
)
async def test_names_that_look_alike(there: str, new: str, tmp_path: Path) -> None:
    """P2: a name that is easily taken for an existing one is refused at create and at rename, with that name."""
    folder = on_disk(tmp_path, {there: A, "other.md": B})
    assert there in await refuse(tmp_path, folder, Create(new, B), InvalidPath)
    assert there in await refuse(tmp_path, folder, Rename("other.md", new), InvalidPath)
    if there != "MEMORY.md":
        await folder.apply([Rename(there, new)], "person", "its own new name may look like its old one")
        assert new in visible(tmp_path) and there not in visible(tmp_path)


async def test_names_that_look_alike_within_one_commit() -> None:
    """P2: two files made by one commit, or by two processes, may not look alike either."""
    folder = in_memory()
    with pytest.raises(InvalidPath, match="would be taken for"):
        await folder.apply([Create("A.md", A), Create("a.md", B)], "person", "test")
    other = MemoryFolder(folder.backend)
    await other.refresh()
    await folder.apply([Create("A.md", A)], "person", "test")
    with pytest.raises(InvalidPath, match=r"would be taken for A\.md"):
        await other.apply([Create("a.md", B)], "person", "test")


async def test_a_twin_that_was_there_is_still_known_when_the_other_goes(tmp_path: Path) -> None:
    """P2: of two look-alikes that people made, deleting one does not hide the other."""
    folder = on_disk(tmp_path, {"A.md": A, "a.md": B})
    await folder.apply([Delete("a.md")], "person", "test")
    await refuse(tmp_path, folder, Create("a.md", B), InvalidPath)


async def test_one_commit_touches_a_file_once(tmp_path: Path) -> None:
    """Two changes of one commit to one file are refused, also where one is a move of it."""
    folder = on_disk(tmp_path, {"n/a.md": A})
    commits: tuple[list[Change], ...] = (
        [Delete("n/a.md"), Create("n/a.md", B)],
        [Rename("n", "m"), Delete("n/a.md")],
        [Rename("n", "m"), Rename("n/a.md", "x.md")],
        [Rename("n", "m"), Create("m/b.md", B)],
    )
    for changes in commits:
        before = everything(tmp_path)
        with pytest.raises((InvalidPath, Conflict)):
            await folder.apply(changes, "person", "test")
        assert {path: sha for path, sha in everything(tmp_path).items() if not path.startswith(".")} == before
