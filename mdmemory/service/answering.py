"""Around every request: its id, its line in the log, its numbers, and an answer where something failed. Floor 7."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import MutableMapping
from typing import Any, Final

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mdmemory.service.logs import Told, current, requests
from mdmemory.service.metrics import Metrics

logger = logging.getLogger("mdmemory.service")
_METHODS: Final = frozenset("GET HEAD POST PUT PATCH DELETE OPTIONS".split())
_ROUTES: Final = frozenset(
    "mcp health metrics sign-in sign-out static new file edit move index journal history review turns doctor changes".split()
)
BODY_S: Final = 120.0  # in which all of it must have come


class _Late(Exception):
    """The body of a request did not come in time."""


class Answering:
    """Has requests answered by the application behind it.

    Args:
        app: may fill in what `logs.current` holds.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        method = scope["method"] if scope["method"] in _METHODS else "other"
        told = Told(uuid.uuid4().hex, method, route_of(scope["path"]))

        loop = asyncio.get_running_loop()
        until: float | None = loop.time() + BODY_S

        async def receive_counted() -> MutableMapping[str, Any]:
            nonlocal until
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                raise _Late from None
            if not message.get("more_body"):
                until = None
            told.received += len(message.get("body", b""))
            return message

        async def send_told(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                told.status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", told.id.encode())]
            told.sent += len(message.get("body", b""))
            await send(message)

        before, begun = current.set(told), time.perf_counter()
        self._metrics.running.inc()
        try:
            await self._app(scope, receive_counted, send_told)
        except _Late:
            if not told.status:
                await PlainTextResponse("The rest of this request did not come in time.", 408)(scope, receive, send_told)
        except Exception:  # what failed is logged; the user is told by which id to ask for it, and nothing of the host
            logger.exception("a request failed")
            self._metrics.errors.labels(told.route).inc()
            if not told.status:
                await PlainTextResponse(f"This failed; the service's log has it as {told.id}.", 500)(scope, receive, send_told)
        finally:
            self._metrics.running.dec()
            self._tell(told, time.perf_counter() - begun)
            current.reset(before)

    def _tell(self, told: Told, took_s: float) -> None:
        self._metrics.requests.labels(told.route, str(told.status)).inc()
        if not told.is_stream:
            self._metrics.seconds.labels(told.route).observe(took_s)
        line = {"method": told.method, "route": told.route, "status": told.status, "duration_ms": round(took_s * 1000, 1)}
        requests.info("request", extra={**line, "received": told.received, "sent": told.sent})


def route_of(path: str) -> str:
    """The kind of page that an address is of; the rest of it may name files."""
    first = path.lstrip("/").partition("/")[0]
    return f"/{first}" if first in _ROUTES else "/" if path == "/" else "other"
