"""Connections to a database, shared by all folders in it that a process has open, and what the database tells. Floor 1."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakKeyDictionary

from mdmemory.backends.postgres_set_up import CHANNEL, NOT_SET_UP, checked, set_up
from mdmemory.errors import ConfigError, Unavailable

if TYPE_CHECKING:
    import psycopg
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

logger = logging.getLogger("mdmemory")
MAX_CONNECTIONS: Final = 10  # of one process; its other statements wait for one
GIVE_UP_S: Final = 10.0  # how long a statement is asked again while the database can't be reached
RECONNECT_S: Final = 5.0  # pauses between the pool's tries double for so long; then the next statement begins anew, without one
STATEMENT_S: Final = 30
_PAUSE_S: Final = 0.1
_AWAY: Final = ("08", "57P", "53")  # SQLSTATE of connections that broke, of a server that ends or begins, and of one that is full
_NO_LOG_IN: Final = ("28000", "28P01", "3D000")
_AGAIN: Final = ("40001", "40P01")  # of statements that stood in each other's way
_MAX_TOLD: Final = 100_000
T = TypeVar("T")
Statement = tuple[str, Sequence[object]]


class Lost(Unavailable):
    """The connection broke before the answer came: whether the statement was carried out is not known."""


class Database:
    """One database, in one event loop; made by `shared`."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.news = News(address)
        self._users = 0
        self._pool: AsyncConnectionPool[AsyncConnection[Any]] | None = None
        self._is_set_up = False
        self._opening = asyncio.Lock()

    async def rows(
        self,
        statement: str,
        values: Sequence[object],
        *,
        again: bool = True,
        first: Statement | None = None,
        then: str = "",
    ) -> list[tuple[Any, ...]]:
        """Carry out one statement, as a transaction of its own.

        Args:
            again: whether it may be carried out twice, so that it is asked again when the answer was lost.
            first: another statement and its values, to carry out before, in the same round trip.
            then: a statement about the folder, the first of `values`, to carry out afterwards, in the same round trip.

        Returns:
            Its rows; none while the database has no tables yet.

        Raises:
            Lost: the answer was lost, and either `again` was false or the database can't be reached.
            Unavailable: the statement was not carried out.
            psycopg.Error: the statement says no.
        """
        give_up = time.monotonic() + GIVE_UP_S
        while True:
            try:
                if not await self._ready():
                    return []
                each = [*([first] if first else []), (statement, values), *([(then, values[:1])] if then else [])]
                return await self._asked(each, 1 if first else 0, give_up)
            except Lost as error:
                if not again or time.monotonic() + _PAUSE_S > give_up:
                    raise
                logger.info("the memory's database is asked again: %s", error.__cause__)
                await asyncio.sleep(_PAUSE_S)

    async def set_up(self) -> None:
        """Make the tables, or bring them up to date.

        Raises:
            Unavailable, ConfigError: they can't be made.
        """
        if not await self._ready():
            await self._connected(set_up)
            self._is_set_up = True

    async def close(self) -> None:
        """Close all connections."""
        await self.news.close()
        if self._pool is not None:
            await self._pool.close()

    async def _ready(self) -> bool:
        """Open the pool, and say whether there are tables; the first connection shows at once what is wrong with the address."""
        async with self._opening:
            if self._pool is None:
                from psycopg_pool import AsyncConnectionPool

                self._is_set_up = await self._connected(checked)
                self._pool = AsyncConnectionPool(
                    self.address,
                    min_size=1,
                    max_size=MAX_CONNECTIONS,
                    kwargs=_OPTIONS,
                    configure=_configured,
                    open=False,
                    reconnect_timeout=RECONNECT_S,
                )
                await self._pool.open()
            elif not self._is_set_up:
                self._is_set_up = await self._connected(checked)
        return self._is_set_up

    async def _connected(self, work: Callable[[AsyncConnection[Any]], Awaitable[T]]) -> T:
        import psycopg

        try:
            async with await psycopg.AsyncConnection.connect(
                self.address, connect_timeout=int(GIVE_UP_S), **_OPTIONS
            ) as connection:
                return await work(connection)
        except psycopg.Error as error:
            raise _explained(error) from error

    async def _asked(self, statements: Sequence[Statement], wanted: int, give_up: float) -> list[tuple[Any, ...]]:
        """Carry out statements, each a transaction of its own, and return the rows of one of them."""
        import psycopg
        from psycopg_pool import PoolTimeout

        assert self._pool is not None
        try:
            async with self._pool.connection(timeout=max(0.1, give_up - time.monotonic())) as connection:
                if len(statements) == 1:
                    return await (await connection.execute(*statements[0], binary=True)).fetchall()
                async with connection.pipeline() as pipeline:
                    cursors = []
                    for statement, values in statements:
                        cursors.append(await connection.execute(statement, values, binary=True))
                        await (
                            pipeline.sync()
                        )  # the end of a transaction: what a later one waits for holds no lock of an earlier one
                    return await cursors[wanted].fetchall()
        except PoolTimeout as error:
            raise Unavailable(_AWAY_TEXT) from error
        except psycopg.Error as error:
            lost = _explained(error)
            if isinstance(lost, Lost):
                await self._pool.check()  # the others broke with it
            if not isinstance(lost, Unavailable):
                raise
            raise lost from error


class News:
    """What the database tells of changed folders, by `LISTEN`: from the first question on, with a connection of its own."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._told: dict[str, int] = {}
        self._task: asyncio.Task[None] | None = None
        self.heard = 0
        """Grows whenever it begins to listen: what was looked at before that may be out of date."""
        self.is_listening = False

    def may_have(self, life: str | None, seq: int, heard: int) -> bool:
        """Whether a folder may have changed since a scan.

        Args:
            life, seq: what the scan said of the folder.
            heard: as it was before the scan.
        """
        if self._task is None:
            self._begin()
        return not self.is_listening or heard != self.heard or life is None or self._told.get(life, 0) > seq

    async def close(self) -> None:
        """End the connection."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    def _begin(self) -> None:
        with suppress(RuntimeError):  # no loop runs: whoever asks so looks for themselves
            self._task = asyncio.get_running_loop().create_task(self._listen(), name="mdmemory listens")

    async def _listen(self) -> None:
        import psycopg

        pause = _PAUSE_S
        while True:
            try:
                async with await psycopg.AsyncConnection.connect(self._address, connect_timeout=int(GIVE_UP_S), **_OPTIONS) as told:
                    await told.execute(f"LISTEN {CHANNEL}")
                    self.heard, self.is_listening, pause = self.heard + 1, True, _PAUSE_S
                    async for notice in told.notifies():
                        self._take(notice.payload)
            except psycopg.Error as error:
                logger.info("the memory's database tells of no changes for now, so every look asks: %s", error)
            finally:
                self.is_listening = False
            await asyncio.sleep(pause)
            pause = min(pause * 2, GIVE_UP_S)

    def _take(self, payload: str) -> None:
        life, _, seq = payload.partition(" ")
        if len(self._told) >= _MAX_TOLD:
            self._told.clear()
            self.heard += 1
        if seq.isdecimal():
            self._told[life] = max(int(seq), self._told.get(life, 0))


_OPTIONS: Final[dict[str, Any]] = {"autocommit": True, "application_name": "mdmemory"}
_AWAY_TEXT: Final = "the memory's database can't be reached. Nothing was lost: try again in a moment."
_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Database]] = WeakKeyDictionary()


def acquire(address: str) -> Database:
    """The database at an address, for the running event loop; `release` it."""
    databases = _shared.setdefault(asyncio.get_running_loop(), {})
    found = databases.get(address) or databases.setdefault(address, Database(address))
    found._users += 1
    return found


async def release(database: Database) -> None:
    """Close a database with its last user."""
    database._users -= 1
    if not database._users:
        databases = _shared.get(asyncio.get_running_loop(), {})
        if databases.get(database.address) is database:
            del databases[database.address]
        await database.close()


async def _configured(connection: AsyncConnection[Any]) -> None:
    await connection.execute(f"SET statement_timeout = '{STATEMENT_S}s'")


def _explained(error: psycopg.Error) -> Exception:
    """What to say of an error that is not the statement's own; itself where it is."""
    import psycopg

    state = error.sqlstate or ""
    if state.startswith("MM"):
        return error
    if state == "57014":
        return Unavailable(f"the memory's database took more than {STATEMENT_S} s. Try again.")
    if state in _AGAIN or state.startswith(_AWAY) or (not state and isinstance(error, psycopg.OperationalError)):
        return Lost(_AWAY_TEXT)
    if state in NOT_SET_UP:
        return ConfigError("The memory's database was set up by another version of mdmemory, or its tables were taken away.")
    if state == "42501":
        return Unavailable("whoever is logged in to the memory's database has no right to this memory. Ask its owner.")
    if state in _NO_LOG_IN:
        return ConfigError("The memory's database refuses the log-in, or there is none of this name. Check its address.")
    logger.warning("the memory's database answers with an error: %s", error)
    return Unavailable(f"the memory's database answers with an error ({state}). Nothing was written.")
