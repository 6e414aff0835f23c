"""Serving the web page until the process is told to end. Floor 6."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from types import FrameType

import uvicorn

from mdmemory.address import Address
from mdmemory.memory import Memory
from mdmemory.web.app import web_app
from mdmemory.web.guard import Guard
from mdmemory.web.news import News
from mdmemory.web.site import Site


async def serve_web(memory: Memory, address: Address, started: Callable[[str], None] = lambda url: None) -> None:
    """Serve until the process is told to end.

    Args:
        address: without a token, a random one is made for this run.
        started: is told the URL, token included, as soon as a browser can open it.

    Raises:
        ConfigError: it can't be served there.
    """
    address.check()
    token = address.token or secrets.token_urlsafe(24)
    site = Site(memory, token)
    app = Guard(web_app(site), address, token)
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=2)
    with address.listen() as listener:
        started(f"{address.url(listener.getsockname()[1])}/?token={token}")
        await _Server(config, site.news).serve(sockets=[listener])


class _Server(uvicorn.Server):
    """A server that ends its streams when it is told to end, and so need not wait for them."""

    def __init__(self, config: uvicorn.Config, news: News) -> None:
        super().__init__(config)
        self._news = news

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take the signal."""
        super().handle_exit(sig, frame)
        self._news.end()
