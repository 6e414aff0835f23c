"""Several worker processes on one socket, and who watches over them. Floor 7.

uvicorn's own supervisor has no place at which streams can be told to end, and waits for its workers without a bound; so the workers
are started here, with the standard library, and each runs uvicorn's server.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import resource
import signal
import socket
import sqlite3
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Final

import uvicorn

from mdmemory.service.app import ServiceApp
from mdmemory.service.connections import Connection
from mdmemory.service.logs import log_lines
from mdmemory.service.metrics import SHARED
from mdmemory.service.rates import Rates
from mdmemory.service.serving import Serving
from mdmemory.service.tokens import TokenFile

logger = logging.getLogger("mdmemory.service")
LOOK_S: Final = 0.2
YOUNG_S: Final = 2.0  # a worker that dies sooner is started again only after this, lest starting be all that happens
SPARE_S: Final = 5.0
THREADS: Final = 64  # in which a disk is waited for: so many that one user's requests don't take them all


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker process, and when it was started, by the monotonic clock."""

    process: SpawnProcess
    begun: float


class Supervisor:
    """Starts workers, starts another where one died, and ends them when it is told to.

    Args:
        listener: on which all of them take connections.
        tokens: the file of tokens.
        workers: how many.
    """

    def __init__(self, serving: Serving, listener: socket.socket, tokens: Path, workers: int) -> None:
        self._serving, self._listener, self._tokens, self._wanted = serving, listener, tokens, workers
        self._workers: list[Worker] = []
        self._gone: list[int] = []  # whose requests still count
        self._is_over = False

    def run(self, started: Callable[[], object] = lambda: None) -> None:
        """Serve until SIGTERM or SIGINT.

        Args:
            started: is told when the workers are on their way; connections wait for them.
        """
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, self._end)
        with tempfile.TemporaryDirectory(prefix="mdmemory-service-") as place:
            numbers = Path(place, "metrics")
            numbers.mkdir()
            os.environ[SHARED] = str(numbers)  # which the workers inherit
            self._serving = replace(self._serving, counts=str(Path(place, "counts.sqlite")))
            rates = Rates(self._serving.counts)
            self._workers = [self._start() for _ in range(self._wanted)]
            started()
            while not self._is_over:
                wait([worker.process.sentinel for worker in self._workers if worker.process.is_alive()], LOOK_S)
                self._workers = [self._kept(worker, numbers) for worker in self._workers]
                self._forget(rates)
            self._stop()
            rates.close()

    def _end(self, number: int, frame: Any) -> None:
        self._is_over = True

    def _start(self) -> Worker:
        context = multiprocessing.get_context("spawn")  # a fork would share what is open here, and threads that are not there
        process = context.Process(target=work, args=(self._serving, self._listener, self._tokens), name="mdmemory worker")
        process.start()
        return Worker(process, time.monotonic())

    def _kept(self, worker: Worker, numbers: Path) -> Worker:
        """The worker, or one in its place."""
        process = worker.process
        if process.is_alive() or self._is_over or (time.monotonic() - worker.begun < YOUNG_S):
            return worker
        try:
            another = self._start()
        except OSError:  # memory or processes are short: it is tried again, and the other workers serve meanwhile
            logger.exception("no worker can be started in place of one that ended")
            return Worker(process, time.monotonic())
        from prometheus_client.multiprocess import mark_process_dead

        logger.error("worker %s ended with %s, and another is started", process.pid, process.exitcode)
        self._gone.append(process.pid or 0)
        with suppress(OSError):
            mark_process_dead(process.pid, str(numbers))  # type: ignore[no-untyped-call]  # the library says none
        process.close()
        return another

    def _forget(self, rates: Rates) -> None:
        """Take back what workers that are gone had begun; on a full disk, later."""
        with suppress(sqlite3.Error):
            while self._gone:
                rates.forget(self._gone[-1])
                self._gone.pop()

    def _stop(self) -> None:
        """Have every worker end; what does not end in time is killed, which loses nothing that was answered."""
        self._listener.close()
        for worker in self._workers:
            worker.process.terminate()
        until = time.monotonic() + 2 * self._serving.end_s + SPARE_S
        for worker in self._workers:
            worker.process.join(max(0.0, until - time.monotonic()))
            if worker.process.is_alive():
                logger.error("worker %s does not end, and is killed", worker.process.pid)
                worker.process.kill()
                worker.process.join()


class _Server(uvicorn.Server):
    """A server that ends its streams before it waits for its requests, and ends itself when nobody watches over it any more."""

    def __init__(self, config: uvicorn.Config, app: ServiceApp) -> None:
        super().__init__(config)
        self._app = app

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin."""
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(THREADS, "mdmemory"))
        await super().startup(sockets)
        if (parent := multiprocessing.parent_process()) is not None:
            loop.add_reader(parent.sentinel, self._orphaned, parent.sentinel)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End."""
        self._app.end()
        await super().shutdown(sockets)

    def _orphaned(self, sentinel: int) -> None:
        asyncio.get_running_loop().remove_reader(sentinel)
        self.should_exit = True


def work(serving: Serving, listener: socket.socket, tokens: Path) -> None:
    """What a worker process does."""
    log_lines()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with suppress(ValueError, OSError):  # an open memory takes some files
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    app = ServiceApp(serving, TokenFile(tokens, serving.limits))
    quiet: Mapping[str, Any] = {"log_config": None, "access_log": False, "server_header": False}
    config = uvicorn.Config(
        app, http=Connection, ws="none", lifespan="on", timeout_graceful_shutdown=serving.end_s, **quiet
    )  # another parser, where one is installed, bounds no head
    with suppress(KeyboardInterrupt):  # which uvicorn raises again when all is done
        _Server(config, app).run([listener])
