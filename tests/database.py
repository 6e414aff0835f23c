"""The PostgreSQL server of the tests, one a worker: started by the project's script; where none can run, that is said loudly."""

from __future__ import annotations

import asyncio
import itertools
import re
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from engine import say_what_did_not_run

from mdmemory.backends.postgres import PostgresBackend
from mdmemory.backends.protocol import Delete

SCRIPT = Path(__file__).parents[1] / "scripts" / "postgres"
NOT_TESTED = "PostgreSQL was NOT tested"
_numbers = itertools.count(1)


class Server:
    """A server of our own, which may be killed.

    Attributes:
        url: of its first database, as the user who owns it, and is no superuser.
    """

    def __init__(self) -> None:
        self._above = Path(tempfile.mkdtemp(prefix="mdmemory-postgres-"))
        self._above.chmod(0o711)  # it runs as another user
        self.folder = self._above / "server"
        self.url = self.start()

    def start(self) -> str:
        """Start it, or start it again."""
        done = subprocess.run([SCRIPT, "start", self.folder], capture_output=True, text=True, check=False)
        if done.returncode == 3:
            pytest.skip(f"{NOT_TESTED}: {done.stderr.strip().splitlines()[-1]}")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def kill(self) -> None:
        """End it as a power cut would."""
        subprocess.run([SCRIPT, "kill", self.folder], check=True)

    def stop(self) -> None:
        """End it, and delete what it held."""
        subprocess.run([SCRIPT, "stop", self.folder], capture_output=True, check=True)
        shutil.rmtree(self._above)

    def statements(self, since: int = 0) -> list[str]:
        """What was asked of the databases that `log` was called for, without its values.

        Args:
            since: how many to leave out.
        """
        lines = (self.folder / "log").read_text("utf-8", "replace").splitlines()
        found = [line.partition("LOG:  ")[2] for line in lines if "LOG:  execute" in line or "LOG:  statement" in line]
        return [line.partition(": ")[2] for line in found][since:]

    def log(self, url: str) -> None:
        """Note every statement in a database from now on."""
        import psycopg

        with psycopg.connect(as_admin(url), autocommit=True) as connection:
            connection.execute(f"ALTER DATABASE {url.rpartition('/')[2]} SET log_statement = 'all'".encode())

    def variables(self, name: str) -> dict[str, str]:
        """What the environment of a program has to say of a new database, so that its URL need not."""
        parts = urlsplit(self.new_database(name))
        return {"PGHOST": parts.hostname or "", "PGPORT": str(parts.port), "PGUSER": parts.username or "", "PGDATABASE": name}

    def new_database(self, name: str = "", *, more: str = "", owner: str = "mdmemory") -> str:
        """The URL of a database with nothing in it; one of that name goes before, and `more` is said where it is made."""
        import psycopg

        name = name or f"test_{next(_numbers)}"
        with psycopg.connect(as_admin(self.url), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
            connection.execute(f"CREATE DATABASE {name} OWNER {owner} {more}".encode())
        return self.url.removesuffix("/mdmemory") + f"/{name}"

    def new_tables(self) -> str:
        """The URL of a database that is set up."""
        url = self.new_database()

        async def first() -> None:
            async with closing(url, "first") as backend:
                await backend.commit("first", [Delete("first.md")])

        asyncio.run(first())
        return url

    def new_role(self, name: str) -> Callable[[str], str]:
        """Make a role that may log in and nothing else, unless it is there; returns how a database's URL reads for it."""
        import psycopg

        with psycopg.connect(as_admin(self.url), autocommit=True) as connection, suppress(psycopg.errors.DuplicateObject):
            connection.execute(f"CREATE ROLE {name} LOGIN".encode())
        return lambda url: re.sub("//[a-z_0-9]+@", f"//{name}@", url)

    def kept(self) -> str:
        """The URL of a database with nothing in it, whose owner is no superuser."""
        return self.new_role("keeper")(self.new_database(owner="keeper"))


@asynccontextmanager
async def closing(url: str, folder: str) -> AsyncIterator[PostgresBackend]:
    """A folder of a database, closed in the end."""
    backend = PostgresBackend(url, folder)
    try:
        yield backend
    finally:
        await backend.close()


async def execute(url: str, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """What a database answers to a statement of a connection of its own: the superuser's, unless the URL names a role of a test."""
    import psycopg

    url = url.replace("//mdmemory@", "//admin@")
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        cursor = await connection.execute(statement.encode(), values or None)
        return await cursor.fetchall() if cursor.description else []


def as_admin(url: str) -> str:
    """A URL for the superuser."""
    return re.sub("//[a-z_0-9]+@", "//admin@", url)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    """A server that no test ends."""
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def database(postgres: Server) -> str:
    """The URL of a database of the test's own."""
    return postgres.new_database()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say last and in red what did not run for want of a server."""
    say_what_did_not_run(terminalreporter, NOT_TESTED)
