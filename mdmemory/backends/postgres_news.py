"""What a database tells of folders that others change, by `LISTEN`. Floor 1."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Any, Final

from mdmemory.backends.postgres_connection import GIVE_UP_S, connect, cut_when_silent
from mdmemory.backends.postgres_set_up import CHANNEL
from mdmemory.errors import MdmemoryError

logger = logging.getLogger("mdmemory")
ASK_S: Final = 15.0  # how often the connection is asked whether it still is one
_ANSWER_S: Final = 5.0
_PAUSE_S: Final = 0.1
_MAX_TOLD: Final = 100_000
_MAX_DIGITS: Final = 19  # anybody may tell anything


class News:
    """What one database tells: from the first question on, with a connection of its own."""

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
        if self._task is None or self._task.done():
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
                async with await connect(self._address) as told:
                    await self._ask(told, f"LISTEN {CHANNEL}")
                    self.heard, self.is_listening, pause = self.heard + 1, True, _PAUSE_S
                    while True:
                        async for notice in told.notifies(timeout=ASK_S):
                            self._take(notice.payload)
                        await self._ask(told, "SELECT")  # of a network that is silent nothing else would be known
            except (psycopg.Error, MdmemoryError) as error:
                logger.info("the memory's database tells of no changes for now, so every look asks: %s", error)
            finally:
                self.is_listening = False
            await asyncio.sleep(pause)
            pause = min(pause * 2, GIVE_UP_S)

    async def _ask(self, told: Any, statement: str) -> None:
        with cut_when_silent(told, _ANSWER_S):
            await told.execute(statement)

    def _take(self, payload: str) -> None:
        life, _, seq = payload.partition(" ")
        if len(self._told) >= _MAX_TOLD:
            self._told.clear()
            self.heard += 1
        if len(life) <= 36 and len(seq) <= _MAX_DIGITS and seq.isascii() and seq.isdecimal():
            self._told[life] = max(int(seq), self._told.get(life, 0))
