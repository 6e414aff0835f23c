"""The tables of a PostgreSQL database: made once, by whoever may, and never half."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from children import end, start
from database import Server, closing, execute

from mdmemory.backends import postgres_set_up
from mdmemory.backends.postgres_set_up import migrations
from mdmemory.backends.protocol import FileProblem, Put
from mdmemory.errors import ConfigError, MdmemoryError, Unavailable

SCHEMAS = "SELECT count(*) FROM pg_namespace WHERE nspname = 'mdmemory'"
MADE = "SELECT array_agg(number ORDER BY number) FROM mdmemory.migration"


async def save(url: str, folder: str = "a") -> None:
    """A first commit."""
    async with closing(url, folder) as backend:
        await backend.commit("c", [Put("a.md", b"tea\n")])


async def test_reading_makes_nothing(database: str) -> None:
    """A look at a database without tables finds an empty folder and makes none; the first commit makes them."""
    async with closing(database, "a") as backend:
        assert (await backend.scan()).files == {}
        assert [type(found) for found in (await backend.read({"a.md": None})).values()] == [FileProblem]
        assert await execute(database, SCHEMAS) == [(0,)]
        await backend.commit("c", [Put("a.md", b"tea\n")])
        assert list((await backend.scan()).files) == ["a.md"]
    assert await execute(database, MADE) == [(sorted(migrations()),)]


def test_eight_processes_make_them_at_once(database: str) -> None:
    """Of processes that come to an empty database at the same moment one makes the tables, and every one saves."""
    children = [start(lambda n=n: asyncio.run(save(database, f"users/{n}"))) for n in range(8)]
    assert [end(pid) for pid in children] == [0] * 8
    assert asyncio.run(execute(database, "SELECT count(*) FROM mdmemory.file")) == [(8,)]


async def test_whoever_may_not_make_them_is_told(postgres: Server) -> None:
    """A role without the right to make a schema reads an empty folder, and is told at its first save whom to ask for what."""
    as_role, url = postgres.new_role("poor"), postgres.new_database()
    async with closing(as_role(url), "a") as backend:
        assert (await backend.scan()).files == {}
        with pytest.raises(ConfigError, match="`mdmemory database set-up URL`"):
            await backend.commit("c", [Put("a.md", b"tea\n")])
    assert await execute(url, SCHEMAS) == [(0,)]


async def test_tables_of_a_newer_version_are_refused(database: str) -> None:
    """Tables of a newer version are not written to as if they were ours, and what is there is not called empty."""
    await save(database)
    await execute(database, "INSERT INTO mdmemory.migration VALUES (999)")
    async with closing(database, "a") as backend:
        for attempt in (backend.scan(), backend.read({"a.md": None}), backend.commit("d", [Put("a.md", b"new\n")])):
            with pytest.raises(ConfigError, match="newer version of mdmemory"):
                await attempt
    assert await execute(database, "SELECT data FROM mdmemory.file") == [(b"tea\n",)]


async def test_tables_of_an_older_version_are_brought_up_to_date(
    postgres: Server, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever comes first with a newer version brings the tables up to date, also to read; who may not is told so."""
    await save(database)
    as_role = postgres.new_role("late")
    await execute(database, "SELECT mdmemory.give('late', 'a')")
    newest = max(migrations())
    more = {**migrations(), newest + 1: "CREATE TABLE mdmemory.more (n integer)"}
    monkeypatch.setattr(postgres_set_up, "migrations", lambda: more)
    async with closing(as_role(database), "a") as backend:
        for attempt in (backend.scan(), backend.read({"a.md": None}), backend.commit("d", [Put("a.md", b"new\n")])):
            with pytest.raises(ConfigError, match="older version"):
                await attempt
    async with closing(database, "a") as backend:
        assert (await backend.scan()).heads == {"a.md": b"tea\n"}
    assert await execute(database, MADE) == [(sorted(more),)]
    async with closing(as_role(database), "a") as backend:
        assert (await backend.scan()).heads == {"a.md": b"tea\n"}


async def test_a_set_up_that_fails_leaves_nothing(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the last statement of a set-up fails, nothing of it is left, and it can be begun again."""
    whole = migrations()
    monkeypatch.setattr(postgres_set_up, "migrations", lambda: {**whole, max(whole) + 1: "SELECT 1 / 0"})
    with pytest.raises(MdmemoryError):
        await save(database)
    assert await execute(database, SCHEMAS) == [(0,)]
    monkeypatch.undo()
    await save(database)


async def test_set_up_twice_changes_nothing(database: str) -> None:
    """Setting up what is set up makes no table anew, and loses no row."""
    await save(database)
    tables = "SELECT oid, relname FROM pg_class WHERE relnamespace = 'mdmemory'::regnamespace ORDER BY oid"
    before = await execute(database, tables)
    async with await psycopg.AsyncConnection.connect(database, autocommit=True) as connection:
        await postgres_set_up.set_up(connection)
    assert await execute(database, tables) == before
    assert await execute(database, "SELECT data FROM mdmemory.file") == [(b"tea\n",)]


async def test_a_database_of_another_encoding_is_refused(postgres: Server) -> None:
    """A database that does not know what characters are can hold no memory; nothing is made in it."""
    url = postgres.new_database(more="ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    async with closing(url, "a") as backend:
        for attempt in (backend.scan(), backend.commit("c", [Put("a.md", b"tea\n")])):
            with pytest.raises(ConfigError, match="encoding is UTF8"):
                await attempt
    assert await execute(url, SCHEMAS) == [(0,)]


async def test_tables_that_were_taken_away(database: str) -> None:
    """Where the tables go while a memory is open, it says so, and does not call the memory empty."""
    await save(database)
    async with closing(database, "a") as backend:
        known = (await backend.scan()).versions or {}
        await execute(database, "DROP SCHEMA mdmemory CASCADE")
        for attempt in (backend.scan(known), backend.read({"a.md": None}), backend.commit("d", [Put("a.md", b"x")])):
            with pytest.raises((ConfigError, Unavailable)):
                await attempt
