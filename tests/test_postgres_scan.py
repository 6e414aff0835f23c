"""What a scan of a PostgreSQL folder brings when it goes on from an earlier one."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from contextlib import AsyncExitStack

import psycopg
import pytest
from database import Server, closing, execute
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mdmemory.backends.listing import Versions
from mdmemory.backends.postgres import PostgresBackend
from mdmemory.backends.protocol import NO_VERSION, Append, Delete, Move, Op, Put, Scan, Version
from mdmemory.errors import InvalidPath, MdmemoryError, Unavailable
from mdmemory.recall.packing import packed, unpacked

_numbers = itertools.count()
PATHS = st.sampled_from(["a.md", "b.txt", "sub/a.md", "sub/deep/b.MD", "other/a.md", ".mdmemory/x"])
PLACES = st.sampled_from(["a.md", "sub", "sub/deep", "other", "third", "third/a.md", ".mdmemory/y"])
TEXTS = st.sampled_from([b"", b"tea\n", b"coffee", b"x" * 1_600])
OPS: st.SearchStrategy[Op] = st.one_of(
    st.builds(Put, PATHS, TEXTS),
    st.builds(Append, PATHS, TEXTS, st.just("")),
    st.builds(Delete, PATHS),
    st.builds(Move, PLACES, PLACES),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("commit"), st.integers(0, 1), st.lists(OPS, min_size=1, max_size=3)),
        st.tuples(st.just("scan"), st.integers(0, 1), st.sampled_from(["as it was", "packed", "unsure", "plain"])),
        st.tuples(st.just("vanish"), st.just(0), st.none()),
    ),
    max_size=16,
)


@pytest.fixture(scope="module")
def url(postgres: Server) -> str:
    """A database for all of these tests."""
    return postgres.new_tables()


def known_as(scan: Scan, form: str) -> Mapping[str, Version]:
    """The versions of an earlier scan, in each form in which they may come back."""
    assert isinstance(scan.versions, Versions)
    if form == "packed":
        return unpacked(*packed(scan.versions))
    if form == "unsure":  # the cache says so of a file that it could not read
        versions = unpacked(*packed(scan.versions))
        for path in list(scan.files)[:1]:
            versions.put(path, NO_VERSION)
        return versions
    return dict(scan.versions) if form == "plain" else scan.versions


def check(later: Scan, whole: Scan, known: Mapping[str, Version]) -> None:
    """A scan that goes on is a whole one, but for the heads of files that are known."""
    assert dict(later.files) == dict(whole.files) and dict(later.versions or {}) == dict(whole.versions or {})
    changed = {path for path, entry in whole.files.items() if known.get(path) != entry.version}
    needed = {path: head for path, head in whole.heads.items() if path in changed}
    assert later.heads.items() >= needed.items() and later.heads.items() <= whole.heads.items()
    assert {path for path in later.heads if path not in needed} == set()


@given(steps=STEPS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_scan_that_goes_on_is_a_whole_one(url: str, steps: list[tuple[str, int, list[Op] | str]]) -> None:
    """Two hosts, any commits: from every earlier scan, in memory or cached, the next one sees what one without a past sees.

    Little of what is gone is remembered here, so that scans go on from before that, too.
    """
    folder = f"scans/{next(_numbers)}"

    async def run() -> None:
        async with AsyncExitStack() as stack:
            backends = [await stack.enter_async_context(closing(url, folder)) for _ in range(2)]
            fresh = await stack.enter_async_context(closing(url, folder))
            seen: list[Scan] = []
            for n, (action, who, what) in enumerate(steps):
                if action == "vanish":
                    await execute(url, "DELETE FROM mdmemory.folder WHERE name = %s", folder)
                    seen = [scan for scan in seen if not scan.files]  # of one with files it is said that it is gone
                elif action == "commit" and isinstance(what, list):
                    try:
                        await backends[who].commit(f"c{n}", what)
                    except MdmemoryError as error:
                        assert not isinstance(error, Unavailable), error
                    await execute(url, "UPDATE mdmemory.folder SET remembered = 4 WHERE name = %s", folder)
                elif isinstance(what, str):
                    whole = await fresh.scan()
                    for before in seen[-6:]:
                        if before.versions is not None:
                            known = known_as(before, what)
                            check(await backends[who].scan(known), whole, known)
                    seen.append(whole)
            await check_counts(url, folder)

    asyncio.run(run())


async def check_counts(url: str, folder: str) -> None:
    """What the folder says of its size is so, and no piece is left of a file that is gone."""
    [found] = await execute(
        url,
        "SELECT coalesce(sum(CASE WHEN starts_with(path, '.') THEN 0 ELSE 1 END), 0), coalesce(sum(size), 0), "
        "coalesce(sum(octet_length(data) + (SELECT coalesce(sum(octet_length(tail.data)), 0) FROM mdmemory.tail "
        "WHERE tail.folder = file.folder AND tail.path = file.path)), 0) "
        "FROM mdmemory.file WHERE folder = (SELECT id FROM mdmemory.folder WHERE name = %s)",
        folder,
    )
    counted = await execute(url, "SELECT files, bytes, bytes FROM mdmemory.folder WHERE name = %s", folder)
    assert [found] == (counted or [(0, 0, 0)])


@pytest.mark.parametrize("remembered", [1, 4, 20])
async def test_what_is_forgotten_is_looked_at_as_a_whole(url: str, remembered: int) -> None:
    """However little is remembered of what is gone: a scan from any earlier moment misses no deletion."""
    async with closing(url, f"forgets/{remembered}") as backend:
        await backend.commit("c", [Put(f"{n:02}.md", b"tea\n") for n in range(30)])
        await execute(url, f"UPDATE mdmemory.folder SET remembered = {remembered} WHERE name = %s", backend.folder)
        seen = [await backend.scan()]
        for n in range(30):
            await backend.commit(f"d{n}", [Delete(f"{n:02}.md")])
            seen.append(await backend.scan(seen[-1].versions or {}))
            assert sorted(seen[-1].files) == [f"{left:02}.md" for left in range(n + 1, 30)]
        last = [await backend.scan(scan.versions or {}) for scan in seen]
        assert [dict(scan.files) for scan in last] == [{}] * 31
        [(kept,)] = await execute(
            url, "SELECT count(*) FROM mdmemory.gone JOIN mdmemory.folder ON id = folder AND name = %s", backend.folder
        )
        assert kept <= remembered + remembered // 10 + 1


async def test_a_scan_is_one_statement(url: str) -> None:
    """A look at a folder is one statement, so one round trip, and so is one that goes on; a quiet one brings no row but its own."""
    async with closing(url, "counted") as backend, await psycopg.AsyncConnection.connect(url, autocommit=True) as watching:
        await backend.commit("c", [Put(f"{n}.md", b"tea\n") for n in range(100)])
        calls = "SELECT calls, rows FROM pg_stat_statements WHERE query LIKE 'SELECT * FROM mdmemory.scan(%'"
        await execute(url, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
        await execute(url, "SELECT pg_stat_statements_reset()")
        first = await backend.scan()
        second = await backend.scan(first.versions or {})
        await backend.commit("d", [Put("7.md", b"coffee\n"), Delete("8.md")])
        third = await backend.scan(second.versions or {})
        assert await (await watching.execute(calls)).fetchall() == [(3, 101 + 1 + 3)]
    assert len(first.heads) == 100 and not second.heads and third.heads == {"7.md": b"coffee\n"} and "8.md" not in third.files


async def test_versions_of_another_backend_are_not_known(url: str) -> None:
    """What a cache holds of a folder on a disk is nothing to go on from: every file is brought."""
    async with closing(url, "moved-here") as backend:
        await backend.commit("c", [Put("a.md", b"tea\n"), Put("b/c.md", b"tea\n")])
        for known in ({"a.md": "1"}, Versions.of({"a.md": b"x" * 32, "b/c.md": b"x" * 32}), {"a.md": NO_VERSION}):
            assert (await backend.scan(known)).heads == {"a.md": b"tea\n", "b/c.md": b"tea\n"}


async def test_a_folder_that_is_gone_is_not_empty(url: str) -> None:
    """A folder that was there is not taken for emptied when its row is gone; made anew, its files are all new."""
    async with closing(url, "gone") as backend:
        await backend.commit("c", [Put("a.md", b"tea\n"), Put("b.md", b"tea\n")])
        known = (await backend.scan()).versions or {}
        await execute(url, "DELETE FROM mdmemory.folder WHERE name = 'gone'")
        with pytest.raises(Unavailable, match="Nothing is taken for deleted"):
            await backend.scan(known)
        await backend.commit("d", [Put("a.md", b"tea\n")])
        found = await backend.scan(known)
        assert list(found.files) == ["a.md"] and found.heads == {"a.md": b"tea\n"}


async def test_a_path_is_a_folder_or_a_file(url: str) -> None:
    """A file that is gone may become a folder, and the other way round; both are refused while the other is there."""
    async with closing(url, "either") as backend:
        await backend.commit("c", [Put("a", b"tea\n")])
        with pytest.raises(InvalidPath):
            await backend.commit("d", [Put("a/b.md", b"tea\n")])
        known = (await backend.scan()).versions or {}
        await backend.commit("e", [Delete("a")])
        await backend.commit("f", [Put("a/b.md", b"tea\n")])
        assert list((await backend.scan(known)).files) == ["a/b.md"]
        await backend.commit("g", [Move("a/b.md", "c.md"), Put("d.md", b"")])
        await backend.commit("h", [Put("a", b"tea\n")])
        assert sorted((await backend.scan(known)).files) == ["a", "c.md", "d.md"]


def test_a_backend_is_told_apart() -> None:
    """The address of the database is libpq's, but for the folder."""
    backend = PostgresBackend.from_url("postgres://u@h:1/db?sslmode=require&folder=users/alice&application_name=x")
    assert (backend.folder, backend._address) == ("users/alice", "postgresql://u@h:1/db?sslmode=require&application_name=x")
