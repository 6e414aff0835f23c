"""A memory for programs without an event loop: it lives on one in a thread of its own. Floor 7."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from mdmemory.backends.protocol import Backend
from mdmemory.memory import Memory
from mdmemory.memory import open_memory as open_here

T = TypeVar("T")


class Bridge:
    """An open memory and the event loop on which it lives; made by `open_memory`."""

    def __init__(self, memory: Memory, loop: asyncio.AbstractEventLoop) -> None:
        self.memory = memory
        self._loop = loop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it on the memory's loop, and wait; from any thread but the loop's own."""
        done = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return done.result()
        finally:
            done.cancel()  # which an interrupted wait leaves running

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it on the memory's loop, and wait on the caller's."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))


@contextmanager
def open_memory(location: str | os.PathLike[str] | Backend, **options: Any) -> Iterator[Bridge]:
    """Open a memory: `with open_memory("memory") as memory:`; every adapter takes what it gives, for calls of either kind.

    Args:
        options: those of `mdmemory.open_memory`.

    Raises:
        ConfigError: the location or the model can't be used.
    """
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="mdmemory", daemon=True)
    thread.start()
    opening = open_here(location, **options)
    try:
        bridge = Bridge(asyncio.run_coroutine_threadsafe(opening.__aenter__(), loop).result(), loop)
        try:
            yield bridge
        finally:
            bridge.run(_close(opening))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _close(opening: Any) -> None:
    await opening.__aexit__(None, None, None)
    await asyncio.get_running_loop().shutdown_default_executor()
