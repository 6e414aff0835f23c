"""Who may see which folders of a PostgreSQL database: forged names, statements of one's own, and what else a role may try."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from database import Server, as_admin, closing, execute

from mdmemory.backends.protocol import Append, Move, Put
from mdmemory.errors import ConfigError, Unavailable

SECRET = b"bob's secret\n"
LONG = SECRET + b"x" * 4_000
TABLES = ["folder", "file", "tail", "gone", "recall", "access", "migration"]
_numbers = itertools.count()
FORGED = [
    "users/bob",
    "users/alice2",
    "users/alic",
    "users",
    "users/ALICE",
    "users/аlice",
    "users/%",
    "users/_lice",
    "users/alice%",
]


@pytest.fixture(scope="module", params=["a role", "a superuser"])
def url(request: pytest.FixtureRequest, postgres: Server) -> str:
    """A database for all of these tests, by who owns it."""
    return postgres.kept() if request.param == "a role" else as_admin(postgres.new_database())


@pytest.fixture
async def alice(postgres: Server, url: str) -> AsyncIterator[str]:
    """The URL as a role sees it that was given `users/alice`; there are `users/bob` and others too."""
    for folder in ("users/alice", "users/bob", "users/alice2", "users/alice/below", "users"):
        async with closing(url, folder) as backend:
            await backend.commit("c", [Put("a.md", SECRET), Append("log.md", LONG, ""), Append("log.md", LONG, "")])
    role = f"alice_{next(_numbers)}"
    as_alice = postgres.new_role(role)
    await execute(url, "SELECT mdmemory.give(%s, 'users/alice')", role)
    yield as_alice(url)


async def everything(url: str) -> list[Any]:
    """All rows, as a superuser sees them, but for the folders of Alice."""
    superuser = url.replace("keeper@", "mdmemory@")
    [(mine,)] = await execute(superuser, "SELECT id FROM mdmemory.folder WHERE name = 'users/alice'")
    tables = ("file", "tail", "gone")
    rows = [
        await execute(superuser, f"SELECT * FROM mdmemory.{table} WHERE folder <> %s ORDER BY 1, 2, 3", mine) for table in tables
    ]
    return [*rows, await execute(superuser, "SELECT * FROM mdmemory.folder WHERE id <> %s ORDER BY 1", mine)]


async def test_a_role_uses_what_it_was_given(alice: str) -> None:
    """A role reads, changes, moves and deletes in the folder that it was given, pieces of appended files included."""
    async with closing(alice, "users/alice") as backend:
        await backend.commit("d", [Put("b/c.md", b"tea\n"), Append("log.md", LONG, "")])
        await backend.commit("e", [Move("log.md", "b/log.md")])
        found = await backend.read({"a.md": None, "b/log.md": None})
        assert [getattr(file, "data", None) for file in found.values()] == [SECRET, LONG + b"\n" + LONG + b"\n" + LONG]
        assert sorted((await backend.scan()).files) == ["a.md", "b/c.md", "b/log.md"]


@pytest.mark.parametrize("folder", FORGED)
async def test_a_forged_name_opens_nothing(alice: str, url: str, folder: str) -> None:
    """Whatever else a role names, there or not, is refused: not called empty, and nothing of it is made."""
    before = await everything(url)
    async with closing(alice, folder) as backend:
        for attempt in (
            backend.scan(),
            backend.read({"a.md": None}),
            backend.commit("d", [Put("a.md", b"mine\n")]),
            backend.commit("e", [Append("log.md", b"mine\n", "")]),
        ):
            with pytest.raises(Unavailable, match="no right to this memory") as caught:
                await attempt
            assert "alice" not in str(caught.value) and "127.0.0.1" not in str(caught.value)
    assert await everything(url) == before


@pytest.mark.parametrize(
    "folder", ["users/alice/../bob", "", "/users/bob", "users//bob", "users/alice/.", "users/bob\0", "x" * 600]
)
def test_what_is_no_name_is_no_folder(postgres: Server, folder: str) -> None:
    """Names with parts that a path would resolve, empty or endless ones are refused before anything is asked."""
    with pytest.raises(ConfigError, match="no name of a folder"):
        closing_now(postgres.url, folder)


def closing_now(url: str, folder: str) -> None:
    """Open a folder, which asks nothing of a server."""
    from mdmemory.backends.postgres import PostgresBackend

    PostgresBackend(url, folder)


SET = "SELECT set_config('mdmemory.folder', 'users/bob', false)"
STATEMENTS = [
    *(f"SELECT * FROM mdmemory.{table}" for table in TABLES),
    *(f"TABLE mdmemory.{table}" for table in TABLES),
    *(f"COPY mdmemory.{table} TO STDOUT" for table in TABLES),
    *(f"DELETE FROM mdmemory.{table}" for table in TABLES),
    *(f"TRUNCATE mdmemory.{table} CASCADE" for table in TABLES),
    *(f"ALTER TABLE mdmemory.{table} DISABLE ROW LEVEL SECURITY" for table in TABLES),
    *(
        f"CREATE TRIGGER t BEFORE INSERT ON mdmemory.{table} EXECUTE FUNCTION suppress_redundant_updates_trigger()"
        for table in TABLES
    ),
    *(f"CREATE VIEW pg_temp.v_{table} AS SELECT * FROM mdmemory.{table}" for table in TABLES),
    *(f"SELECT * FROM pg_temp.v_{table}" for table in TABLES),
    "UPDATE mdmemory.file SET data = 'mine'",
    "UPDATE mdmemory.file SET folder = (SELECT min(id) FROM mdmemory.folder)",
    "UPDATE mdmemory.folder SET seq = 0, bytes = 0, files = 0, forgotten = 0",
    "UPDATE mdmemory.folder SET name = 'users/alice'",
    "UPDATE mdmemory.folder SET max_bytes = 1",
    "INSERT INTO mdmemory.folder (name) VALUES ('users/bob') ON CONFLICT (name) DO UPDATE SET seq = 0",
    "INSERT INTO mdmemory.file SELECT n, 'x', 1, 1, 1, '', 'mine' FROM generate_series(1, 50) AS n",
    "INSERT INTO mdmemory.tail SELECT n, 'a.md', 13, 'mine' FROM generate_series(1, 50) AS n",
    "INSERT INTO mdmemory.gone SELECT n, 'a.md', 99 FROM generate_series(1, 50) AS n",
    "INSERT INTO mdmemory.access VALUES (session_user::regrole, '')",
    "SELECT mdmemory.give(session_user, '')",
    "SELECT mdmemory.take(session_user, 'users/alice')",
    "SELECT mdmemory.may('users/bob')",
    *(f"SELECT mdmemory.part({n}, 'a.md', 0, 100)" for n in range(1, 7)),
    *(f"SELECT mdmemory.put({n}, 99, 'a.md', 'mine', 'x')" for n in range(1, 7)),
    *(f"SELECT mdmemory.append({n}, 99, 'a.md', 'mine', '')" for n in range(1, 7)),
    *(f"SELECT mdmemory.remove({n}, 99, 'a.md')" for n in range(1, 7)),
    *(f"SELECT mdmemory.move({n}, 99, 'a.md', 'b.md')" for n in range(1, 7)),
    *(f"SELECT mdmemory.etag_now({n}, 'a.md')" for n in range(1, 7)),
    *(f"SELECT mdmemory.has_below({n}, 'a.md')" for n in range(1, 7)),
    *(f"SELECT mdmemory.ending({n}, 'log.md')" for n in range(1, 7)),
    "SELECT * FROM mdmemory.scan('users/bob', NULL, 0, '{}', '{}', '{}', 100, NULL)",
    "SELECT * FROM mdmemory.read('users/bob', '{a.md}', '{0}', '{100}', 1000)",
    "SELECT * FROM mdmemory.commit('users/bob', 'x', '{put}', '{a.md}', '{*}', '{mine}', '{x}', '{t}')",
    "SELECT * FROM mdmemory.find('users/bob', 'x', '{secret}', NULL, 10, '{a.md}', '{}', '{}')",
    "SELECT mdmemory.note('users/bob', 'x', '{a.md}', '{x}', '{13}', '{1}', '{h}', '{1}', '{1}', '{x}', "
    "'{x}', '{x}', '{x}', '{x}', '{x}')",
    "SELECT * FROM mdmemory.locked('users/bob')",
    "SELECT mdmemory.tell('users/bob')",
    "SET ROLE keeper",
    "SET ROLE mdmemory",
    "SET SESSION AUTHORIZATION keeper",
    "SET row_security = off",
    "SELECT data FROM mdmemory.file",
    "ALTER FUNCTION mdmemory.may(text) OWNER TO CURRENT_USER",
    "CREATE OR REPLACE FUNCTION mdmemory.may(folder_name text) RETURNS boolean LANGUAGE sql AS 'SELECT true'",
    "CREATE POLICY mine ON mdmemory.file USING (true)",
    "DROP POLICY scope ON mdmemory.file",
    "GRANT ALL ON ALL TABLES IN SCHEMA mdmemory TO PUBLIC",
]


@pytest.mark.parametrize("first", [SET, "SELECT set_config('mdmemory.folder', 'users/alice', false)", "SELECT 1"])
async def test_statements_of_ones_own_reach_nothing(alice: str, url: str, first: str) -> None:
    """No statement of a role, under whatever scope it sets, reads or changes what is another's, or its own rights."""
    before = await everything(url)
    async with await psycopg.AsyncConnection.connect(alice, autocommit=True) as connection:
        assert "alice" in connection.info.user
        await connection.execute(first.encode())
        await connection.execute("CREATE TEMP TABLE seen (what text)")
        for statement in STATEMENTS:
            with suppress(psycopg.Error):
                cursor = connection.cursor()
                if statement.startswith("COPY"):
                    async with cursor.copy(statement.encode()) as copy:
                        rows: Any = [bytes(part) async for part in copy]
                else:
                    await cursor.execute(statement.encode())
                    rows = await cursor.fetchall() if cursor.description else []
                if first != SET and "users/alice'" in first:
                    rows = [row for row in rows if "users/bob" in str(row) or "users/alice2" in str(row)]
                told = [row for row in rows if row not in [(None,), (False,), (b"",), ("",), (True,)]]
                is_ours = statement.endswith("migration") or statement.endswith("migration TO STDOUT")
                assert is_ours or not told or not any(word in str(told) for word in ("secret", "users/bob")), (statement, told)
                assert "may(" not in statement or rows in ([], [(False,)])
            with suppress(psycopg.Error):
                await connection.execute("RESET ROLE; RESET row_security")
    assert await everything(url) == before
    assert (
        await execute(url, "SELECT prefix FROM mdmemory.access WHERE role::text LIKE 'alice%%' AND prefix <> %s", "users/alice")
        == []
    )


COMMIT = "SELECT * FROM mdmemory.commit('{}', 'x', '{{put}}', '{{t.md}}', '{{*}}', '{{tea}}', '{{x}}', '{{t}}')"
SHADOWS = """
CREATE SCHEMA trap;
GRANT USAGE ON SCHEMA trap TO PUBLIC;
CREATE TEMP TABLE folder AS SELECT 1::bigint AS id, 'users/bob'::text AS name;
CREATE TEMP TABLE access AS SELECT 'users/bob'::text AS prefix;
CREATE FUNCTION trap.may(text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION trap.pg_has_role(name, name, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION trap.pg_has_role(name, oid, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION trap.starts_with(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE FUNCTION trap.yes(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';
CREATE OPERATOR trap.= (LEFTARG = text, RIGHTARG = text, FUNCTION = trap.yes);
CREATE FUNCTION trap.octet_length(bytea) RETURNS integer LANGUAGE plpgsql AS 'BEGIN RAISE ''trap''; END';
CREATE FUNCTION trap.set_config(text, text, boolean) RETURNS text LANGUAGE plpgsql AS 'BEGIN RAISE ''trap''; END';
CREATE FUNCTION trap.cardinality(text[]) RETURNS integer LANGUAGE plpgsql AS 'BEGIN RAISE ''trap''; END';
SET search_path = trap, pg_temp, pg_catalog, mdmemory;
"""


async def test_names_that_shadow_ours_reach_nothing(alice: str, url: str) -> None:
    """Tables, functions and operators of a role's own, first in its search path, are not taken for ours where rights are asked."""
    await execute(url, f"GRANT CREATE ON DATABASE {url.rpartition('/')[2]} TO PUBLIC")
    async with await psycopg.AsyncConnection.connect(alice, autocommit=True) as connection:
        await connection.execute(SHADOWS.encode())
        assert await (await connection.execute("SELECT starts_with('a', 'b'), 'a'::text = 'b'::text")).fetchone() == (True, True)
        rights = "SELECT mdmemory.may('users/bob'), mdmemory.may('users/alice')"
        assert await (await connection.execute(rights)).fetchone() == (False, True)
        await connection.execute(COMMIT.format("users/alice").encode())  # which as its owner runs nothing of ours
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await connection.execute(COMMIT.format("users/bob").encode())
        await connection.execute(SET.replace("set_config", "pg_catalog.set_config").encode())
        for table in ("folder", "file", "tail", "gone"):
            assert await (await connection.execute(f"SELECT * FROM mdmemory.{table}".encode())).fetchall() == []


async def test_names_of_others_do_not_reach_the_owner(alice: str, url: str) -> None:
    """What a role may make in the schema `public` is never called by the connections of others."""
    await execute(url, "GRANT CREATE ON SCHEMA public TO PUBLIC")
    trap = "CREATE FUNCTION public.{} RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE 'trap'; END$$"
    for function in ("starts_with(varchar, varchar)", "set_config(text, varchar, boolean)"):
        await execute(alice, trap.format(function))
    async with closing(url, "users/bob") as backend:
        await backend.scan()
        [(path,)] = await backend._database.rows("SELECT current_setting('search_path')", ())
    assert path == "pg_catalog, pg_temp"


OWN = [
    "UPDATE mdmemory.folder SET bytes = 0, files = 0",
    "UPDATE mdmemory.folder SET max_bytes = 1000000000, max_files = 1000000",
    "INSERT INTO mdmemory.file SELECT id, 'big.md', 1, 1, 1, '', 'big' FROM mdmemory.folder",
    "INSERT INTO mdmemory.tail SELECT id, 'a.md', 13, 'big' FROM mdmemory.folder",
    "UPDATE mdmemory.file SET data = 'big'",
    "DELETE FROM mdmemory.gone",
    "SELECT mdmemory.put(id, 9, 'big.md', 'big', '') FROM mdmemory.folder",
    "SELECT mdmemory.append(id, 9, 'a.md', 'big', '') FROM mdmemory.folder",
]


@pytest.mark.parametrize("statement", OWN)
async def test_limits_hold_for_statements_of_ones_own(alice: str, statement: str) -> None:
    """Also in the folder that it was given a role writes by commits alone, so no statement gets past the limits."""
    async with await psycopg.AsyncConnection.connect(alice, autocommit=True) as connection:
        await connection.execute("SELECT set_config('mdmemory.folder', 'users/alice', false)")
        assert await (await connection.execute("SELECT count(*) FROM mdmemory.folder")).fetchone() == (1,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await connection.execute(statement.encode())
