"""One connection to a database: how it is opened, when it is given up, and what its errors mean. Floor 1."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mdmemory.backends.postgres_set_up import NOT_SET_UP
from mdmemory.errors import ConfigError, Unavailable

if TYPE_CHECKING:
    import psycopg
    from psycopg import AsyncConnection

logger = logging.getLogger("mdmemory")
GIVE_UP_S: Final = 10.0  # how long a statement is asked again while the database can't be reached
STATEMENT_S: Final = 30  # how long the server works on one
ANSWER_S: Final = 40.0  # how long its answer is waited for: a network that is silent says nothing, not even that it broke
OPTIONS: Final[dict[str, Any]] = {"autocommit": True}
# Where the address says nothing; a peer that confirms nothing for half a minute is given up.
_DEFAULTS: Final[dict[str, Any]] = {
    "application_name": "mdmemory",
    "connect_timeout": int(GIVE_UP_S),
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,
}
_AWAY: Final = ("08", "57P", "53")  # SQLSTATE of connections that broke, of a server that ends or begins, and of one that is full
_AGAIN: Final = ("40001", "40P01")  # of statements that stood in each other's way
_REFUSED: Final = re.compile(
    r"authentication failed|does not exist|no pg_hba\.conf entry|no password supplied|not permitted to log in"
)
AWAY_TEXT: Final = "the memory's database can't be reached. Nothing was lost: try again in a moment."
_NO_ADDRESS: Final = "The address of the memory's database can't be read: write postgres://user@host/db, its parts percent-encoded."
T = TypeVar("T")


class Lost(Unavailable):
    """The connection broke before the answer came: whether the statement was carried out is not known."""


class NotDone(Unavailable):
    """The statement was not carried out, and may be asked again."""


async def connect(address: str) -> AsyncConnection[Any]:
    """Open a connection of one's own.

    Raises:
        psycopg.Error: as `explained` says it in our words.
    """
    import psycopg

    connection = await psycopg.AsyncConnection.connect(conninfo(address), **OPTIONS)
    try:
        await configure(connection)
    except BaseException:
        await connection.close()
        raise
    return connection


async def connected(address: str, work: Callable[[AsyncConnection[Any]], Awaitable[T]]) -> T:
    """Do some work with a connection of its own.

    Raises:
        Unavailable, ConfigError: what was wrong, in our words.
    """
    import psycopg

    try:
        async with await connect(address) as connection:
            with cut_when_silent(connection):
                return await work(connection)
    except psycopg.Error as error:
        raise explained(error) from error


def conninfo(address: str) -> str:
    """An address as libpq takes it, with what we would have where it says nothing.

    Raises:
        ConfigError: it is none.
    """
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    try:
        said = conninfo_to_dict(address)
        return make_conninfo("", **{**_DEFAULTS, **said})
    except psycopg.ProgrammingError:
        raise ConfigError(_NO_ADDRESS) from None  # its text quotes what may be a password


async def configure(connection: AsyncConnection[Any]) -> None:
    """Set what each connection needs: that names mean ours, whatever else is in the database, and that nothing takes for ever."""
    with cut_when_silent(connection):
        await connection.execute(
            f"SET statement_timeout = '{STATEMENT_S}s'; SET search_path = pg_catalog, pg_temp; "
            "SET default_transaction_isolation = 'read committed'"
        )


@contextmanager
def cut_when_silent(connection: AsyncConnection[Any], after_s: float | None = None) -> Iterator[None]:
    """Break a connection off when what is done with it takes too long; whoever waits for it learns that it broke.

    Args:
        after_s: `ANSWER_S` unless given.
    """
    timer = asyncio.get_running_loop().call_later(ANSWER_S if after_s is None else after_s, _cut, connection)
    try:
        yield
    finally:
        timer.cancel()


def _cut(connection: AsyncConnection[Any]) -> None:
    import psycopg

    logger.warning("the memory's database does not answer, so the connection to it is given up")
    with suppress(OSError, psycopg.Error), socket.fromfd(connection.fileno(), socket.AF_INET, socket.SOCK_STREAM) as same:
        same.shutdown(socket.SHUT_RDWR)


def explained(error: psycopg.Error) -> Exception:
    """What to say of an error that is not the statement's own; itself where it is."""
    import psycopg

    state = error.sqlstate or ""
    if state.startswith("MM"):
        return error
    if state == "57014":
        return Unavailable(f"the memory's database took more than {STATEMENT_S} s. Try again.")
    if not state and isinstance(error, psycopg.OperationalError) and _REFUSED.search(str(error)):  # a log-in has no SQLSTATE
        return ConfigError("The memory's database refuses the log-in, or there is none of this name. Check its address.")
    if state in _AGAIN:
        return NotDone(AWAY_TEXT)
    if state.startswith(_AWAY) or (not state and isinstance(error, psycopg.OperationalError)):
        return Lost(AWAY_TEXT)
    if state in NOT_SET_UP:
        return Unavailable("the memory's database was set up by another version of mdmemory, or its tables were taken away.")
    if state == "42501":
        return Unavailable("whoever is logged in to the memory's database has no right to this memory. Ask its owner.")
    if state == "25006":
        return Unavailable("the memory's database is read-only for now, so nothing was written. Reading and searching go on.")
    logger.warning("the memory's database answers with an error: %s", error)
    return Unavailable(f"the memory's database answers with an error ({state}). Nothing was written.")
