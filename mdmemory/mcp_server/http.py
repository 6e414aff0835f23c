"""The MCP server over streamable HTTP: on the loopback for everyone there, elsewhere only with a token. Floor 6."""

from __future__ import annotations

import hmac
import ipaddress
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from mdmemory.errors import ConfigError
from mdmemory.mcp_server.server import mcp_server
from mdmemory.memory import Memory

PATH: Final = "/mcp"
MAX_SESSIONS: Final = 100
_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class Address:
    """Where the server listens, and for whom.

    Args:
        port: 0 for any that is free.
        token: what clients must send as their bearer token; None for none.
        names: further names under which clients reach it, such as that of a proxy before it.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    names: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse to serve strangers.

        Raises:
            ConfigError: other machines could reach it without a token, or by a name that nobody knows.
        """
        if not _is_loopback(self.host) and not self.token:
            raise ConfigError(
                f"{self.host} is reached from other machines, so a token is needed: set MDMEMORY_TOKEN to a long random text. "
                "Without one only 127.0.0.1 is served."
            )
        if _is_wildcard(self.host) and not self.names:
            raise ConfigError(f"{self.host} is no name that clients use: say theirs with --allow-host, such as notes.example.org.")

    def security(self) -> TransportSecuritySettings:
        """The Host and Origin headers that are answered; others come from strangers' pages and names that lead here by a trick."""
        own = () if _is_wildcard(self.host) else (f"[{self.host}]" if ":" in self.host else self.host,)
        hosts = [*_LOOPBACK, *own, *self.names]
        origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
        any_port = [f"{name}:*" for name in (*hosts, *origins)]
        return TransportSecuritySettings(
            allowed_hosts=[*hosts, *any_port[: len(hosts)]], allowed_origins=[*origins, *any_port[len(hosts) :]]
        )


async def serve_http(memory: Memory, address: Address, started: Callable[[str], None] = lambda url: None) -> None:
    """Serve until the process is told to end.

    Args:
        started: is told the URL, as soon as clients can connect.

    Raises:
        ConfigError: it can't be served there.
    """
    address.check()
    app: ASGIApp = mcp_server(memory).streamable_http_app(
        streamable_http_path=PATH, host=address.host, transport_security=address.security(), max_sessions=MAX_SESSIONS
    )
    if address.token:
        app = _with_token(app, address.token)
    listener = _listen(address)
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=2)
    with listener:
        port = listener.getsockname()[1]
        started(f"http://{f'[{address.host}]' if ':' in address.host else address.host}:{port}{PATH}")
        await uvicorn.Server(config).serve(sockets=[listener])


def _listen(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family, backlog=128)
    except (OSError, OverflowError) as error:
        reason = os.strerror(error.errno or 0).lower() if isinstance(error, OSError) and error.errno else "no such address"
        raise ConfigError(f"{address.host}:{address.port} can't be listened on: {reason}. Choose another port.") from error


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


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_wildcard(host: str) -> bool:
    return host in ("", "0.0.0.0", "::")
