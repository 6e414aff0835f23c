"""The tables of a database: looked for, made, and brought up to date. Floor 1.

Each file in `postgres_schema/` is run once, in the order of the numbers that their names begin with, by whoever may make them.
"""

from __future__ import annotations

import logging
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from mdmemory.errors import ConfigError

if TYPE_CHECKING:
    from psycopg import AsyncConnection

logger = logging.getLogger("mdmemory")
CHANNEL: Final = "mdmemory"
NOT_SET_UP: Final = ("3F000", "42883", "42P01")  # SQLSTATE where a schema, a function or a table is missing
_LOCK: Final = 0x6D646D656D6F7279  # "mdmemory": of all who would make the tables at once, one does
_OLDEST: Final = 140_000
_FACTS = """SELECT current_setting('server_encoding'), current_setting('server_version_num')::int,
    to_regclass('mdmemory.migration'), (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = session_user)"""
_NO_POLICY = (
    "whoever is logged in to the memory's database may pass over row-level security, so only the names of folders keep them apart: "
    "log in as a role that is no superuser"
)
_DONE = "SELECT max(number) FROM mdmemory.migration"


def migrations() -> dict[int, str]:
    """The statements by number."""
    folder = files("mdmemory.backends") / "postgres_schema"
    return {int(file.name.split("_")[0]): file.read_text("utf-8") for file in sorted(folder.iterdir(), key=lambda file: file.name)}


async def checked(connection: AsyncConnection[Any]) -> bool:
    """Whether the tables are there; those of an older version are brought up to date, since without that nothing can be read.

    Raises:
        ConfigError: the database can't hold a memory, or its tables are of another version and whoever is logged in can't help it.
    """
    facts = await (await connection.execute(_FACTS)).fetchone()
    assert facts is not None
    encoding, version, table, is_kept_by_no_policy = facts
    if encoding != "UTF8" or version < _OLDEST:
        raise ConfigError("A memory needs PostgreSQL 14 or newer, and a database whose encoding is UTF8.")
    if is_kept_by_no_policy:
        logger.warning(_NO_POLICY)
    done = await _number(connection) if table else 0
    newest = max(migrations())
    if done > newest:
        raise ConfigError("The memory's database was set up by a newer version of mdmemory: install that one here too.")
    if 0 < done < newest:
        await set_up(connection)
    return done > 0


async def set_up(connection: AsyncConnection[Any]) -> None:
    """Make what is missing, in one transaction, unless another process just did.

    Raises:
        ConfigError: whoever is logged in may not make tables.
    """
    import psycopg

    try:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            await connection.execute("CREATE SCHEMA IF NOT EXISTS mdmemory")
            await connection.execute(
                "CREATE TABLE IF NOT EXISTS mdmemory.migration (number integer PRIMARY KEY, made timestamptz DEFAULT now())"
            )
            done = await _number(connection)
            for number, statements in migrations().items():
                if number > done:
                    await connection.execute(statements.encode())
                    await connection.execute("INSERT INTO mdmemory.migration VALUES (%s)", [number])
                    logger.info("the memory's database was brought to version %d of its tables", number)
    except psycopg.errors.InsufficientPrivilege as error:
        raise ConfigError(
            "The memory's database is not set up, or by an older version, and whoever is logged in may not change its tables. "
            "Ask its owner to run `mdmemory database set-up URL`."
        ) from error


async def _number(connection: AsyncConnection[Any]) -> int:
    (done,) = await (await connection.execute(_DONE)).fetchone() or (0,)
    return done or 0
