"""Who is let in, to whose memory, and how much of it at once. Floor 7.

Whose memory it is follows from the token and from nothing else: over MCP it comes as a bearer token, from a browser in the sealed
cookie that it was traded for. Each request asks anew whether it still holds, and while a stream is open so is it every few seconds.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl

from mcp.server.transport_security import RequestBodyLimitMiddleware
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mdmemory.errors import InvalidArguments, MdmemoryError
from mdmemory.service.logs import current
from mdmemory.service.memories import Memories
from mdmemory.service.metrics import Metrics
from mdmemory.service.opened import LIMITS, Opened
from mdmemory.service.rates import Rates, TooMuch
from mdmemory.service.sign_in import SignIn
from mdmemory.service.users import Authenticate, Limits, User
from mdmemory.web.guard import SAFE_METHODS, is_from_own_page, is_our_name, with_headers

logger = logging.getLogger("mdmemory.service")
ASK_AGAIN_S: Final = 2.0  # between two questions whether who listens is still let in
_SESSION: Final = b"mcp-session-id"
Pick = Callable[[Opened], ASGIApp]


class Asking:
    """Asks whose a token is."""

    def __init__(self, authenticate: Authenticate, metrics: Metrics) -> None:
        self._authenticate, self._metrics = authenticate, metrics

    async def __call__(self, token: str | None) -> User | None:
        """The user; None without a token, or with one that is nobody's or has run out."""
        if not token:
            return None
        try:
            user = await self._authenticate(token)
        except InvalidArguments as error:
            logger.warning("a token is of nobody: %s", error)
            user = None
        if user is None or (user.expires is not None and user.expires <= datetime.now(UTC)):
            self._metrics.unknown.inc()
            return None
        return user


class Doors:
    """The two ways to a memory: `mcp` and `web`, each an application."""

    def __init__(
        self,
        asking: Asking,
        sign_in: SignIn,
        memories: Memories,
        rates: Rates,
        limits: Limits,
        metrics: Metrics,
        hosts: frozenset[str],
    ) -> None:
        self._asking, self._sign_in, self._memories, self._rates = asking, sign_in, memories, rates
        self._limits, self._metrics, self._hosts = limits, metrics, hosts
        self.is_ending = False

    async def mcp(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let an MCP client in by its bearer token; each request stands alone, so that any worker can answer it."""
        headers = Headers(scope=scope)
        token = bearer_of(headers)
        user = await self._asking(token)
        if user is None or token is None:
            answer: Response = PlainTextResponse("A bearer token is needed.", 401, {"WWW-Authenticate": "Bearer"})
        elif scope["method"] != "POST":
            answer = PlainTextResponse("There are no sessions here: each request is a POST of its own.", 405, {"Allow": "POST"})
        else:
            scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] != _SESSION]}
            await self._serve(user, token, lambda opened: opened.mcp, _listens(headers))(scope, receive, send)
            return
        await answer(scope, receive, send)

    async def web(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a browser in by its cookie."""
        headers, send = Headers(scope=scope), with_headers(send)
        is_safe = scope["method"] in SAFE_METHODS
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        answer: ASGIApp
        if not is_our_name(headers, self._hosts):
            answer = PlainTextResponse("This name is not served here: see --allow-host.", 421)
        elif not is_safe and not is_from_own_page(headers):
            answer = PlainTextResponse("This did not come from a page of this service.", 403)
        elif scope["path"] in ("/sign-in", "/sign-out"):
            answer = await self._sign_in.answer(scope, receive)
        elif is_safe and any(name == "token" for name, _ in query):
            answer = await self._sign_in.trade(scope, query)
        elif (token := self._sign_in.token_of(scope)) is None or (user := await self._asking(token)) is None:
            answer = self._sign_in.page(401, scope["path"] if is_safe else "/")
        else:
            answer = self._serve(user, token, lambda opened: opened.web, scope["path"] == "/changes")
        await answer(scope, receive, send)

    def _serve(self, user: User, token: str, pick: Pick, is_stream: bool) -> ASGIApp:
        """Have a request answered by the user's own application, within their limits."""
        limits = user.limits or self._limits

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            if told := current.get():
                told.user, told.is_stream = user.name, is_stream
            try:
                if is_stream and self.is_ending:
                    raise TooMuch("ending", 1.0)
                with self._rates.taking(user, limits, "stream" if is_stream else "request"):
                    async with self._memories.of(user) as opened:
                        app = RequestBodyLimitMiddleware(pick(opened), limits.body_bytes)
                        scope = {**scope, LIMITS: limits}
                        if is_stream:
                            await self._while_let_in(user, token, app(scope, receive, send), send)
                        else:
                            await app(scope, receive, send)
                        return
            except TooMuch as much:
                answer = self._refusal(much)
            except MdmemoryError as error:
                logger.warning("a memory could not be opened: %s", error)
                answer = PlainTextResponse("The memory can't be opened now; try again in a moment.", 503, {"Retry-After": "5"})
            await answer(scope, receive, send)

        return serve

    def _refusal(self, much: TooMuch) -> Response:
        after = {"Retry-After": str(math.ceil(much.wait_s))}
        if much.limit == "ending":
            return PlainTextResponse("The service is about to end.", 503, after)
        self._metrics.refused.labels(much.limit).inc()
        return PlainTextResponse(
            f"This is more than you may take ({much.limit}): try again in {after['Retry-After']} s.", 429, after
        )

    async def _while_let_in(self, user: User, token: str, stream: Coroutine[Any, Any, None], send: Send) -> None:
        """Send a stream until it ends, or until its token is no longer the user's."""
        task = asyncio.create_task(stream)
        try:
            while not (await asyncio.wait([task], timeout=ASK_AGAIN_S))[0]:
                now = await self._asking(token)
                if now is None or now.name != user.name:
                    break
        finally:
            is_cut = task.cancel()
            await asyncio.wait([task])
        if not is_cut:
            task.result()
        elif (told := current.get()) and told.status:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


def _listens(headers: Headers) -> bool:
    """Whether an MCP request is a stream: the SDK holds the header against the body, but not in older protocols."""
    is_modern = headers.get("mcp-protocol-version") in MODERN_PROTOCOL_VERSIONS
    return is_modern and headers.get("mcp-method") == "subscriptions/listen"


def bearer_of(headers: Headers) -> str | None:
    """The bearer token of a request; None when it has none, or several."""
    given = headers.getlist("authorization")
    scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
    return token if scheme.lower() == "bearer" and token else None
