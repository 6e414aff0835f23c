"""What the system tells of changes: nothing is missed, a quiet folder costs nothing, and every doubt ends in a scan."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from folders import memory
from watching import Pair

from mdmemory.backends.local import LocalBackend
from mdmemory.files.changes import Create

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every look is a scan")


async def test_a_quiet_folder_costs_nothing(pair: Pair, tmp_path: Path) -> None:
    """Two looks with nothing changed make no scan and no read, and leave no file; one change makes one read."""
    folder, backend = pair
    assert await folder.refresh() == await folder.refresh() == frozenset() and backend.calls == []
    assert not list((tmp_path / "memory/.mdmemory").glob("watch-*"))
    (tmp_path / "memory/a.md").write_bytes(memory("A2"))
    assert await folder.refresh() == {"a.md"} and backend.calls == ["read"]
    assert [match.path for match in await folder.search("A2")] == ["a.md"]


async def test_every_fresh_edit_is_seen(pair: Pair, tmp_path: Path) -> None:
    """Of 200 saves, each looked for at once, all 200 are seen."""
    folder, backend = pair
    seen = 0
    for number in range(200):
        (tmp_path / "memory/sub/b.md").write_bytes(memory(f"B{number}"))
        await folder.refresh()
        header = folder.files["sub/b.md"].header
        seen += header is not None and header.name == f"B{number}"
    assert seen == 200 and backend.calls.count("scan") < 20


async def test_reading_and_saving_of_our_own_cause_nothing(pair: Pair, tmp_path: Path) -> None:
    """W3: looking, reading and searching make no change that is noticed; a save of ours is looked at once and then quiet."""
    folder, backend = pair
    await LocalBackend(tmp_path / "memory").scan()
    (tmp_path / "memory/a.md").read_bytes()
    await folder.search("A")
    assert await folder.refresh() == frozenset() and backend.calls == []
    await folder.apply([Create("c.md", memory("C"))], "person", "test")
    assert await folder.refresh() == frozenset()
    backend.calls.clear()
    assert await folder.refresh() == frozenset() and backend.calls == []


def replace(root: Path) -> None:
    """Save as editors do: beside it, then over it."""
    (root / "a.md~").write_bytes(memory("A2"))
    os.replace(root / "a.md~", root / "a.md")


def new_folder(root: Path) -> None:
    """Make a folder in a folder, with a file."""
    (root / "x/y").mkdir(parents=True)
    (root / "x/y/c.md").write_bytes(memory("C"))


def moved_in(root: Path) -> None:
    """Move a folder in from elsewhere."""
    new_folder(root.parent / "elsewhere")
    os.rename(root.parent / "elsewhere/x", root / "x")


def many(root: Path) -> None:
    """What a git checkout does."""
    for number in range(1_000):
        (root / f"n{number}.md").write_bytes(memory(f"N{number}"))


CHANGES: list[tuple[Callable[[Path], object], set[str]]] = [
    (replace, {"a.md"}),
    (new_folder, {"x/y/c.md"}),
    (moved_in, {"x/y/c.md"}),
    (lambda root: os.rename(root / "sub", root / "other"), {"sub/b.md", "other/b.md"}),
    (lambda root: os.rename(root / "sub", root.parent / "out"), {"sub/b.md"}),
    (lambda root: os.rename(root / "a.md", root.parent / "a.md"), {"a.md"}),
    (lambda root: os.rename(root / "a.md", root / "sub/a.md"), {"a.md", "sub/a.md"}),
    (lambda root: os.unlink(root / "a.md"), {"a.md"}),
    (lambda root: shutil.rmtree(root / "sub"), {"sub/b.md"}),
    (many, {f"n{number}.md" for number in range(1_000)}),
]


@pytest.mark.parametrize(("change", "paths"), CHANGES)
async def test_what_people_do_is_seen_by_the_next_look(
    pair: Pair, tmp_path: Path, change: Callable[[Path], object], paths: set[str]
) -> None:
    """W2: saves by rename, new, moved and removed folders and a thousand files at once are seen, and what comes after them too."""
    folder, backend = pair
    root = tmp_path / "memory"
    change(root)
    assert await folder.refresh() == paths
    assert set(folder.files) == {path.relative_to(root).as_posix() for path in root.rglob("*.md") if path.name != "MEMORY.md"}
    last = max((path for path in paths if (root / path).exists()), default="new.md")
    (root / last).write_bytes(memory("Once more"))
    assert await folder.refresh() == {last}
    backend.calls.clear()
    assert await folder.refresh() == frozenset() and backend.calls == []
