"""The memories that are open in a worker: opened when somebody comes, closed when nobody has used them for a while. Floor 7."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from mdmemory.errors import Unavailable
from mdmemory.service.opened import Opened
from mdmemory.service.users import User

logger = logging.getLogger("mdmemory.service")
ENDING: Final = "the service is about to end: ask again in a moment"
Key = tuple[str, bool]
Open = Callable[[User], AbstractAsyncContextManager[Opened]]


class Memories:
    """Keeps memories open, each in a task of its own, since what is in it must be left where it was entered.

    Args:
        open_one: opens the memory of a user.
        most: how many that nobody uses stay open; those in use are never closed, and come on top.
        idle_s: after which one that nobody uses is closed.
        tell: is told how many are open.
    """

    def __init__(self, open_one: Open, most: int, idle_s: float, tell: Callable[[int], object] = lambda n: None) -> None:
        self._open_one, self._most, self._idle_s, self._tell = open_one, most, idle_s, tell
        self._places: OrderedDict[Key, _Place] = OrderedDict()
        self._sweeper: asyncio.Task[None] | None = None
        self._is_over = False

    def __len__(self) -> int:
        return len(self._places)

    @asynccontextmanager
    async def of(self, user: User) -> AsyncIterator[Opened]:
        """The memory of a user, which stays open for as long as the context lasts.

        Raises:
            MdmemoryError: it can't be opened, or the service ends.
        """
        key = user.name, user.read_only
        while (place := self._places.get(key)) is not None and place.leave.is_set():
            await asyncio.wait([place.task])
        if self._is_over:
            raise Unavailable(ENDING)
        if place is None:
            place = self._places[key] = _Place(self._open_one(user), lambda: self._gone(key))
            self._tell(len(self._places))
        if self._sweeper is None:
            self._sweeper = asyncio.create_task(self._sweep(), name="mdmemory idle memories")
        self._places.move_to_end(key)
        place.users += 1
        try:
            yield await asyncio.shield(place.ready)
        finally:
            place.users -= 1
            place.used = time.monotonic()
            self._shrink()

    def end_streams(self) -> None:
        """Tell all who listen that there is no more; who comes later hears it at once."""
        for place in self._places.values():
            if place.ready.done() and place.ready.exception() is None:
                place.ready.result().end_streams()

    async def close(self, within_s: float) -> None:
        """Close all of them, with what is being written in them; what takes longer than this is given up, and logged."""
        self._is_over = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        tasks = [place.task for place in self._places.values()]
        for place in self._places.values():
            place.leave.set()
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=within_s)
        for task in late:
            task.cancel()
        if late:
            logger.error("%d memories could not be closed within %g s", len(late), within_s)
            await asyncio.wait(late, timeout=within_s)

    def _gone(self, key: Key) -> None:
        del self._places[key]
        self._tell(len(self._places))

    def _shrink(self) -> None:
        """Close those used longest ago until no more than `most` are idle."""
        if len(self._places) <= self._most:
            return
        idle = [place for place in self._places.values() if place.is_idle]
        for place in idle[: max(0, len(idle) - self._most)]:
            place.leave.set()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(self._idle_s / 4)
            until = time.monotonic() - self._idle_s
            for place in self._places.values():
                if place.is_idle and place.used < until:
                    place.leave.set()


class _Place:
    """One memory, its task, and who uses it."""

    def __init__(self, made: AbstractAsyncContextManager[Opened], gone: Callable[[], None]) -> None:
        self.users, self.used = 0, time.monotonic()
        self.ready: asyncio.Future[Opened] = asyncio.get_running_loop().create_future()
        self.leave = asyncio.Event()
        self.task = asyncio.create_task(self._own(made), name="mdmemory open memory")
        self.task.add_done_callback(lambda task: gone())

    @property
    def is_idle(self) -> bool:
        """Whether nobody uses it, and nothing is being written in it."""
        is_open = self.ready.done() and not self.leave.is_set() and self.ready.exception() is None
        return is_open and not self.users and not self.ready.result().memory.is_busy

    async def _own(self, made: AbstractAsyncContextManager[Opened]) -> None:
        try:
            async with made as opened:
                self.ready.set_result(opened)
                await self.leave.wait()
        except Exception as error:  # whoever waits for it is told; after that, it is the edge of a background task
            self.leave.set()
            if self.ready.done():
                logger.exception("a memory was closed with an error")
            else:
                self.ready.set_exception(error)
                self.ready.exception()  # heard, even when whoever asked has gone
        except asyncio.CancelledError:
            self.leave.set()
            if not self.ready.done():
                self.ready.set_exception(Unavailable(ENDING))
                self.ready.exception()
