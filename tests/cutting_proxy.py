"""A TCP proxy that breaks a connection off after so many bytes, or falls silent: what networks do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Literal
from urllib.parse import urlsplit

Direction = Literal["up", "down"]


class Proxy:
    """Stands before a server; also counts.

    Attributes:
        passed: the bytes that went each way since `arm`.
        opened: the connections that were made since.
        is_silent: nothing is passed on, and nothing is closed.
    """

    def __init__(self, url: str) -> None:
        self._host, self._port = urlsplit(url).hostname or "", urlsplit(url).port or 0
        self._url = url
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self.is_silent = False
        self.arm()

    def arm(self, *cuts: tuple[Direction, int]) -> None:
        """From now on, break off after so many bytes in a direction; one cut after the other, each counted from the one before."""
        self.passed: dict[Direction, bytes] = {"up": b"", "down": b""}
        self.opened = 0
        self._cuts = list(cuts)
        self._counted: dict[Direction, int] = {"up": 0, "down": 0}

    @property
    def has_cut(self) -> bool:
        """Whether there was an end of all cuts."""
        return not self._cuts

    @property
    def url(self) -> str:
        """The URL of the database through the proxy."""
        assert self._server is not None
        return self._url.replace(f":{self._port}/", f":{self._server.sockets[0].getsockname()[1]}/")

    async def __aenter__(self) -> Proxy:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self._abort()
        await asyncio.sleep(0)

    def _abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        far_reader, far_writer = await asyncio.open_connection(self._host, self._port)
        both = {writer, far_writer}
        self._writers |= both
        with suppress(ConnectionError, asyncio.CancelledError):
            await asyncio.gather(self._pass(reader, far_writer, "up", both), self._pass(far_reader, writer, "down", both))
        self._writers -= both

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Direction, both: set[asyncio.StreamWriter]
    ) -> None:
        while data := await reader.read(65_536):
            while self.is_silent:
                await asyncio.sleep(0.01)
            room = self._room(way)
            if room is not None and len(data) >= room:
                writer.write(data[:room])
                with suppress(ConnectionError):
                    await writer.drain()
                await asyncio.sleep(0.002)  # what was passed on arrives, before the connection is gone
                self._cuts.pop(0)
                self._counted = {"up": 0, "down": 0}
                for each in both:
                    each.transport.abort()
                return
            self._counted[way] += len(data)
            self.passed[way] += data
            writer.write(data)
            await writer.drain()
        writer.close()

    def _room(self, way: Direction) -> int | None:
        if not self._cuts or self._cuts[0][0] != way:
            return None
        return self._cuts[0][1] - self._counted[way]


def steps(passed: bytes, *, is_startup: bool = False) -> Iterator[int]:
    """Where to break off what was passed one way: before, within and after each of PostgreSQL's messages.

    Args:
        is_startup: whether it begins with a client's first message, which has no kind.
    """
    at = 0
    while at < len(passed):
        head = 0 if is_startup and at == 0 else 1
        length = head + int.from_bytes(passed[at + head : at + head + 4])
        yield from {at, at + 3, at + length // 2}
        at += length
    yield at
