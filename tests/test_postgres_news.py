"""What a PostgreSQL database tells of other hosts' changes."""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from database import Server, closing, execute
from folders import memory

from mdmemory import open_memory
from mdmemory.backends.postgres import PostgresBackend
from mdmemory.backends.protocol import Append, Put
from mdmemory.files.changes import Create, Replace

LISTENING = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND (query LIKE 'LISTEN%%' OR query = 'SELECT')"


@pytest.fixture(scope="module")
def url(postgres: Server) -> str:
    """A database for all of these tests."""
    return postgres.new_tables()


@asynccontextmanager
async def quiet(url: str, folder: str) -> AsyncIterator[PostgresBackend]:
    """A folder that was looked at, and of which the database tells."""
    async with closing(url, folder) as backend:
        await backend.commit("first", [Put("a.md", b"tea\n")])
        await until_quiet(backend)
        yield backend


async def until_quiet(backend: PostgresBackend) -> None:
    """Look until nothing is new."""
    async with asyncio.timeout(20):
        while backend.has_news:
            await backend.scan()
            await asyncio.sleep(0.005)


async def until_news(backend: PostgresBackend) -> None:
    """Wait until something is."""
    async with asyncio.timeout(10):
        while not backend.has_news:
            await asyncio.sleep(0.002)


async def test_nothing_is_quiet_before_it_is_listened(url: str) -> None:
    """Until the database tells of changes, there may be some; one's own scan ends it, and one's own commit begins it again."""
    async with closing(url, "begins") as backend:
        assert backend.has_news
        await backend.commit("c", [Put("a.md", b"tea\n")])
        await backend.scan()
        assert backend.has_news
        await until_quiet(backend)
        await backend.commit("d", [Put("a.md", b"coffee\n")])
        await until_news(backend)
        await until_quiet(backend)


async def test_every_change_of_another_host_is_told(url: str) -> None:
    """Of 200 commits of others each is told, also many at once, and those of other folders are none of ours."""
    async with (
        quiet(url, "told") as backend,
        closing(url + "?application_name=other", "told") as other,
        closing(url, "else") as beside,
    ):
        for n in range(200):
            await other.commit(f"c{n}", [Append("a.md", f"{n}\n".encode(), "")])
            await until_news(backend)
            assert len((await backend.scan()).heads["a.md"].splitlines()) == n + 2
            await until_quiet(backend)
        await beside.commit("c", [Put("a.md", b"tea\n")])
        await asyncio.sleep(0.2)
        assert not backend.has_news


async def test_a_new_connection_takes_nothing_for_quiet(url: str) -> None:
    """When the connection that listens is ended, what happened meanwhile is looked for; then it tells again."""
    named = url + "?application_name=listens"
    async with quiet(named, "ended") as backend, closing(url, "ended") as other:
        assert await execute(url, LISTENING, "listens") == [(1,)]
        await execute(url, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'listens'")
        await other.commit("c", [Put("b.md", b"tea\n")])
        await until_news(backend)
        assert "b.md" in (await backend.scan()).files
        await until_quiet(backend)
        await other.commit("d", [Put("c.md", b"tea\n")])
        await until_news(backend)


async def test_nobody_listens_unless_asked(url: str) -> None:
    """Who never asks for news has no connection for it."""
    async with closing(url + "?application_name=deaf", "deaf") as backend:
        await backend.commit("c", [Put("a.md", b"tea\n")])
        await backend.scan()
        await asyncio.sleep(0.1)
        assert await execute(url, LISTENING, "deaf") == [(0,)]


@pytest.mark.parametrize("payload", ["", "x", "x y", f"x {'9' * 5_000}", f"{'x' * 5_000} 1", "x ٣", "x -1", "x 1.5"])
async def test_anybody_may_tell_anything(url: str, payload: str) -> None:
    """Messages that make no sense, which whoever is logged in may send, end nothing."""
    async with quiet(url, "robust") as backend, closing(url, "robust") as other:
        await execute(url, "SELECT pg_notify('mdmemory', %s)", payload)
        await other.commit(f"c{payload[:9]}", [Append("a.md", b"tea\n", "")])
        await until_news(backend)


async def test_what_is_not_told_is_looked_for_in_time(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that dies between its commit and telling of it is not missed for longer than a minute."""
    async with quiet(url, "silent") as backend:
        monkeypatch.setattr("mdmemory.backends.postgres.TRUST_S", 0.05)
        await asyncio.sleep(0.06)
        assert backend.has_news


def edit(url: str, told: multiprocessing.Queue[int], go_on: multiprocessing.Queue[int]) -> None:
    """Another host: saves, says so, and waits for the next."""

    async def run() -> None:
        async with open_memory(url) as other:
            for n in range(200):
                name = f"{n % 20}.md"
                data = memory(f"Note {n}", f"number {n}")
                await other.folder.refresh()
                known = other.folder.files.get(name)
                change = Replace(name, data, known.etag or "") if known else Create(name, data)
                await other.folder.apply([change], "agent:other", "test")
                told.put(n)
                go_on.get(timeout=60)

    asyncio.run(run())


@pytest.mark.slow
def test_another_hosts_change_is_in_the_next_turn(url: str) -> None:
    """Of 200 saves of another process, each is seen by the first turn after it: 0 missed."""
    location = f"{url}?folder=turns"
    told, go_on = multiprocessing.Queue(), multiprocessing.Queue()
    process = multiprocessing.get_context("fork").Process(target=edit, args=(location, told, go_on))
    process.start()

    async def run() -> list[int]:
        missed: list[int] = []
        async with open_memory(location) as here:
            session = here.session("s")
            for n in range(200):
                assert await asyncio.to_thread(told.get, timeout=60) == n
                async with session.turn(f"What is note {n}?") as turn:
                    await turn.system_prompt()
                    header = here.folder.files[f"{n % 20}.md"].header
                    missed += [n] if header is None or header.description != f"number {n}" else []
                    await turn.finish("That.")
                go_on.put(n)
        return missed

    assert asyncio.run(run()) == []
    process.join(60)
    assert process.exitcode == 0
