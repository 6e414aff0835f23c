"""What every backend must do, as tests: subclass `BackendConformance`, say how to make yours, and run pytest.

```python
class TestMyBackend(BackendConformance):
    async def make_backend(self, tmp_path):
        return MyBackend(tmp_path / "memory")
```
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path

import pytest
import pytest_asyncio

from mdmemory.backends.protocol import (
    ABSENT,
    ANY,
    LOG,
    MAX_FILE_BYTES,
    TAIL_BYTES,
    Append,
    Backend,
    Delete,
    File,
    FileProblem,
    Move,
    Op,
    Put,
    Range,
    Version,
    done_mark,
    etag_of,
)
from mdmemory.errors import Conflict, InvalidPath, UnsafeFile
from mdmemory.testing.cases import ACCEPTED, IMPOSSIBLE, RANGES, REFUSED, STALE


def done(commit_id: str) -> Append:
    """The last operation of a commit that can be told to have happened."""
    return Append(LOG, f"{{{done_mark(commit_id)}}}\n".encode(), done_mark(commit_id))


@pytest.mark.asyncio
class BackendConformance:
    """The tests; override `make_backend`, and `plant` where a file can come to be without a commit."""

    async def make_backend(self, tmp_path: Path) -> Backend:
        """Make the backend of a memory that does not exist yet."""
        raise NotImplementedError

    async def plant(self, backend: Backend, path: str, data: bytes) -> None:
        """Put a file there as a person would, past the backend if possible."""
        await backend.commit(f"plant-{path}-{etag_of(data)}", [Put(path, data)])

    @pytest_asyncio.fixture
    async def backend(self, tmp_path: Path) -> AsyncIterator[Backend]:
        """The backend under test, closed twice afterwards: that must be fine."""
        backend = await self.make_backend(tmp_path)
        yield backend
        await backend.close()
        await backend.close()

    async def data(self, backend: Backend, path: str) -> bytes | None:
        """The bytes of a file, None when it is absent."""
        found = (await backend.read({path: None}))[path]
        if isinstance(found, FileProblem):
            assert found.kind == "absent", found
            return None
        return found.data

    async def refused(self, backend: Backend, error: type[Exception], *ops: Op) -> Exception:
        """Assert that a commit is refused and changes nothing."""
        before = await backend.scan()
        with pytest.raises(error) as caught:
            await backend.commit("refused", [Put("first.md", b"must not appear"), *ops, Append("log.md", b"nor this\n", "nor")])
        assert (await backend.scan()).files.keys() == before.files.keys()
        return caught.value

    async def test_a_new_memory_is_empty(self, backend: Backend) -> None:
        """A folder that does not exist yet is an empty scan, and every file in it is absent."""
        scan = await backend.scan()
        assert (scan.files, scan.heads, scan.skipped) == ({}, {}, {})
        assert await self.data(backend, "a/b.md") is None

    async def test_scan_lists_every_visible_file(self, backend: Backend) -> None:
        """Files of all kinds are listed with their size; N7: hidden parts are not."""
        await backend.commit("c", [Put("a/b.md", b"12"), Put("c.txt", b"123"), Put(".mdmemory/objects/x", b"1"), done("c")])
        files = (await backend.scan()).files
        assert {path: entry.size for path, entry in files.items()} == {"a/b.md": 2, "c.txt": 3}

    async def test_heads_are_bounded_and_only_of_markdown(self, backend: Backend) -> None:
        """A scan brings the first bytes of `.md` files, in any case of the ending, and of no others."""
        for path in ("a.md", "b.MD", "c.txt"):
            await self.plant(backend, path, b"0123456789")
        assert (await backend.scan(head_bytes=4)).heads == {"a.md": b"0123", "b.MD": b"0123"}

    async def test_known_versions_need_no_head(self, backend: Backend) -> None:
        """After a while an unchanged file has a version, and a scan that knows it brings no head."""
        await self.plant(backend, "a.md", b"one")
        await self.plant(backend, "b.md", b"two")
        await asyncio.sleep(0.05)
        known = {path: entry.version for path, entry in (await backend.scan()).files.items()}
        assert all(known.values())
        assert (await backend.scan(known)).heads == {}
        assert (await backend.scan({"a.md": known["a.md"], "b.md": "other"})).heads == {"b.md": b"two"}

    async def test_a_change_of_the_same_size_is_seen(self, backend: Backend) -> None:
        """E3: however quickly a change follows, the next scan brings the new head."""
        known: dict[str, Version] = {}
        for n in range(50):
            await self.plant(backend, "a.md", b"%02d" % n)
            scan = await backend.scan(known)
            assert scan.heads == {"a.md": b"%02d" % n}
            known = {path: entry.version for path, entry in scan.files.items()}

    async def test_read_answers_for_every_path(self, backend: Backend) -> None:
        """A read gives bytes, size and the sha256; what is missing, or below a file, is absent; a folder is no file."""
        await self.plant(backend, "a/b.md", b"hello")
        found = await backend.read({"a/b.md": None, "no.md": None, "no/no.md": None, "a/b.md/c.md": None, "a": None})
        file = found["a/b.md"]
        assert isinstance(file, File) and (file.data, file.etag, file.size) == (b"hello", etag_of(b"hello"), 5) and file.mtime_ns
        kinds = {path: problem.kind for path, problem in found.items() if isinstance(problem, FileProblem)}
        assert kinds == {"no.md": "absent", "no/no.md": "absent", "a/b.md/c.md": "absent", "a": "unsafe"}

    @pytest.mark.parametrize(("start", "length", "expected"), RANGES)
    async def test_ranges(self, backend: Backend, start: int, length: int, expected: bytes) -> None:
        """A part of a file is clipped to the file, counts from the end when negative, and has an etag only when it is all of it."""
        await self.plant(backend, "a.md", b"0123456789")
        file = (await backend.read({"a.md": Range(start, length)}))["a.md"]
        assert isinstance(file, File) and (file.data, file.size) == (expected, 10)
        assert file.etag == (etag_of(expected) if len(expected) == 10 else None)

    async def test_large_files_are_read_in_parts_only(self, backend: Backend) -> None:
        """N4: a whole file over the limit is too large, at the limit it is not, and a part of it can be had."""
        await self.plant(backend, "most.md", b"x" * MAX_FILE_BYTES)
        await self.refused(backend, UnsafeFile, Put("more.md", b"x" * (MAX_FILE_BYTES + 1)))
        await backend.commit("grow", [Append("most.md", b"\nmore", "")])
        whole, part = [(await backend.read({"most.md": wanted}))["most.md"] for wanted in (None, Range(-4, 4))]
        assert isinstance(whole, FileProblem) and whole.kind == "too_large"
        assert isinstance(part, File) and part.data == b"more"
        await self.plant(backend, "fits.md", b"x" * MAX_FILE_BYTES)
        assert len(await self.data(backend, "fits.md") or b"") == MAX_FILE_BYTES

    async def test_put_makes_and_replaces(self, backend: Backend) -> None:
        """A commit returns the etag of each path put, and makes the folders it needs."""
        assert await backend.commit("1", [Put("a/b/c.md", b"old", ABSENT)]) == {"a/b/c.md": etag_of(b"old")}
        assert await backend.commit("2", [Put("a/b/c.md", b"new", etag_of(b"old"))]) == {"a/b/c.md": etag_of(b"new")}
        assert await self.data(backend, "a/b/c.md") == b"new"

    @pytest.mark.parametrize(("op", "etag"), STALE)
    async def test_preconditions_come_first(self, backend: Backend, op: Op, etag: str | None) -> None:
        """E2: a failed precondition carries the current etag, and nothing of the commit is applied, whatever stands before it."""
        for path in ("a.md", "other.md"):
            await self.plant(backend, path, b"now")
        error = await self.refused(backend, Conflict, op)
        assert isinstance(error, Conflict) and error.etag == etag and await self.data(backend, "a.md") == b"now"

    async def test_optional_operations_are_left_out(self, backend: Backend) -> None:
        """An operation that is not required and whose precondition fails is left out, and its path is not in the answer."""
        await self.plant(backend, "MEMORY.md", b"now")
        stale = Put("MEMORY.md", b"x", etag_of(b"before"), required=False)
        etags = await backend.commit("c", [Put("a.md", b"1"), stale, Delete("MEMORY.md", ABSENT, required=False), done("c")])
        assert etags == {"a.md": etag_of(b"1")} and await self.data(backend, "MEMORY.md") == b"now"

    async def test_a_commit_in_the_log_has_happened(self, backend: Backend) -> None:
        """A retry after a lost answer succeeds with the current etags, and does nothing twice."""
        await self.plant(backend, "a.md", b"old")
        ops: list[Op] = [
            Put("a.md", b"new", etag_of(b"old")),
            Move("a.md", "b.md"),
            Append("log.md", b"line\n", "unsaid"),
            done("c"),
        ]
        await backend.commit("c", ops)
        await backend.commit("later", [Put("a.md", b"newer")])
        assert await backend.commit("c", ops) == {"a.md": etag_of(b"newer")}
        assert (await self.data(backend, "log.md"), await self.data(backend, "b.md")) == (b"line\n", b"new")

    @pytest.mark.parametrize("if_match", [ABSENT, ANY, etag_of(b"before")])
    async def test_the_same_bytes_are_no_conflict(self, backend: Backend, if_match: str) -> None:
        """E7: a put whose bytes are there already succeeds, and leaves the file as it was."""
        await self.plant(backend, "a.md", b"same")
        await asyncio.sleep(0.05)
        before = (await backend.scan()).files["a.md"]
        assert await backend.commit("again", [Put("a.md", b"same", if_match)]) == {"a.md": etag_of(b"same")}
        assert (await backend.scan()).files["a.md"] == before

    async def test_two_puts_of_one_path(self, backend: Backend) -> None:
        """Operations apply in order: the last put of a path stays, even when its bytes were there before."""
        await self.plant(backend, "a.md", b"same")
        await backend.commit("c", [Put("a.md", b"other"), Put("a.md", b"same"), Put("b.md", b"1"), Put("b.md", b"1")])
        assert (await self.data(backend, "a.md"), await self.data(backend, "b.md")) == (b"same", b"1")
        await backend.commit("d", [Delete("a.md"), Put("a.md", b"same")])
        assert await self.data(backend, "a.md") == b"same"

    async def test_append(self, backend: Backend) -> None:
        """An append makes the file, mends a missing final newline, and is skipped when its entry is near the end."""
        await backend.commit("1", [Append("a/log.md", b"one id-1", "id-1")])
        await backend.commit("2", [Append("a/log.md", b"two id-2\n", "id-2"), Append("a/log.md", b"three\n", "")])
        await backend.commit("3", [Append("a/log.md", b"one id-1", "id-1"), Append("a/log.md", b"four\n", "")])
        assert await self.data(backend, "a/log.md") == b"one id-1\ntwo id-2\nthree\nfour\n"

    async def test_append_looks_back_64_kb(self, backend: Backend) -> None:
        """An entry is found exactly as far back as the tail reaches."""
        for distance, expected in ((TAIL_BYTES, 1), (TAIL_BYTES + 1, 2)):
            await backend.commit(f"plant{distance}", [Put("log.md", b"e1" + b"x" * (distance - 3) + b"\n")])
            await backend.commit(f"again{distance}", [Append("log.md", b"e1\n", "e1")])
            assert (await self.data(backend, "log.md") or b"").count(b"e1") == expected

    async def test_an_entry_id_is_one_line(self, backend: Backend) -> None:
        """An entry id of several lines is refused, and nothing is applied."""
        with pytest.raises(ValueError, match="one line"):
            await backend.commit("c", [Put("a.md", b"x"), Append("log.md", b"one\ntwo\n", "one\ntwo")])
        assert (await backend.scan()).files == {}

    async def test_delete(self, backend: Backend) -> None:
        """Deleting removes the file; one that is absent has been removed."""
        await self.plant(backend, "a.md", b"x")
        for n in range(2):
            await backend.commit(f"delete {n}", [Delete("a.md", etag_of(b"x")), Delete("no/no.md")])
        assert await self.data(backend, "a.md") is None

    async def test_move(self, backend: Backend) -> None:
        """Files and whole folders move to new places, whose folders are made."""
        await self.plant(backend, "a/b.md", b"1")
        await self.plant(backend, "a/c/d.md", b"2")
        await backend.commit("1", [Move("a", "x/y")])
        await backend.commit("2", [Move("x/y/b.md", "z/b.md")])
        assert set((await backend.scan()).files) == {"x/y/c/d.md", "z/b.md"} and await self.data(backend, "z/b.md") == b"1"

    @pytest.mark.parametrize("path", REFUSED)
    async def test_refused_paths(self, backend: Backend, path: str) -> None:
        """N1: paths out of the folder, hidden ones and misleading names are refused by every verb, before anything happens."""
        for op in (Put(path, b"x"), Append(path, b"x", ""), Delete(path), Move("first.md", path), Move(path, "b.md")):
            await self.refused(backend, InvalidPath, op)
        with pytest.raises(InvalidPath):
            await backend.read({"a.md": None, path: None})

    @pytest.mark.parametrize("path", ACCEPTED)
    async def test_accepted_paths(self, backend: Backend, path: str) -> None:
        """N2: dots inside, spaces, any script and emoji are fine, and come back from a scan as they were."""
        await backend.commit("c", [Put(path, b"x")])
        assert await self.data(backend, path) == b"x" and list((await backend.scan()).files) == [path]

    @pytest.mark.parametrize("op", IMPOSSIBLE)
    async def test_impossible_operations(self, backend: Backend, op: Op) -> None:
        """N5: a folder into itself, the root, a folder taken for a file or a file for a folder: refused, nothing left behind."""
        await self.plant(backend, "a/f.md", b"x")
        await self.plant(backend, "other.md", b"x")
        await self.refused(backend, InvalidPath, op)

    async def test_cancelled_commits_finish(self, backend: Backend) -> None:
        """A commit that is cancelled under way is done as a whole, and then the cancellation goes on."""
        for delay_s in (0, 0.0005, 0.002):
            puts = [Put(f"{name}-{delay_s}.md", b"x") for name in "abc"]
            task = asyncio.create_task(backend.commit(f"c{delay_s}", puts))
            await asyncio.sleep(delay_s)
            under_way = not task.done()
            task.cancel()
            with pytest.raises(asyncio.CancelledError) if under_way else nullcontext():
                await task
            assert [await self.data(backend, put.path) for put in puts] == [b"x"] * 3

    async def test_parallel_edits_are_all_kept(self, backend: Backend) -> None:
        """E1: 40 parallel read-modify-write edits of distinct lines of one file keep 40 of 40."""
        await self.plant(backend, "a.md", b"".join(b"line %d\n" % n for n in range(40)))

        async def edit(n: int) -> None:
            while True:
                data = await self.data(backend, "a.md") or b""
                try:
                    new = data.replace(b"line %d\n" % n, b"LINE %d\n" % n)
                    await backend.commit(f"edit {n} {etag_of(data)}", [Put("a.md", new, etag_of(data))])
                    return
                except Conflict:
                    continue

        await asyncio.gather(*(edit(n) for n in range(40)))
        assert await self.data(backend, "a.md") == b"".join(b"LINE %d\n" % n for n in range(40))
