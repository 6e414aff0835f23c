"""What changes in the folder, by whomever, told to the pages that are open, as server-sent events. Floor 6.

The folder is looked at for as long as somebody listens, and not between.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

from mdmemory.errors import MdmemoryError
from mdmemory.folder.any_folder import Folder, look, look_every_s, parts_of
from mdmemory.folder.known import INDEX

logger = logging.getLogger("mdmemory")
MAX_LISTENERS: Final = 100
ALIVE_S: Final = 15.0  # after which a silent stream says that it is one, so that a listener who left is noticed
MAX_WAITING: Final = 100  # events for one page; one that takes none for so long is to come again
MAX_PATHS: Final = 200  # in one event; a page that shows the list is told that there are more
Journal = tuple[tuple[str, int, int], ...]


class News:
    """Looks at the folder while pages are open, and tells each what changed."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._listeners: set[asyncio.Queue[str | None]] = set()
        self._task: asyncio.Task[None] | None = None
        self._is_over = False

    @property
    def is_full(self) -> bool:
        """Whether nobody else can listen."""
        return len(self._listeners) >= MAX_LISTENERS

    async def stream(self) -> AsyncIterator[str]:
        """The events for one page, until it leaves or the server ends."""
        queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._listeners.add(queue)
        if self._task is None and not self._is_over:
            self._task = asyncio.create_task(self._watch(), name="mdmemory news")
        try:
            yield "retry: 1000\n\n: hello\n\n"
            while not self._is_over:
                try:
                    async with asyncio.timeout(ALIVE_S):
                        event = await queue.get()
                except TimeoutError:
                    event = ": still here\n\n"
                if event is None:
                    return
                yield event
        finally:
            self._listeners.discard(queue)
            if not self._listeners and self._task is not None:
                self._task.cancel()
                self._task = None

    def end(self) -> None:
        """End every stream: a server that is told to end would wait for them."""
        self._is_over = True
        for queue in self._listeners:
            queue.put_nowait(None)

    async def _watch(self) -> None:
        mark, journal, index = self._folder.change_mark, self._journal(), await self._folder.index_file()
        while True:
            await asyncio.sleep(look_every_s(self._folder))
            try:
                await look(self._folder)
                changed = self._folder.changes_since(mark)
                other_journal, other_index = self._journal(), await self._folder.index_file()
            except MdmemoryError as error:
                logger.warning("the memory could not be looked at for changes: %s", error)
                continue
            except Exception:  # the edge of a background task: pages must go on hearing of later changes
                logger.exception("looking for changes in the memory failed")
                continue
            paths = [*changed[:MAX_PATHS], *([INDEX] if other_index != index else [])]
            if changed or other_index != index or other_journal != journal:
                self._tell(paths, is_journal=other_journal != journal)
            mark, journal, index = self._folder.change_mark, other_journal, other_index

    def _tell(self, paths: list[str], *, is_journal: bool) -> None:
        event = f"event: change\ndata: {json.dumps({'paths': paths, 'journal': is_journal})}\n\n"
        for queue in self._listeners:
            if queue.qsize() >= MAX_WAITING:
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(None)
            else:
                queue.put_nowait(event)

    def _journal(self) -> Journal:
        with suppress(KeyError):
            files = parts_of(self._folder)[""].catalog.journals
            return tuple((path, entry.size, entry.mtime_ns) for path, entry in files.items())
        return ()
