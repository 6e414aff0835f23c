"""The service as an ASGI application: all users at one address. Floor 7."""

from __future__ import annotations

import hmac
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from mdmemory.memory import Memory
from mdmemory.models import Model, model_from_string
from mdmemory.service.answering import Answering
from mdmemory.service.doors import Asking, Doors, bearer_of
from mdmemory.service.memories import Memories
from mdmemory.service.metrics import Metrics
from mdmemory.service.opened import Opened, open_for
from mdmemory.service.rates import Rates
from mdmemory.service.seal import Seal
from mdmemory.service.serving import Serving
from mdmemory.service.sign_in import SignIn
from mdmemory.service.storage import Storage
from mdmemory.service.users import Authenticate, User
from mdmemory.web.app import send_static
from mdmemory.web.guard import with_headers

logger = logging.getLogger("mdmemory.service")
Answer = Callable[[Scope], Awaitable[Response]]


class ServiceApp:
    """An ASGI application; its lifespan closes what it opened.

    Args:
        serving: how it serves.
        authenticate: says whose a token is, such as a `TokenFile` or a check of JWTs.
        model: of the conversations that a program holds in these memories; None for that of the settings.
    """

    def __init__(self, serving: Serving, authenticate: Authenticate, model: Model | None = None) -> None:
        self._serving, self._metrics = serving, Metrics()
        self._seal = Seal(serving.secret, serving.session_s)
        self._model = model
        self._memories = Memories(self._open, serving.most_idle, serving.idle_s, self._metrics.open.set)
        asking = Asking(authenticate, self._metrics)
        sign_in, self._rates = SignIn(asking, self._seal, serving.session_s), Rates(serving.counts, os.getpid())
        hosts = frozenset(host.casefold() for host in serving.hosts)
        self._doors = Doors(asking, sign_in, self._memories, self._rates, serving.limits, self._metrics, hosts)
        self._storage = Storage(serving.location, self._metrics)
        self._answers: Mapping[str, Answer] = {
            "/health": self._health,
            "/health/live": self._live,
            "/metrics": self._show_metrics,
        }
        self._router = Router(lifespan=self._lifespan)
        self._answering = Answering(self._choose, self._metrics)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or begin and end with the server."""
        await (self._answering if scope["type"] == "http" else self._router)(scope, receive, send)

    @asynccontextmanager
    async def memory(self, user: User) -> AsyncIterator[Memory]:
        """The open memory of a user, for a program that serves more than this: the same one that the user's requests get.

        Raises:
            MdmemoryError: it can't be opened, or the service ends.
        """
        async with self._memories.of(user) as opened:
            yield opened.memory

    def end(self) -> None:
        """Take note that the server is about to end: streams end, which it would wait for, and /health says so."""
        self._doors.is_ending = True
        self._memories.end_streams()

    @asynccontextmanager
    async def _lifespan(self, app: Any) -> AsyncIterator[None]:
        named = self._serving.settings.model
        try:
            own = model_from_string(named) if named and self._model is None else None
        except Exception:  # the server says no more than that it could not begin
            logger.exception("the model of the settings can't be used")
            raise
        self._model = own or self._model
        self._metrics.workers.set(1)
        try:
            yield
        finally:
            self.end()
            await self._memories.close(self._serving.end_s)
            await self._storage.close()
            self._rates.close()
            if close := getattr(own, "close", None):
                await close()

    def _open(self, user: User) -> AbstractAsyncContextManager[Opened]:
        return open_for(user, self._serving, self._model, self._seal.forms_of(user.name), self._metrics)

    async def _choose(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        app: ASGIApp
        if any(char < " " for char in path):  # to routes a page's name with a line end after it is that page, to nothing else here
            app = PlainTextResponse("There is no such page.", 404)
        elif path == "/mcp":
            app = self._doors.mcp
        elif path in self._answers:
            app = await self._answers[path](scope)
        elif path.startswith("/static/"):
            app, send = await _static(scope), with_headers(send)
        else:
            app = self._doors.web
        await app(scope, receive, send)

    async def _health(self, scope: Scope) -> Response:
        problem = "the service is about to end" if self._doors.is_ending else await self._storage.problem()
        if problem:
            logger.warning("not ready: %s", problem)
        return JSONResponse({"live": True, "ready": not problem}, 503 if problem else 200)

    async def _live(self, scope: Scope) -> Response:
        return JSONResponse({"live": True})

    async def _show_metrics(self, scope: Scope) -> Response:
        token = self._serving.metrics_token
        if token and not hmac.compare_digest((bearer_of(Headers(scope=scope)) or "").encode(), token.encode()):
            return PlainTextResponse("A bearer token is needed.", 401, {"WWW-Authenticate": "Bearer"})
        return Response(self._metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def _static(scope: Scope) -> Response:
    """A style or a script of the pages, which everybody may see."""
    version, _, name = scope["path"].removeprefix("/static/").partition("/")
    try:
        return await send_static(Request({**scope, "path_params": {"version": version, "name": name}}))
    except HTTPException as error:
        return PlainTextResponse(error.detail, error.status_code)
