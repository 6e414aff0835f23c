"""The folder: what is refused with nothing written, what was changed outside, what a call costs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from children import NOBODY, end, open_folder, start
from counting import CountingBackend
from folders import everything, in_memory, index_of, log_of, memory, objects_of, on_disk, refuse, visible

from mdmemory.backends.memory import MemoryBackend
from mdmemory.backends.protocol import Op, etag_of
from mdmemory.errors import InvalidMemoryFile, Unavailable, UnsafeFile
from mdmemory.files.changes import Create, Delete, Rename, Replace
from mdmemory.folder.memory_folder import MemoryFolder

A, B = memory("Alpha", "the first"), memory("Beta", "the second")


async def test_a_hard_link_is_read_but_not_written_through(tmp_path: Path) -> None:
    """N3: a hard-linked file is read, reported and refused for writing; its other name keeps its bytes; it can be deleted."""
    outside = tmp_path / "outside"
    outside.write_bytes(A)
    root = tmp_path / "memory"
    folder = on_disk(root, {"b.md": B})
    os.link(outside, root / "a.md")
    await folder.refresh()
    assert await folder.read("a.md") == A and "hard link" in folder.skipped["a.md"]
    assert "hard link" in await refuse(root, folder, Replace("a.md", B, etag_of(A)), UnsafeFile)
    await folder.apply([Delete("a.md")], "person", "test")
    assert outside.read_bytes() == A and not (root / "a.md").exists()


async def test_a_hard_linked_index_does_not_stop_a_save(tmp_path: Path) -> None:
    """N3: an index that may not be written is a warning; the memory file itself is saved."""
    outside = tmp_path / "outside"
    outside.write_bytes(b"# Mine\n")
    root = tmp_path / "memory"
    folder = on_disk(root, {"b.md": B})
    os.link(outside, root / "MEMORY.md")
    applied = await folder.apply([Create("a.md", A)], "agent:a", "test")
    assert visible(root)["a.md"] == A and outside.read_bytes() == b"# Mine\n"
    assert applied.index is None and "hard link" in applied.warnings[0] and [e for e in log_of(root) if "done" in e]


async def test_nothing_is_written_on_a_dry_run(tmp_path: Path) -> None:
    """A dry run answers what would be, and writes nothing."""
    folder = on_disk(tmp_path, {"b.md": B})
    applied = await folder.apply([Create("a.md", A), Delete("b.md")], "person", "test", dry_run=True)
    assert everything(tmp_path) == {"b.md": etag_of(B)} and applied.commit_id is None
    assert [(item.path, item.before, item.after) for item in applied.files] == [("a.md", None, A), ("b.md", B, None)]
    assert applied.index is not None and applied.index.text == "- [Alpha](a.md) — the first\n"


async def test_a_folder_that_vanishes_and_comes_back(tmp_path: Path) -> None:
    """D1: while the folder is away, a look says so and nothing known is dropped; when it is back, all goes on."""
    root = tmp_path / "memory"
    folder = on_disk(root, {"a.md": A})
    await folder.refresh()
    root.rename(tmp_path / "away")
    with pytest.raises(Unavailable, match="was there and is gone"):
        await folder.refresh()
    with pytest.raises(Unavailable):
        await folder.apply([Create("b.md", B)], "person", "test")
    assert not root.exists() and set(folder.files) == {"a.md"} and await folder.search("alpha")
    (tmp_path / "away").rename(root)
    assert await folder.refresh() == frozenset()
    await folder.apply([Create("b.md", B)], "person", "test")
    assert set(visible(root)) == {"a.md", "b.md", "MEMORY.md"}


def test_a_folder_that_becomes_unreadable() -> None:
    """D1: a folder, or a part of it, that can't be read for a while loses nothing from catalog and index."""

    async def look(root: Path) -> None:
        folder = on_disk(root)
        await folder.refresh()
        for place in (root, root / "sub", root / "sub/a.md"):
            place.chmod(0)
            if place == root:
                with pytest.raises(Unavailable, match="permission denied"):
                    await folder.refresh()
            else:
                assert await folder.refresh() == frozenset()
                assert "could not look" in folder.skipped[place.relative_to(root).as_posix()]
                await folder.apply([Create(f"{place.name}-new.md", B)], "person", "test")
            assert "sub/a.md" in folder.files and "[Alpha](sub/a.md)" in index_of_open(root, place)
            place.chmod(0o755)
        assert await folder.refresh() == frozenset() and not folder.skipped

    def index_of_open(root: Path, closed: Path) -> str:
        return "[Alpha](sub/a.md)" if closed == root else index_of(root)

    with open_folder() as root:
        on_disk(root, {"sub/a.md": A, "MEMORY.md": "- [Alpha](sub/a.md) — the first\n"})
        for path in (root, *root.rglob("*")):
            os.chown(path, NOBODY, NOBODY) if os.getuid() == 0 else None
        assert end(start(lambda: asyncio.run(look(root)), uid=NOBODY)) == 0


async def test_a_file_deleted_outside_is_gone_everywhere(tmp_path: Path) -> None:
    """D4: after a refresh it is in no list, no search and no prompt; the index file follows with the next save."""
    folder = on_disk(tmp_path)
    await folder.apply([Create("a.md", A), Create("b.md", B)], "person", "test")
    (tmp_path / "a.md").unlink()
    assert await folder.refresh() == {"a.md"}
    assert set(folder.files) == {"b.md"} and await folder.search("alpha") == []
    assert "a.md" not in (await folder.prompt_index()).text and "a.md" in index_of(tmp_path)
    await folder.apply([Create("c.md", memory("Gamma"))], "person", "test")
    assert "a.md" not in index_of(tmp_path)


async def test_one_broken_file_stops_no_other(tmp_path: Path) -> None:
    """C7: the broken file is named with its reason and keeps its bytes; the others load, are found and can be saved."""
    broken = b'---\nname: B\ndescription: "abc "def" ghi"\n---\nx\n'
    files = {"a.md": A, "bad.md": broken, "latin.md": b"caf\xe9\n", "z.md": B}
    folder = on_disk(tmp_path, files)
    await folder.refresh()
    assert set(folder.files) == set(files)
    problems = {path: str(known.problem) for path, known in folder.files.items() if known.problem}
    assert set(problems) == {"bad.md", "latin.md"} and "line 3" in problems["bad.md"] and "not UTF-8" in problems["latin.md"]
    assert [match.path for match in await folder.search("alpha beta")] == ["a.md", "z.md"]
    await folder.apply([Create("c.md", memory("Gamma"))], "agent:a", "test")
    with pytest.raises(InvalidMemoryFile):
        await folder.apply([Replace("latin.md", b"caf\xe9s\n", etag_of(files["latin.md"]))], "agent:a", "test")
    assert {path: data for path, data in visible(tmp_path).items() if path in files} == files


async def test_a_broken_file_can_be_moved_and_deleted(tmp_path: Path) -> None:
    """C7: what can't be read can still be moved, with its bytes as they are, and deleted."""
    bad = b"---\nname: [\n---\n"
    folder = on_disk(tmp_path, {"notes/bad.md": bad, "notes/a.md": A})
    await folder.apply([Rename("notes", "old")], "person", "test")
    assert visible(tmp_path)["old/bad.md"] == bad and set(folder.files) == {"old/bad.md", "old/a.md"}
    await folder.apply([Delete("old/bad.md")], "person", "test")
    assert set(visible(tmp_path)) == {"old/a.md", "MEMORY.md"}


async def test_the_mark_of_a_change_only_grows() -> None:
    """Whoever remembers the mark learns of every later change, also of a file that was the last to change."""
    folder = in_memory()
    await folder.apply([Create("a.md", A)], "person", "test")
    mark = folder.change_mark
    await folder.apply([Replace("a.md", B, etag_of(A))], "person", "test")
    assert folder.change_mark > mark and folder.changes_since(mark) == ["a.md"]
    await folder.apply([Create("b.md", B)], "person", "test")
    assert folder.changes_since(mark) == ["b.md", "a.md"] and folder.changes_since(folder.change_mark) == []


async def test_round_trips() -> None:
    """Nothing changed: one scan and nothing read. A save: one read and one commit. Only what changed is read again."""
    backend = CountingBackend(MemoryBackend())
    folder = MemoryFolder(backend)
    await folder.apply([Create(f"n{n}.md", memory(f"Note {n}")) for n in range(30)], "person", "test")
    await folder.refresh()
    backend.calls.clear()
    await folder.refresh()
    assert (backend.calls, backend.heads) == (["scan"], 0)
    backend.calls.clear()
    await folder.apply([Replace("n3.md", A, etag_of(memory("Note 3")))], "person", "test")
    assert backend.calls == ["read", "commit"]
    backend.calls.clear()
    await folder.refresh()
    assert (backend.calls, backend.heads) == (["scan"], 2)  # the file, and the index
    await folder.search("alpha")
    await folder.prompt_index()
    assert backend.calls == ["scan"]


class SlowBackend(MemoryBackend):
    """A backend far away: a commit waits for `go`."""

    def __init__(self) -> None:
        super().__init__()
        self.go, self.began = asyncio.Event(), asyncio.Event()

    async def commit(self, commit_id: str, ops: Sequence[Op]) -> Mapping[str, str]:
        """Wait, then commit."""
        self.began.set()
        await self.go.wait()
        return await super().commit(commit_id, ops)


async def test_a_cancelled_save_ends_whole() -> None:
    """Cancelled while its commit runs, a save is finished, the catalog knows of it, and the cancellation goes on."""
    backend = SlowBackend()
    folder = MemoryFolder(backend)
    saving = asyncio.create_task(folder.apply([Create("a.md", A)], "person", "test"))
    await backend.began.wait()
    waiting = asyncio.create_task(folder.apply([Create("b.md", B)], "person", "test"))
    await asyncio.sleep(0)
    for task in (saving, waiting):
        task.cancel()
    await asyncio.sleep(0.01)
    backend.go.set()
    assert all(isinstance(end, asyncio.CancelledError) for end in await asyncio.gather(saving, waiting, return_exceptions=True))
    assert set(folder.files) == {"a.md"} and await folder.read("a.md") == A
    assert "a.md" in (await folder.read("MEMORY.md")).decode() and await folder.refresh() == frozenset()
    await asyncio.wait_for(folder.apply([Create("b.md", B)], "person", "test"), 5)
    assert set(folder.files) == {"a.md", "b.md"}


async def test_history_keeps_the_bytes_before_and_after(tmp_path: Path) -> None:
    """Each commit is one intent with the hashes before and after, then its done; the objects hold the bytes."""
    folder = on_disk(tmp_path, {"a.md": A})
    applied = await folder.apply([Replace("a.md", B, etag_of(A))], "agent:s1", "Edit")
    intent, done = log_of(tmp_path)
    assert (intent["id"], intent["author"], intent["reason"]) == (applied.commit_id, "agent:s1", "Edit")
    assert intent["files"] == [{"path": "a.md", "before": etag_of(A), "after": etag_of(B)}] and done == {"done": intent["id"]}
    assert sorted(objects_of(tmp_path)) == sorted([A, B])
