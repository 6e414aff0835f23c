"""How much a PostgreSQL folder may hold, and what large files cost."""

from __future__ import annotations

import json

import psycopg
import pytest
from agent_calls import ROLE
from database import Server, closing, execute

from mdmemory import open_memory
from mdmemory.backends.protocol import LOG, MAX_FILE_BYTES, Append, Delete, File, Move, Put, Range, etag_of
from mdmemory.errors import UnsafeFile

LIMIT = "UPDATE mdmemory.folder SET max_files = {}, max_bytes = {} WHERE name = '{}'"


@pytest.fixture(scope="module")
def url(postgres: Server) -> str:
    """A database for all of these tests."""
    return postgres.new_tables()


async def test_no_more_files_than_allowed(url: str) -> None:
    """One file too many is refused with the numbers and what to do, and nothing of its commit is written."""
    async with closing(url, "files") as backend:
        await backend.commit("c", [Put("a.md", b"tea\n"), Put("b.md", b"tea\n")])
        await execute(url, LIMIT.format(2, 1_000, "files"))
        with pytest.raises(UnsafeFile, match=r"The memory is full. It would have 3 files .* 2 files .* are the most.*delete"):
            await backend.commit("d", [Append(LOG, b"{}\n", ""), Put("a.md", b"other\n"), Put("c.md", b"tea\n")])
        assert dict((await backend.scan()).heads) == {"a.md": b"tea\n", "b.md": b"tea\n"}
        assert getattr((await backend.read({LOG: None}))[LOG], "kind", "") == "absent"
        await backend.commit("e", [Move("a.md", "c.md"), Delete("b.md")])
        await backend.commit("f", [Put("b.md", b"tea\n")])


async def test_no_more_bytes_than_allowed(url: str) -> None:
    """Also by appending; what makes a full folder smaller is always allowed, and so is its history, which tells of it."""
    async with closing(url, "bytes") as backend:
        await backend.commit("c", [Put("a.md", b"x" * 900)])
        await execute(url, LIMIT.format(10, 1_000, "bytes"))
        for op in (Append("a.md", b"x" * 200, ""), Put("b.md", b"x" * 200), Put("a.md", b"x" * 2_000)):
            with pytest.raises(UnsafeFile, match="The memory is full"):
                await backend.commit("d", [op])
        await backend.commit("e", [Append(LOG, b"x" * 500, ""), Put("a.md", b"x" * 800)])  # which is too much, but less
        await backend.commit("f", [Append(LOG, b"x" * 500, ""), Delete("a.md")])
        with pytest.raises(UnsafeFile, match="The memory is full"):
            await backend.commit("g", [Put("a.md", b"x")])


async def test_a_full_memory_can_be_tidied(url: str) -> None:
    """A memory that is full says so to the agent, goes on with the conversation, and can delete and undo; then there is room."""
    location = f"{url}?folder=users/full"
    async with open_memory(location) as memory:
        for n in range(4):
            answer = await memory.tools.call("Write", {"file_path": f"{n}.md", "content": ROLE})
            assert not answer.is_error, answer
        await execute(url, LIMIT.format(5, 10_000_000, "users/full"))
        full = await memory.tools.call("Write", {"file_path": "9.md", "content": ROLE})
        assert full.is_error and "The memory is full" in full.text and "127.0.0.1" not in full.text
        async with memory.session("s").turn("What is my role?") as turn:
            assert "Role" in await turn.system_prompt()
            await turn.finish("You are a surveyor.")
        assert turn.status.degraded and "full" in json.dumps(turn.status.degraded)
        assert not (await memory.tools.call("Delete", {"file_path": "3.md"})).is_error
        assert not (await memory.tools.call("Write", {"file_path": "9.md", "content": ROLE})).is_error


async def test_large_files(url: str) -> None:
    """Files of up to 5 MiB come back as they were, whole and in parts; larger ones are refused or asked for in parts."""
    data = bytes(range(256)) * (MAX_FILE_BYTES // 256)
    async with closing(url, "large") as backend:
        await backend.commit("c", [Put("a.bin", data)])
        found = (await backend.read({"a.bin": None}))["a.bin"]
        assert isinstance(found, File) and found.data == data and found.etag == etag_of(data)
        with pytest.raises(UnsafeFile):
            await backend.commit("d", [Put("b.bin", data + b"x")])
        await backend.commit("e", [Append("a.bin", b"tail\n", "")])
        assert getattr((await backend.read({"a.bin": None}))["a.bin"], "kind", "") == "too_large"
        parts = await backend.read({"a.bin": Range(-7, 7)})
        assert [getattr(part, "data", None) for part in parts.values()] == [b"\xff\ntail\n"]


async def buffers(url: str, folder: str, path: str) -> int:
    """How many pages of tables one append of 100 bytes reads and writes, planning aside."""
    commit = "SELECT * FROM mdmemory.commit(%s, 'none', '{append}', %s, '{\"\"}', %s, '{x}', '{t}')"
    call = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {commit}"
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        for _ in range(2):  # the first one reads the catalogue
            cursor = await connection.execute(call.encode(), (folder, [path], [b"x" * 99 + b"\n"]))
            [[[plan]]] = [list(row) for row in await cursor.fetchall()]
    return sum(plan["Plan"][f"Shared {kind} Blocks"] for kind in ("Hit", "Read"))


async def test_an_append_costs_the_same_however_long_the_file_is(url: str) -> None:
    """An append to a log of 50 MB touches hardly more of the tables than one to a short file, however the long one came about."""
    async with closing(url, "logs") as backend:
        await backend.commit("c", [Put("short.md", b"x" * 99 + b"\n")])
        await backend.commit("d", [Put(LOG, (b"x" * 999 + b"\n") * 50_000)])
        for n in range(10):
            await backend.commit(f"e{n}", [Append("long.md", (b"x" * 999 + b"\n") * 5_000, "")])
        few = await buffers(url, "logs", "short.md")
        for path in (LOG, "long.md"):
            assert await buffers(url, "logs", path) < few + 150  # the last 64 KB are 8 pages of 8 KB, 33 of TOAST, and an index
