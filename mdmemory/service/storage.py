"""The storage as a service sees it: how long it takes, and whether it can be reached. Floor 7."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from mdmemory.backends.protocol import HEAD_BYTES, Backend, File, FileProblem, Op, Range, Scan, Version
from mdmemory.errors import ConfigError, MdmemoryError, Unavailable
from mdmemory.folder.opening import backend_of
from mdmemory.service.metrics import Metrics
from mdmemory.service.users import USER, location_of

NOBODY: Final = "_health"  # no user can have this name
PROBE_S: Final = 5.0
FRESH_S: Final = 1.0


class Metered:
    """A backend whose calls are timed; everything else of it is as it was."""

    def __init__(self, backend: Backend, metrics: Metrics) -> None:
        self._backend, self._metrics = backend, metrics

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    async def scan(self, known: Mapping[str, Version] = {}, *, head_bytes: int = HEAD_BYTES) -> Scan:
        """As the backend does."""
        with self._timed("scan"):
            return await self._backend.scan(known, head_bytes=head_bytes)

    async def read(self, wanted: Mapping[str, Range | None]) -> Mapping[str, File | FileProblem]:
        """As the backend does."""
        with self._timed("read"):
            return await self._backend.read(wanted)

    async def commit(self, commit_id: str, ops: Sequence[Op]) -> Mapping[str, str]:
        """As the backend does."""
        with self._timed("commit"):
            return await self._backend.commit(commit_id, ops)

    async def close(self) -> None:
        """As the backend does."""
        await self._backend.close()

    @contextmanager
    def _timed(self, verb: str) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        except Unavailable:
            self._metrics.storage_failed.labels(verb).inc()
            raise
        finally:
            self._metrics.storage.labels(verb).observe(time.perf_counter() - begun)


class Storage:
    """Where all memories lie.

    Args:
        template: a location with `{user}`.
    """

    def __init__(self, template: str, metrics: Metrics) -> None:
        self._metrics = metrics
        self._probe = Metered(backend_of(location_of(template, NOBODY)), metrics)
        self._parent = parent_of(template)
        self._answer: tuple[float, str | None] = (float("-inf"), None)
        self._lock = asyncio.Lock()

    async def problem(self) -> str | None:
        """What keeps it from being reached; None when it can be. What was found counts for a second."""
        async with self._lock:
            if time.monotonic() - self._answer[0] > FRESH_S:
                self._answer = time.monotonic(), await self._look()
            return self._answer[1]

    async def _look(self) -> str | None:
        if self._parent is not None and not os.access(self._parent, os.W_OK | os.X_OK):
            return "the folder of the memories is not there, or may not be written"
        try:
            async with asyncio.timeout(PROBE_S):
                await self._probe.scan()
        except TimeoutError:
            self._metrics.storage_failed.labels("scan").inc()
            return f"the storage did not answer within {PROBE_S:g} s"
        except MdmemoryError as error:
            return str(error)
        return None

    async def close(self) -> None:
        """Close what it looked through."""
        await self._probe.close()


def parent_of(template: str) -> Path | None:
    """The folder on this machine in which the users' folders lie; None for a location elsewhere."""
    url = urlsplit(template) if "://" in template else None
    if url is not None and url.scheme != "file":
        return None
    before = (unquote(url.path) if url else template).partition(USER)[0]
    return Path(before.rpartition("/")[0] or ("/" if before.startswith("/") else ".")).expanduser()


def check_parent(template: str) -> None:
    """Refuse a folder on this machine that is not there: a slip of the pen would give everybody an empty memory.

    Raises:
        ConfigError
    """
    parent = parent_of(template)
    if parent is not None and not parent.is_dir():
        raise ConfigError(f"There is no folder {parent.name!r} for the users' memories: make it, or correct the location.")
