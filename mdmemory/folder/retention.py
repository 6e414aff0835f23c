"""How long the history is kept: what is too old, or too much, is dropped from its beginning, about once a day. Floor 3."""

from __future__ import annotations

import asyncio
import json
import logging
import uuid
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from mdmemory.backends.protocol import LOG, TAIL_BYTES, Backend, File, FileProblem, Put, Range
from mdmemory.config import Config
from mdmemory.errors import Conflict, MdmemoryError
from mdmemory.files.history import Intent, read_line, read_log
from mdmemory.folder.sweeping import etags_of, named_by_syncs, named_in, read_whole, replace_log, sizes_of

logger = logging.getLogger("mdmemory")
RETAINED: Final = ".mdmemory/retained"
"""When the history was last looked through."""
EVERY: Final = timedelta(days=1)
EVERY_COMMITS: Final = 500  # of one process, which may run for months
AT_ONCE: Final = 1_000  # objects that go in one commit, but for those of one line of the log


class Retention:
    """Keeps one folder's history within its limits, in the background.

    Args:
        config: `history_days` and `history_bytes`.
    """

    def __init__(self, backend: Backend, config: Config) -> None:
        self._backend, self._config = backend, config
        self._commits, self._has_begun = 0, not getattr(backend, "is_atomic", False)  # others are looked at when they are opened
        self._task: asyncio.Task[None] | None = None

    def begin(self, found: Mapping[str, File | FileProblem]) -> None:
        """Look through the history if it is time to, as what was read of `RETAINED` and of the log says."""
        log, self._has_begun = found[LOG], True
        if isinstance(log, File) and datetime.now(UTC) - _last(found[RETAINED]) > EVERY and self._may_have_much(log):
            self._start()

    def count(self) -> None:
        """Take note of a commit."""
        self._commits += 1
        if self._commits % EVERY_COMMITS == 0:
            self._start()
        elif not self._has_begun:
            self._has_begun = True
            self._task = asyncio.ensure_future(self._look())

    async def close(self) -> None:
        """Wait until it has been looked through."""
        while (task := self._task) is not None:
            await asyncio.gather(task, return_exceptions=True)
            if self._task is task:
                return

    def _may_have_much(self, log: File) -> bool:
        """Whether a log is long, or its beginning, which is then what was read of it, is old."""
        oldest = next(iter(read_log(log.data).intents), None)
        return log.size > TAIL_BYTES or (oldest is not None and oldest.at < _too_old(self._config))

    def _start(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._run())

    async def _look(self) -> None:
        try:
            found = await self._backend.read({LOG: Range(-TAIL_BYTES, TAIL_BYTES), RETAINED: None})
        except MdmemoryError as error:
            logger.info("the history could not be looked at: %s", error)
        else:
            self._task = None
            self.begin(found)

    async def _run(self) -> None:
        try:
            while await shorten(self._backend, self._config):
                pass
        except Conflict:
            logger.info("the history is being written to, and is shortened another time")
        except MdmemoryError as error:
            logger.warning("the history could not be shortened: %s", error)


def _last(file: File | FileProblem) -> datetime:
    try:
        return datetime.fromisoformat(json.loads(file.data)["at"]) if isinstance(file, File) else datetime.min.replace(tzinfo=UTC)
    except (ValueError, KeyError, TypeError):
        return datetime.min.replace(tzinfo=UTC)


def _too_old(config: Config) -> datetime:
    if config.history_days is None:
        return datetime.min.replace(tzinfo=UTC)
    return datetime.now(UTC) - timedelta(days=config.history_days)


async def shorten(backend: Backend, config: Config) -> bool:
    """Drop the beginning of a history that is older, or of what is larger, than its limits.

    Returns:
        Whether there may be more to drop.

    Raises:
        Conflict: others write to the log; nothing was dropped.
        Unavailable
    """
    log = await read_whole(backend, LOG) or b""
    named = await asyncio.to_thread(named_in, log)
    sizes = await sizes_of(backend, named)
    cut, rest = await asyncio.to_thread(_cut, log, sizes, config)
    swept = (named | sizes.keys()) - rest - await named_by_syncs(backend)
    now = datetime.now(UTC)
    retained = Put(RETAINED, json.dumps({"at": now.isoformat()}).encode() + b"\n")
    if not cut and not swept:
        await backend.commit(uuid.uuid4().hex, [retained])
        return False
    intent = Intent(uuid.uuid4().hex, now, "retention", "", (), swept=tuple(sorted(swept)))
    await replace_log(backend, log, log[cut:], intent, [retained])
    return True


def _cut(log: bytes, sizes: Mapping[str, int], config: Config) -> tuple[int, set[str]]:
    """Where the rest of the log begins, and which contents that names; what is cut off names not too many."""
    tail = read_log(log)
    unfinished = {intent.id for intent in tail.unfinished}
    count = Counter(etag for intent in tail.intents for etag in etags_of(intent))
    total, limit, oldest = len(log) + sum(sizes.values()), config.history_bytes, _too_old(config)
    cut = gone = 0
    while end := log.find(b"\n", cut) + 1:
        said = read_line(log[cut:end])
        if isinstance(said, Intent):
            is_much = limit is not None and total > limit and end <= len(log) - TAIL_BYTES
            if said.id in unfinished or gone >= AT_ONCE or not (said.at < oldest or is_much):
                break
            for etag in etags_of(said):
                count[etag] -= 1
                if not count[etag]:
                    gone += 1
                    total -= sizes.get(etag, 0)
        total -= end - cut
        cut = end
    return cut, {etag for etag, times in count.items() if times}
