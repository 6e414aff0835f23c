"""The MCP server over streamable HTTP: on the loopback for everyone there, elsewhere only with a token. Floor 6."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from typing import Final

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mdmemory.address import Address
from mdmemory.mcp_server.server import mcp_server
from mdmemory.memory import Memory

PATH: Final = "/mcp"
MAX_SESSIONS: Final = 100


async def serve_http(memory: Memory, address: Address, started: Callable[[str], None] = lambda url: None) -> None:
    """Serve until the process is told to end.

    Args:
        started: is told the URL, as soon as clients can connect.

    Raises:
        ConfigError: it can't be served there.
    """
    address.check()
    app: ASGIApp = mcp_server(memory).streamable_http_app(
        streamable_http_path=PATH, host=address.host, transport_security=security_of(address.hosts), max_sessions=MAX_SESSIONS
    )
    if address.token:
        app = _with_token(app, address.token)
    listener = address.listen()
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=2)
    with listener:
        started(f"{address.url(listener.getsockname()[1])}{PATH}")
        await uvicorn.Server(config).serve(sockets=[listener])


def security_of(hosts: Sequence[str]) -> TransportSecuritySettings:
    """The Host and Origin headers that are answered; others come from strangers' pages and names that lead here by a trick."""
    origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
    any_port = [f"{name}:*" for name in (*hosts, *origins)]
    return TransportSecuritySettings(
        allowed_hosts=[*hosts, *any_port[: len(hosts)]], allowed_origins=[*origins, *any_port[len(hosts) :]]
    )


def _with_token(app: ASGIApp, token: str) -> ASGIApp:
    """Let only requests with the token through."""

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = [value for name, value in scope["headers"] if name == b"authorization"]
            scheme, _, sent = given[0].partition(b" ") if len(given) == 1 else (b"", b"", b"")
            if scheme.lower() != b"bearer" or not hmac.compare_digest(sent, token.encode()):
                answer = PlainTextResponse("A bearer token is needed.", 401, {"WWW-Authenticate": "Bearer"})
                await answer(scope, receive, send)
                return
        await app(scope, receive, send)

    return guarded
