"""Connections to a database, shared by all folders in it that a process has open. Floor 1."""

from __future__ import annotations

import asyncio
import logging
import time
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from mdmemory.backends.postgres_connection import (
    AWAY_TEXT,
    GIVE_UP_S,
    OPTIONS,
    Lost,
    NotDone,
    configure,
    connected,
    conninfo,
    cut_when_silent,
    explained,
)
from mdmemory.backends.postgres_news import News
from mdmemory.backends.postgres_set_up import checked, set_up
from mdmemory.errors import MdmemoryError, Unavailable

if TYPE_CHECKING:
    from psycopg import AsyncConnection
    from psycopg_pool import AsyncConnectionPool

logger = logging.getLogger("mdmemory")
MAX_CONNECTIONS: Final = 10  # of one process; its other statements wait for one
_PAUSE_S: Final = 0.1
_TELL = "SELECT mdmemory.tell(name) FROM unnest(%s::text[]) AS name"
Statement = tuple[str, Sequence[object]]


class Database:
    """One database, in one event loop; made by `acquire`."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.news = News(address)
        self._loop = weakref.ref(asyncio.get_running_loop())
        self._users = 0
        self._pool: AsyncConnectionPool[AsyncConnection[Any]] | None = None
        self._is_set_up = False
        self._opening = asyncio.Lock()
        self._untold: set[str] = set()
        self._telling: asyncio.Task[None] | None = None

    @property
    def is_here(self) -> bool:
        """Whether it is that of the running event loop."""
        return self._loop() is asyncio.get_running_loop()

    async def rows(
        self,
        statement: str,
        values: Sequence[object],
        *,
        again: bool = True,
        first: Statement | None = None,
    ) -> list[tuple[Any, ...]]:
        """Carry out one statement, as a transaction of its own.

        Args:
            again: whether it may be carried out twice, so that it is asked again when the answer was lost.
            first: another statement and its values, to carry out before, as a transaction of its own.

        Returns:
            Its rows; none while the database has no tables yet.

        Raises:
            Lost: the answer was lost, and either `again` was false or the database can't be reached.
            Unavailable: the statement was not carried out.
            psycopg.Error: the statement says no.
        """
        give_up = time.monotonic() + GIVE_UP_S
        lost: Lost | None = None
        while True:
            try:
                if not await self._ready():
                    return []
                return await self._asked([*([first] if first else []), (statement, values)], give_up)
            except Unavailable as error:
                lost = error if isinstance(error, Lost) else lost
                may_ask = isinstance(error, NotDone) or (isinstance(error, Lost) and again)
                if not may_ask or time.monotonic() + _PAUSE_S > give_up:
                    if lost is None or lost is error:
                        raise
                    raise lost from error  # the first may have been carried out, whatever the last one says
                logger.info("the memory's database is asked again: %s", error.__cause__)
                await asyncio.sleep(_PAUSE_S)

    def tell(self, folder: str) -> None:
        """Have whoever listens told of a change of a folder, soon: whoever made it does not wait for that."""
        self._untold.add(folder)
        if self._telling is None or self._telling.done():
            self._telling = asyncio.create_task(self._tell(), name="mdmemory tells")

    async def _tell(self) -> None:
        while self._untold:
            folders, self._untold = list(self._untold), set()
            try:
                await self.rows(_TELL, [folders])
            except MdmemoryError as error:
                logger.warning("a change of the memory is done, but nobody could be told of it: %s", error)
            except Exception:  # the edge of a background task, whose work others notice by themselves a little later
                logger.exception("telling of a change of the memory failed")

    async def set_up(self) -> None:
        """Make the tables, or bring them up to date.

        Raises:
            Unavailable, ConfigError: they can't be made.
        """
        if not await self._ready():
            await connected(self.address, set_up)
            self._is_set_up = True

    async def close(self) -> None:
        """Close all connections, once everything is told."""
        if self._telling is not None:
            await asyncio.gather(self._telling, return_exceptions=True)
        await self.news.close()
        if self._pool is not None:
            await self._pool.close()

    async def _ready(self) -> bool:
        """Open the pool, and say whether there are tables; the first connection shows at once what is wrong with the address."""
        async with self._opening:
            if not self._is_set_up:
                try:
                    self._is_set_up = await connected(self.address, checked)
                except Lost as error:
                    raise NotDone(AWAY_TEXT) from error
            if self._pool is None:
                from psycopg_pool import AsyncConnectionPool

                pool = AsyncConnectionPool(
                    conninfo(self.address),
                    min_size=1,
                    max_size=MAX_CONNECTIONS,
                    kwargs=OPTIONS,
                    configure=configure,
                    check=_check,
                    reconnect_timeout=GIVE_UP_S,  # then whoever needs a connection tries at once
                    open=False,
                )
                await pool.open()
                self._pool = pool
        return self._is_set_up

    async def _asked(self, statements: Sequence[Statement], give_up: float) -> list[tuple[Any, ...]]:
        """Carry out statements, each a transaction of its own, and return the rows of the last."""
        import psycopg
        from psycopg_pool import PoolTimeout

        assert self._pool is not None
        try:
            async with self._pool.connection(timeout=max(0.1, give_up - time.monotonic())) as connection:
                with cut_when_silent(connection):
                    for statement, values in statements[:-1]:
                        await connection.execute(statement, values, binary=True)
                    return await (await connection.execute(*statements[-1], binary=True)).fetchall()
        except PoolTimeout as error:
            raise Unavailable(AWAY_TEXT) from error
        except psycopg.Error as error:
            found = explained(error)
            if found is error:
                raise
            raise found from error


async def _check(connection: AsyncConnection[Any]) -> None:
    """Refuse a connection that the server has ended, without a round trip: the second look sees the end behind a last word."""
    connection.pgconn.consume_input()
    connection.pgconn.consume_input()


_shared: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Database]] = weakref.WeakKeyDictionary()


def acquire(address: str) -> Database:
    """The database at an address, for the running event loop; `release` it."""
    databases = _shared.setdefault(asyncio.get_running_loop(), {})
    found = databases.get(address) or databases.setdefault(address, Database(address))
    found._users += 1
    return found


async def release(database: Database) -> None:
    """Close a database with its last user; one of another event loop ended with that."""
    if not database.is_here:
        return
    database._users -= 1
    if not database._users:
        databases = _shared.get(asyncio.get_running_loop(), {})
        if databases.get(database.address) is database:
            del databases[database.address]
        await database.close()
