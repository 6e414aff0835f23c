"""Connections that don't wait for ever: a request must come in time, or its connection is closed. Floor 7."""

from __future__ import annotations

import asyncio
from typing import Final

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_S: Final = 30.0  # from a connection's begin, or a later request's first byte, to the end of the head


class Connection(H11Protocol):
    """A connection as uvicorn has it, whose head is bounded in time, as it is in size by h11."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin."""
        super().connection_made(transport)
        self._late = self.loop.call_later(HEAD_S, self._close_unless_answering)

    def data_received(self, data: bytes) -> None:
        """Read on."""
        super().data_received(data)
        if self._is_answering():
            self._in_time()
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_S, self._close_unless_answering)

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        self._in_time()
        super().connection_lost(exc)

    def _in_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _close_unless_answering(self) -> None:
        self._late = None
        if not self._is_answering():
            self.transport.close()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete
