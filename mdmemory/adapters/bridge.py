"""A memory for code that can't await: it lives on an event loop in a thread of its own. Floor 7."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from mdmemory.backends.protocol import Backend
from mdmemory.memory import Memory
from mdmemory.memory import open_memory as open_here

T = TypeVar("T")


class Bridge:
    """An event loop in a thread, to which any thread may hand work."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="mdmemory bridge", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work on the loop and wait for it."""
        done = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return done.result()
        finally:
            done.cancel()  # what an interrupted wait left running

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work on the loop, and wait for it on the caller's."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def close(self) -> None:
        """End the loop; what it still runs is cancelled."""
        self.run(_end_others())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _end_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_default_executor()


@contextmanager
def entered(context: AbstractAsyncContextManager[T]) -> Iterator[tuple[Bridge, T]]:
    """Enter an async context, such as `open_memory(...)`, from code that can't await: the bridge, and what was entered."""
    bridge = Bridge()
    try:
        value = bridge.run(_enter(context))
        try:
            yield bridge, value
        finally:
            bridge.run(_leave(context))
    finally:
        bridge.close()


async def _enter(context: AbstractAsyncContextManager[T]) -> T:
    return await context.__aenter__()


async def _leave(context: AbstractAsyncContextManager[T]) -> None:
    await context.__aexit__(None, None, None)


@dataclass(frozen=True, slots=True)
class BridgedMemory:
    """An open memory and the bridge to it: adapters take it for calls of either kind."""

    memory: Memory
    bridge: Bridge


@contextmanager
def open_memory(location: str | os.PathLike[str] | Backend, **options: Any) -> Iterator[BridgedMemory]:
    """Open a memory for frameworks that call synchronously: `with open_memory("memory") as memory:`.

    Args:
        options: those of `mdmemory.open_memory`.

    Raises:
        ConfigError: the location or the model can't be used.
    """
    with entered(open_here(location, **options)) as (bridge, memory):
        yield BridgedMemory(memory, bridge)
