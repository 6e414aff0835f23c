"""One user's memory, as it is served: its MCP server and its web page. Floor 7."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import ASGIApp

from mdmemory.agent.searching import DEFAULT_FILES
from mdmemory.folder.mounts import Mount
from mdmemory.folder.opening import backend_of
from mdmemory.folder.permissions import allow_all, read_only
from mdmemory.mcp_server.http import security_of
from mdmemory.mcp_server.server import MemoryServer, mcp_server
from mdmemory.memory import Memory, open_memory
from mdmemory.models import Model
from mdmemory.service.metrics import Metrics
from mdmemory.service.serving import Serving
from mdmemory.service.storage import Metered
from mdmemory.service.users import Limits, User, location_of
from mdmemory.web.app import web_app
from mdmemory.web.site import Site

LIMITS = "mdmemory.limits"  # where a request's scope has those of its user


@dataclass(frozen=True, slots=True)
class Opened:
    """What is open for one user.

    Args:
        mcp, web: applications; who asks has been let in before.
    """

    memory: Memory
    mcp: ASGIApp
    web: ASGIApp
    site: Site
    server: MemoryServer

    def end_streams(self) -> None:
        """Tell all who listen that there is no more."""
        self.site.news.end()
        self.server.news.end()


@asynccontextmanager
async def open_for(user: User, serving: Serving, model: Model | None, csrf: str, metrics: Metrics) -> AsyncIterator[Opened]:
    """Open the memory of a user.

    Args:
        csrf: what their forms are known by.

    Raises:
        MdmemoryError: it can't be opened.
    """
    settings = serving.settings
    config = replace(settings.config, watch=False)  # the system lets a user watch 128 folders, as a rule
    mounts = {prefix: _mount(mount, user, metrics) for prefix, mount in settings.mounts.items()}
    home = Metered(backend_of(location_of(serving.location, user.name)), metrics)
    policy = read_only if user.read_only else allow_all
    async with open_memory(home, mounts=mounts, model=model, config=config, policy=policy) as memory:
        site, server = Site(memory, csrf, user.name), mcp_server(memory)
        server.middleware.append(_within_limits({"Search": DEFAULT_FILES, "recall": config.hint_max_tokens}))
        security = security_of(serving.hosts)
        sessions = StreamableHTTPSessionManager(
            server, stateless=True, json_response=True, security_settings=security, max_request_body_size=2**40
        )
        async with sessions.run():
            yield Opened(memory, sessions.handle_request, web_app(site), site, server)


def _mount(mount: Mount, user: User, metrics: Metrics) -> Mount:
    where = location_of(os.fspath(mount.location), user.name)  # type: ignore[arg-type]  # `Serving` takes no backends here
    return replace(mount, location=Metered(backend_of(where), metrics))


def _within_limits(usual: Mapping[str, int]) -> ServerMiddleware[Any]:
    """Let a search and a recall bring no more than the user may take.

    Args:
        usual: what each brings that does not say how much.
    """

    async def bounded(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        limits, params = getattr(ctx.request, "scope", {}).get(LIMITS), ctx.params or {}
        arguments, tool = params.get("arguments"), str(params.get("name"))
        if ctx.method == "tools/call" and tool in usual and isinstance(limits, Limits) and isinstance(arguments, dict):
            name, bound = ("limit", limits.results) if tool == "Search" else ("max_tokens", limits.answer_tokens)
            given = arguments.get(name)
            with suppress(TypeError, ValueError):  # what is no number is refused by the tool
                if float(usual[tool] if given is None else given) > bound:  # models send numbers as text, too
                    ctx = replace(ctx, params={**params, "arguments": {**arguments, name: bound}})
        return await call_next(ctx)

    return bounded
