"""The service as an application inside the test's own process, on a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import uvicorn

from mdmemory.service.app import ServiceApp


async def until(condition: Callable[[], object], wait_s: float = 10.0) -> None:
    """Wait for something to become true."""
    async with asyncio.timeout(wait_s):
        while not condition():
            await asyncio.sleep(0.02)


@asynccontextmanager
async def served(app: ServiceApp) -> AsyncIterator[str]:
    """The URL under which it is served."""
    config = uvicorn.Config(app, port=0, log_config=None, access_log=False, lifespan="on", timeout_graceful_shutdown=5)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    await until(lambda: server.started or task.done())
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        app.end()
        server.should_exit = True
        await task
