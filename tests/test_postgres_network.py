"""The PostgreSQL backend on networks that break off and fall silent, at every step."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

import pytest
from cutting_proxy import Direction, Proxy, steps
from database import Server, closing, execute

from mdmemory.backends.postgres import PostgresBackend
from mdmemory.backends.protocol import ABSENT, LOG, Append, Backend, Delete, File, Move, Op, Put, done_mark, etag_of
from mdmemory.errors import Unavailable

pytestmark = pytest.mark.slow  # many processes, or the same again and again

OLD, NEW = b"old\n", b"new\n"
INTENT = b'{"intent":"c"}\n'
DONE = f"{{{done_mark('c')}}}\n".encode()
FIRST = [Put("a.md", OLD), Put("b.md", OLD), Append("log.md", OLD, "")]
_numbers = itertools.count()
COMMITS: dict[str, Sequence[Op]] = {
    "with a done line": [
        Put("x/y.md", NEW, ABSENT),
        Append(LOG, INTENT, ""),
        Put("a.md", NEW, etag_of(OLD)),
        Append(LOG, DONE, ""),
    ],
    "put and delete": [Put("a.md", NEW, etag_of(OLD)), Delete("b.md", etag_of(OLD))],
    "an entry": [Append("log.md", b"entry 1\n", "entry 1")],
    "move": [Move("a.md", "moved.md")],
    "append without an id": [Append("log.md", NEW, "")],
}
DONE_AS: dict[str, dict[str, bytes]] = {
    "with a done line": {"a.md": NEW, "b.md": OLD, "log.md": OLD, "x/y.md": NEW, LOG: INTENT + DONE},
    "put and delete": {"a.md": NEW, "log.md": OLD},
    "an entry": {"a.md": OLD, "b.md": OLD, "log.md": OLD + b"entry 1\n"},
    "move": {"moved.md": OLD, "b.md": OLD, "log.md": OLD},
    "append without an id": {"a.md": OLD, "b.md": OLD, "log.md": OLD + NEW},
}
NOT_DONE = {"a.md": OLD, "b.md": OLD, "log.md": OLD}
REPEATABLE = ("with a done line", "put and delete", "an entry")


@pytest.fixture(scope="module")
def url(postgres: Server) -> str:
    """A database for all of these tests."""
    return postgres.new_tables()


@pytest.fixture
async def proxy(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Proxy]:
    """What stands before it; the connections through it, and others, are kept for all that a test opens."""
    monkeypatch.setattr("mdmemory.backends.postgres_pool._PAUSE_S", 0.01)
    async with Proxy(url) as proxy, closing(proxy.url, "kept-open") as through, closing(url, "kept-open") as beside:
        await asyncio.gather(through.scan(), beside.scan())
        yield proxy


async def content(backend: Backend) -> dict[str, bytes]:
    """Every file, the log too."""
    found = await backend.read(dict.fromkeys([*(await backend.scan()).files, LOG]))
    return {path: file.data for path, file in found.items() if isinstance(file, File)}


async def new_folder(url: str) -> str:
    """A folder with three files."""
    folder = f"cut/{next(_numbers)}"
    async with closing(url, folder) as backend:
        await backend.commit("first", FIRST)
    return folder


async def cuts_of(proxy: Proxy, url: str, work: Callable[[PostgresBackend], object]) -> Iterator[tuple[Direction, int]]:
    """Where some work can be broken off, from what is passed when it isn't."""
    async with closing(proxy.url, await new_folder(url)) as backend:
        await backend.scan()
        proxy.arm()
        await work(backend)
        ways: tuple[Direction, ...] = ("up", "down")
        return iter([(way, n) for way in ways for n in sorted(steps(proxy.passed[way]))])


@pytest.mark.parametrize("name", COMMITS)
async def test_a_commit_is_broken_off_at_every_step(name: str, proxy: Proxy, url: str) -> None:
    """Wherever the connection breaks, a commit is done once or not at all, and whoever asked for it is told the truth.

    One that can be asked for again succeeds; of another it is said that nobody knows, unless it is known.
    """
    ops, cuts = COMMITS[name], 0
    answers = set()
    for cut in await cuts_of(proxy, url, lambda backend: backend.commit("c", ops)):
        folder = await new_folder(url)
        async with closing(proxy.url, folder) as backend, closing(url, folder) as other:
            await backend.scan()
            proxy.arm(cut)
            try:
                etags = await backend.commit("c", ops)
            except Unavailable as error:
                assert name not in REPEATABLE and "may have been done or not" in str(error)
                answers.add("unknown")
                assert await content(other) in (NOT_DONE, DONE_AS[name])
            else:
                answers.add("done")
                assert etags == {op.path: etag_of(op.data) for op in ops if isinstance(op, Put)}
                assert await content(other) == DONE_AS[name]
            cuts += proxy.has_cut
    assert cuts > 15 and answers == ({"done"} if name in REPEATABLE else {"done", "unknown"})


@pytest.mark.parametrize("name", COMMITS)
async def test_a_commit_is_broken_off_again_and_again(name: str, proxy: Proxy, url: str) -> None:
    """Where the second and third attempt break off as well, nothing is done twice and nothing half."""
    for way, n in list(await cuts_of(proxy, url, lambda backend: backend.commit("c", COMMITS[name])))[::7]:
        folder = await new_folder(url)
        async with closing(proxy.url, folder) as backend, closing(url, folder) as other:
            await backend.scan()
            proxy.arm((way, n), (way, n + 500), ("down", 40))
            try:
                await backend.commit("c", COMMITS[name])
            except Unavailable as error:
                assert "may have been done or not" in str(error) and await content(other) in (NOT_DONE, DONE_AS[name])
            else:
                assert await content(other) == DONE_AS[name]


async def test_a_look_is_broken_off_at_every_step(proxy: Proxy, url: str) -> None:
    """Scans and reads succeed wherever the connection breaks, and bring the same."""
    for way, n in await cuts_of(proxy, url, content):
        async with closing(proxy.url, await new_folder(url)) as backend:
            await backend.scan()
            proxy.arm((way, n))
            assert await content(backend) == NOT_DONE


async def test_opening_is_broken_off_at_every_step(proxy: Proxy, postgres: Server) -> None:
    """The first connection, the tables and the first commit: broken off anywhere, the next attempt finds all or nothing of it."""
    url = postgres.new_database()
    async with Proxy(url) as whole:
        async with closing(whole.url, "a") as backend:
            await backend.commit("c", FIRST)
        passed = {way: len(data) for way, data in whole.passed.items()}
    for way in ("up", "down"):
        for n in range(0, passed[way], passed[way] // 10):
            fresh = postgres.new_database()
            async with Proxy(fresh) as there, closing(there.url, "a") as backend:
                there.arm((way, n))
                for attempt in range(3):
                    try:
                        await backend.commit("c", [Put("a.md", OLD)])
                        break
                    except Unavailable as error:
                        assert attempt < 2 and "127.0.0.1" not in str(error)
                assert await content(backend) == {"a.md": OLD}
                assert await execute(fresh, "SELECT count(*) FROM mdmemory.folder") == [(1,)]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for long here."""
    monkeypatch.setattr("mdmemory.backends.postgres_connection.ANSWER_S", 0.4)
    monkeypatch.setattr("mdmemory.backends.postgres_pool.GIVE_UP_S", 1.0)


@pytest.mark.usefixtures("impatient")
async def test_a_network_that_falls_silent(proxy: Proxy, url: str) -> None:
    """A server that neither answers nor hangs up is given up in time, in words that are true; then all goes on."""
    folder = await new_folder(url)
    async with closing(f"{proxy.url}?connect_timeout=2", folder) as backend, closing(url, folder) as other:
        await backend.scan()
        for attempt in (backend.scan, lambda: backend.read({"a.md": None})):
            proxy.is_silent = True
            began = time.monotonic()
            with pytest.raises(Unavailable, match="can't be reached"):
                await attempt()
            assert time.monotonic() - began < 10
            proxy.is_silent = False
            assert await content(backend) == NOT_DONE
        proxy.is_silent = True
        with pytest.raises(Unavailable, match="may have been done or not"):
            await backend.commit("c", COMMITS["move"])
        proxy.is_silent = False
        await asyncio.sleep(0.3)  # what was on its way arrives, or never does
        there = await content(backend)
        assert there in (NOT_DONE, DONE_AS["move"]) and there == await content(other)


@pytest.mark.usefixtures("impatient")
async def test_a_silent_network_tells_of_no_changes(proxy: Proxy, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that listens on a network that fell silent does not pass for one to which nothing happened."""
    monkeypatch.setattr("mdmemory.backends.postgres_news.ASK_S", 0.2)
    monkeypatch.setattr("mdmemory.backends.postgres_news._ANSWER_S", 0.2)
    async with closing(f"{proxy.url}?connect_timeout=2", await new_folder(url)) as backend:
        await quiet(backend)
        proxy.is_silent = True
        async with asyncio.timeout(10):
            while not backend.has_news:
                await asyncio.sleep(0.01)
        proxy.is_silent = False
        await quiet(backend)


async def quiet(backend: PostgresBackend) -> None:
    """Look until the database tells of changes, and has told of none since."""
    async with asyncio.timeout(20):
        while backend.has_news:
            await backend.scan()
            await asyncio.sleep(0.01)
