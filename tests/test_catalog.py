"""What is known of the files, learnt from scans."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from folders import memory, on_disk

from mdmemory import Config, open_memory
from mdmemory.backends.local import LocalBackend
from mdmemory.backends.memory import MemoryBackend
from mdmemory.backends.protocol import HEAD_BYTES, MAX_FILE_BYTES, Delete, Entry, File, FileProblem, Put, Range, Scan
from mdmemory.errors import Unavailable
from mdmemory.folder.catalog import AT_ONCE, Catalog
from mdmemory.folder.known import MAX_RECALL_BYTES, as_text, from_text, is_memory_path, known_from
from mdmemory.folder.memory_folder import MemoryFolder


async def put(backend: MemoryBackend, **files: bytes) -> None:
    """Write files, named without their ending."""
    await backend.commit("", [Put(f"{name}.md", data) for name, data in files.items()])


@pytest.mark.parametrize(
    ("path", "is_one"),
    [("a.md", True), ("a/b.MD", True), ("MEMORY.md", False), ("sub/MEMORY.md", True), ("journal/s.md", False), ("a.txt", False)],
)
def test_what_a_memory_file_is(path: str, is_one: bool) -> None:
    """A memory file is any .md but the index at the top and the journals."""
    assert is_memory_path(path) is is_one


async def test_refresh_returns_what_came_changed_and_went() -> None:
    """Each change is told with what was known before and is known now, and only once."""
    backend, catalog = MemoryBackend(), Catalog()
    assert await catalog.refresh(backend) == {} and catalog.scanned
    await put(backend, a=memory("A"), b=memory("B"))
    changed = await catalog.refresh(backend)
    assert {path: before for path, (before, _) in changed.items()} == {"a.md": None, "b.md": None}
    await put(backend, a=memory("A2"))
    before, now = (await catalog.refresh(backend))["a.md"]
    assert before is not None and before.header is not None and before.header.name == "A"
    assert now is not None and now.header is not None and now.header.name == "A2" and now.etag
    assert await catalog.refresh(backend) == {}


async def test_the_first_look_at_a_large_folder_leaves_the_loop_to_others() -> None:
    """While 500 files are learnt, other tasks of the program have their turn many times."""
    backend, catalog, turns = MemoryBackend(), Catalog(), 0
    await put(backend, **{f"note-{number}": memory(f"N{number}") for number in range(500)})
    look = asyncio.create_task(catalog.refresh(backend))
    while not look.done():
        await asyncio.sleep(0)
        turns += 1
    assert len(await look) == 500 and turns > 500 // AT_ONCE


async def test_memories_of_one_process_look_first_at_the_same_time(tmp_path: Path) -> None:
    """None waits within a transaction for another, which could not end its own: each learns all files, the cache is kept."""
    on_disk(tmp_path / "memory", {f"note-{number}.md": memory(f"N{number}") for number in range(3 * AT_ONCE)})
    config = Config(cache=tmp_path / "cache", watch=False)
    async with AsyncExitStack() as stack:
        folders = [(await stack.enter_async_context(open_memory(tmp_path / "memory", config=config))).folder for _ in range(3)]
        await asyncio.gather(*(folder.refresh() for folder in folders))
        for folder in folders:
            assert len(folder.files) == 3 * AT_ONCE and await folder.search("N7")
            assert isinstance(folder, MemoryFolder) and not folder.catalog.is_lost


async def test_a_look_that_is_cancelled_learns_all_that_it_saw() -> None:
    """What a scan told is told once, so a caller who goes away in the middle of it loses nothing for the next one."""
    backend, catalog = MemoryBackend(), Catalog()
    await put(backend, **{f"note-{number}": memory(f"N{number}") for number in range(500)})
    look = asyncio.create_task(catalog.refresh(backend))
    while not catalog.files:
        await asyncio.sleep(0)
    assert len(catalog.files) < 500 and look.cancel()
    with pytest.raises(asyncio.CancelledError):
        await look
    assert len(catalog.files) == 500 and catalog.scanned


async def test_the_same_bytes_again_are_no_change(tmp_path: Path) -> None:
    """E3: a file whose time changed, not its bytes, has not changed."""
    folder = on_disk(tmp_path, {"a.md": memory("A"), "large.md": memory("L", body="x\n" * 20_000)})
    await folder.refresh()
    for path in ("a.md", "large.md"):
        os.utime(tmp_path / path, ns=(1, 1))
    assert await folder.refresh() == frozenset() and folder.files["a.md"].mtime_ns == 1


async def test_a_broken_file_keeps_what_was_last_good() -> None:
    """C7: a file that breaks, and breaks again, keeps the header it last had; one that never had any says that it is broken."""
    backend, catalog = MemoryBackend(), Catalog()
    await put(backend, a=memory("A", "good"))
    await catalog.refresh(backend)
    for data in (b"---\nname: [\n---\n", b"caf\xe9"):
        await put(backend, a=data, never=data)
        await catalog.refresh(backend)
        assert catalog.files["a.md"].problem is not None and catalog.files["a.md"].header is None
        assert (catalog.headers.listed["a.md"].name, catalog.headers.listed["a.md"].description) == ("A", "good")
        assert "never.md" not in catalog.headers.listed and "can't be read" in catalog.headers.unreadable["never.md"].description


async def test_files_larger_than_their_head() -> None:
    """N4: of a large file the header and the first 256 KB are taken in, of a huge one no more."""
    backend, catalog = MemoryBackend(), Catalog()
    middle = memory("Middle", body="x " * HEAD_BYTES + "needle")
    huge = memory("Huge", body="y\n" * MAX_RECALL_BYTES + "haystack")
    await put(backend, middle=middle, huge=huge)
    await catalog.refresh(backend)
    assert catalog.files["middle.md"].etag and catalog.files["huge.md"].etag is None
    assert [catalog.headers.listed[path].name for path in ("middle.md", "huge.md")] == ["Middle", "Huge"]
    needles, haystacks = (catalog.recall.rank(query, limit=5, now_ns=0, half_life_days=1) for query in ("needle", "haystack"))
    assert [item.path for item in needles] == ["middle.md"] and haystacks == []


async def test_a_sparse_gigabyte(tmp_path: Path) -> None:
    """N4: a sparse file of 1 GB is listed, and reported, without being read."""
    folder = on_disk(tmp_path, {"a.md": memory("A")})
    with (tmp_path / "big.md").open("wb") as file:
        file.write(memory("Big")[:-1])
        file.truncate(1 << 30)
    await folder.refresh()
    assert folder.files["big.md"].size == 1 << 30 and folder.files["a.md"].problem is None
    found = (await folder.read_many(["big.md"]))["big.md"]
    assert isinstance(found, FileProblem) and found.kind == "too_large" and folder.files["big.md"].size > MAX_FILE_BYTES


async def test_names_that_look_alike_are_found() -> None:
    """P2: the look-alike of a path is any other file of the same name to a person; the index's name is always taken."""
    backend, catalog = MemoryBackend(), Catalog()
    await backend.commit("", [Put("sub/A.md", memory("A")), Put("Site Roadmap.md", memory("B"))])
    await catalog.refresh(backend)
    assert [catalog.headers.lookalike(path) for path in ("sub/a.md", "site-roadmap.md", "sub/A.md", "other.md")] == [
        *("sub/A.md", "Site Roadmap.md", None, None)
    ]
    assert (catalog.headers.lookalike("memory.md"), catalog.headers.lookalike("MEMORY.md")) == ("MEMORY.md", None)


class FlakyBackend(MemoryBackend):
    """A backend whose reads, or whose sub folder, can't be had for a while."""

    away = hidden = False

    async def scan(self, known: Mapping[str, str] = {}, *, head_bytes: int = HEAD_BYTES) -> Scan:
        """Scan; hidden, without what is in `sub`."""
        scan = await super().scan(known, head_bytes=head_bytes)
        if not self.hidden:
            return scan
        files: dict[str, Entry] = {path: entry for path, entry in scan.files.items() if not path.startswith("sub/")}
        return Scan(files, {path: head for path, head in scan.heads.items() if path in files}, {"sub": "could not look: no answer"})

    async def read(self, wanted: Mapping[str, Range | None]) -> Mapping[str, File | FileProblem]:
        """Read, unless away."""
        if self.away:
            raise Unavailable("no answer")
        return await super().read(wanted)


async def test_a_look_that_fails_halfway_changes_nothing() -> None:
    """D1: when the second round trip of a look fails, the next look tells all that changed."""
    backend, catalog = FlakyBackend(), Catalog()
    await put(backend, a=memory("A"), gone=memory("G"))
    await catalog.refresh(backend)
    large = memory("L", body="x\n" * HEAD_BYTES)
    await put(backend, large=large)
    del backend._files["gone.md"]
    backend.away = True
    with pytest.raises(Unavailable):
        await catalog.refresh(backend)
    assert set(catalog.files) == {"a.md", "gone.md"}
    backend.away = False
    assert set(await catalog.refresh(backend)) == {"large.md", "gone.md"}


async def test_what_could_not_be_looked_at_is_not_gone() -> None:
    """D1: files below a folder that could not be looked at stay known; once it can be, they are what they were."""
    backend, catalog = FlakyBackend(), Catalog()
    await backend.commit("", [Put("sub/a.md", memory("A")), Put("b.md", memory("B"))])
    await catalog.refresh(backend)
    backend.hidden = True
    assert await catalog.refresh(backend) == {} and set(catalog.files) == {"sub/a.md", "b.md"} and "sub" in catalog.skipped
    backend.hidden = False
    assert await catalog.refresh(backend) == {} and not catalog.skipped


async def test_a_file_that_becomes_a_link_is_gone(tmp_path: Path) -> None:
    """N3: a memory file replaced by a link is no memory file any more, and is listed as skipped."""
    folder = on_disk(tmp_path, {"a.md": memory("A"), "elsewhere.txt": "x"})
    await folder.refresh()
    (tmp_path / "a.md").unlink()
    (tmp_path / "a.md").symlink_to(tmp_path / "elsewhere.txt")
    os.mkfifo(tmp_path / "pipe.md")
    assert await folder.refresh() == {"a.md"} and not folder.files
    assert {path: reason[:6] for path, reason in folder.skipped.items()} == {"a.md": "a symb", "pipe.md": "a FIFO"}


@pytest.mark.parametrize("data", [memory("A", tags=["x"], source=["s#1", "s#2"]), memory("B"), b"plain", b"---\nname: [\n---\n"])
def test_what_is_known_outlasts_a_process(data: bytes) -> None:
    """D3: what is known of a file, its sources too, comes back from the cache as it was."""
    known, _ = known_from("a.md", data, len(data), 1)
    back = from_text("a.md", as_text(known))
    assert replace(back, problem=None) == replace(known, problem=None) and str(back.problem) == str(known.problem)


async def test_what_went_while_the_cache_was_lost_is_forgotten(tmp_path: Path) -> None:
    """What is deleted before a damaged cache is made anew is told as gone, and listed no more."""
    for backend in (MemoryBackend(), LocalBackend(tmp_path)):
        catalog = Catalog()
        await backend.commit("", [Put("a.md", b"one"), Put("sub/b.md", b"two"), Put("c.md", b"three")])
        await catalog.refresh(backend)
        catalog.lose(Unavailable("damaged"))
        await backend.commit("", [Delete("sub/b.md"), Put("c.md", b"four")])
        changed = await catalog.refresh(backend)
        assert set(changed) == {"sub/b.md", "c.md"} and changed["sub/b.md"][1] is None
        assert set(catalog.files) == {"a.md", "c.md"} and await catalog.refresh(backend) == {}
