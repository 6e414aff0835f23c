"""What happens to an edit when the file, meanwhile, is another."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from children import end, start
from folders import everything, in_memory, index_of, log_of, memory, on_disk, visible

from mdmemory.backends.protocol import etag_of
from mdmemory.errors import Conflict, InvalidMemoryFile
from mdmemory.files.changes import Change, Create, Delete, Rename, Replace
from mdmemory.folder.memory_folder import MemoryFolder

LINES = memory("List", "forty lines", body="\n".join(f"line {n}" for n in range(40)))


def edited(number: int) -> Change:
    """An edit of one line, based on the file as it was first."""
    return Replace("list.md", LINES.replace(b"line %d\n" % number, b"line %d, edited\n" % number), etag_of(LINES), LINES)


def kept(data: bytes) -> int:
    """How many of the lines are edited."""
    return sum(b"line %d, edited\n" % n in data for n in range(40))


async def test_forty_edits_at_once(tmp_path: Path) -> None:
    """E1: of 40 parallel edits of distinct lines, 40 are kept."""
    folder = on_disk(tmp_path, {"list.md": LINES})
    await asyncio.gather(*(folder.apply([edited(n)], f"agent:{n}", "Edit") for n in range(40)))
    assert kept(visible(tmp_path)["list.md"]) == 40


def test_forty_edits_in_eight_processes(tmp_path: Path) -> None:
    """E1: of 40 edits by eight processes, 40 are kept, each is logged once and none as made outside; the index has one line."""

    def work(first: int) -> None:
        async def edit() -> None:
            folder = on_disk(tmp_path)
            await folder.refresh()
            await asyncio.gather(*(folder.apply([edited(n)], f"agent:{n}", "Edit") for n in range(first, first + 5)))
            await folder.refresh()

        asyncio.run(edit())

    on_disk(tmp_path, {"list.md": LINES})
    children = [start(lambda first=first: work(first)) for first in range(0, 40, 5)]  # type: ignore[misc]  # each its own
    assert [end(child) for child in children] == [0] * 8
    assert kept(visible(tmp_path)["list.md"]) == 40
    authors = [entry["author"] for entry in log_of(tmp_path) if "author" in entry]
    assert sorted(authors) == sorted(f"agent:{n}" for n in range(40))
    assert index_of(tmp_path) == "- [List](list.md) — forty lines\n"


async def test_a_file_that_grew_meanwhile(tmp_path: Path) -> None:
    """E2: a stale replace of a file that grew from 1,361 to 8,167 bytes outside conflicts, with its text; nothing is lost."""
    old = memory("Notes", body="x" * 1400)[:1360] + b"\n"
    new = old + b"a line that a person wrote\n" * 252
    new += b"." * (8167 - len(new))
    assert (len(old), len(new)) == (1361, 8167)
    folder = on_disk(tmp_path, {"notes.md": old})
    await folder.refresh()
    (tmp_path / "notes.md").write_bytes(new)
    ours = old.replace(b"what it says", b"what it says to me")
    with pytest.raises(Conflict) as caught:
        await folder.apply([Replace("notes.md", ours, etag_of(old))], "agent:a", "Write")
    assert (caught.value.current, caught.value.etag) == (new.decode(), etag_of(new))
    assert visible(tmp_path) == {"notes.md": new}
    await folder.apply([Replace("notes.md", ours, etag_of(old), old)], "agent:a", "Edit")
    assert visible(tmp_path)["notes.md"] == new.replace(b"what it says", b"what it says to me")


async def test_a_human_edit_of_the_same_size_and_time(tmp_path: Path) -> None:
    """E3: an edit outside that leaves size and modification time as they were is seen by its content."""
    folder = on_disk(tmp_path, {"a.md": memory("A", body="one")})
    await folder.refresh()
    stat = (tmp_path / "a.md").stat()
    (tmp_path / "a.md").write_bytes(memory("A", body="two"))
    os.utime(tmp_path / "a.md", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    with pytest.raises(Conflict):
        await folder.apply([Replace("a.md", memory("A", body="mine"), etag_of(memory("A", body="one")))], "agent:a", "Write")
    assert await folder.refresh() == {"a.md"}


async def test_disjoint_edits_are_merged(tmp_path: Path) -> None:
    """E4: a person's edit and an agent's of other lines are both kept, and the answer says that they were merged."""
    folder = on_disk(tmp_path, {"list.md": LINES})
    await folder.refresh()
    (tmp_path / "list.md").write_bytes(LINES.replace(b"line 3\n", b"line 3 by a person\n"))
    applied = await folder.apply([edited(30)], "agent:a", "Edit")
    after = visible(tmp_path)["list.md"]
    assert b"line 3 by a person\n" in after and b"line 30, edited\n" in after and len(after.splitlines()) == len(LINES.splitlines())
    assert applied.files[0].merged and applied.files[0].after == after


async def test_overlapping_edits_conflict(tmp_path: Path) -> None:
    """E4: two edits of the same line are a conflict that carries the current text, and the person's stays."""
    folder = on_disk(tmp_path, {"list.md": LINES})
    theirs = LINES.replace(b"line 3\n", b"line 3 by a person\n")
    await folder.refresh()
    (tmp_path / "list.md").write_bytes(theirs)
    with pytest.raises(Conflict) as caught:
        await folder.apply([edited(3)], "agent:a", "Edit")
    assert caught.value.current == theirs.decode() and visible(tmp_path) == {"list.md": theirs}


async def test_a_merge_that_breaks_the_frontmatter_is_refused(tmp_path: Path) -> None:
    """E4: two edits that are each in order, but together are not a memory file, are not merged."""
    base = b"---\nname: A\ndescription: d\ntype: user\n---\nx\n"
    folder = on_disk(tmp_path, {"a.md": base})
    theirs = base.replace(b"name: A\n", b"name: A\ntags: x\n")
    ours = base.replace(b"type: user\n", b"type: user\ntags: y\n")
    (tmp_path / "a.md").write_bytes(theirs)
    with pytest.raises(InvalidMemoryFile, match="tags"):
        await folder.apply([Replace("a.md", ours, etag_of(base), base)], "agent:a", "Edit")
    assert visible(tmp_path) == {"a.md": theirs}


async def test_a_retry_of_what_happened(tmp_path: Path) -> None:
    """E7: a create or replace whose bytes are there already succeeds, writes nothing and logs nothing."""
    folder = on_disk(tmp_path)
    old, new = memory("A"), memory("A", body="new")
    await folder.apply([Create("a.md", old)], "agent:a", "Write")
    await folder.apply([Replace("a.md", new, etag_of(old))], "agent:a", "Edit")
    before = everything(tmp_path)
    for change in (Create("a.md", new), Replace("a.md", new, etag_of(old)), Replace("a.md", new, etag_of(old), old)):
        applied = await folder.apply([change], "agent:a", "Write")
        assert applied.commit_id is None and applied.files[0].after == new
    assert everything(tmp_path) == before


async def test_a_delete_of_what_changed() -> None:
    """A delete that names what it was based on conflicts when the file is another by now; one that names nothing deletes it."""
    folder = in_memory()
    await folder.apply([Create("a.md", memory("A"))], "person", "test")
    with pytest.raises(Conflict):
        await folder.apply([Delete("a.md", etag_of(b"other"))], "agent:a", "Delete")
    assert "a.md" in folder.files
    await folder.apply([Delete("a.md")], "agent:a", "Delete")
    assert not folder.files


async def test_all_or_none_of_a_commit(tmp_path: Path) -> None:
    """One change that conflicts stops the whole commit."""
    folder = on_disk(tmp_path, {"a.md": memory("A"), "b.md": memory("B")})
    before = everything(tmp_path)
    stale = Replace("b.md", memory("B", body="mine"), etag_of(b"other"))
    first: tuple[Change, ...] = (Delete("a.md"), Create("c.md", memory("C")), Rename("a.md", "z.md"))
    for change in first:
        with pytest.raises(Conflict):
            await folder.apply([change, stale], "person", "test")
    assert everything(tmp_path) == before


async def test_a_commit_that_came_between(tmp_path: Path) -> None:
    """Two folders on one place, as two processes are: each merges with what the other wrote since, and knows it from the log."""
    first, second = on_disk(tmp_path, {"list.md": LINES}), on_disk(tmp_path)
    await first.refresh()
    await second.refresh()
    await first.apply([edited(1), Create("new.md", memory("New"))], "agent:1", "Edit")
    await second.apply([edited(2)], "agent:2", "Edit")
    assert kept(visible(tmp_path)["list.md"]) == 2
    assert set(second.files) == {"list.md", "new.md"} and second.listed["new.md"].name == "New"


async def test_a_save_gives_up_at_once_where_waiting_does_not_help(tmp_path: Path) -> None:
    """A conflict that another try can't solve is raised at once, not after a minute of tries."""
    folder = on_disk(tmp_path, {"notes/a.md": LINES, "taken": "a file without .md"})
    with pytest.raises(Conflict):
        await asyncio.wait_for(folder.apply([Rename("notes", "taken")], "person", "test"), 5)


async def test_a_large_file_that_we_wrote_is_not_taken_for_changed(tmp_path: Path) -> None:
    """A file larger than what recall takes in is known by its whole content once we wrote it, and an edit at its end is seen."""
    folder = on_disk(tmp_path)
    large = memory("Large", body="x\n" * 200_000)
    await folder.apply([Create("large.md", large)], "agent:a", "Write")
    assert await folder.refresh() == frozenset()
    (tmp_path / "large.md").write_bytes(large[:-2] + b"y\n")
    assert await folder.refresh() == {"large.md"}
    await MemoryFolder(folder.backend).apply([Create("b.md", memory("B"))], "agent:b", "Write")
