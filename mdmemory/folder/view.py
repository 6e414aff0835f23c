"""What one process knows of the folder: kept true by scans, and by what other processes tell of in the log. Floor 3."""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mdmemory.backends.protocol import ABSENT, LINK, LOG, Backend, File, FileProblem, Put, etag_of
from mdmemory.backends.protocol import Delete as DeleteOp
from mdmemory.errors import Conflict, MdmemoryError
from mdmemory.files import index
from mdmemory.files.changes import Change, Create, Replace
from mdmemory.files.history import UNKNOWN, Intent, object_path
from mdmemory.folder.catalog import Catalog
from mdmemory.folder.commit import IndexChange, index_text, left_alone, updated_index
from mdmemory.folder.known import INDEX, Difference, Known, etag_in, is_memory_path, known_from
from mdmemory.folder.news import LogReader, Outside
from mdmemory.folder.recovery import heal, moves_in
from mdmemory.folder.retention import RETAINED, Retention
from mdmemory.folder.sweeping import finish_sweep
from mdmemory.folder.watch import Watcher
from mdmemory.recall.cache import Cache
from mdmemory.recall.remote import form_of
from mdmemory.recall.tokens import ENGLISH

logger = logging.getLogger("mdmemory")
GIVE_UP_S = 60.0  # how long a write keeps trying while other writers get in first


class View:
    """The catalog and the index of one backend, brought up to date before every write.

    Args:
        limits: the index's.
        languages: whose endings search ignores.
        watcher: tells of changes, where the system can.
        cache: what processes before this one knew.
        retention: keeps the history within its limits.
    """

    def __init__(
        self,
        backend: Backend,
        limits: index.Limits,
        languages: tuple[str, ...] = ENGLISH,
        watcher: Watcher | None = None,
        cache: Cache | None = None,
        retention: Retention | None = None,
    ) -> None:
        tables = getattr(backend, "term_tables", None)
        self.catalog = Catalog(languages, cache, tables(form_of(languages)) if tables else None)
        self.outside = Outside()
        self._backend, self._limits = backend, limits
        self._retention = retention
        self._watcher, self._is_up_to_date = watcher, False
        self._log = LogReader()
        self._changes: dict[str, int] = {}
        self._told: tuple[Intent, ...] = ()
        """What the log told before the first scan."""

    async def refresh(self, *, scan: bool = False) -> frozenset[str]:
        """Look at what the watcher names, or scan, and return the memory files that changed.

        Args:
            scan: scan in any case, as the watcher's news are of memory files only.

        Raises:
            Unavailable: could not look; what was known stays.
        """
        first = not self.catalog.scanned
        changed = None if scan else await self._named_by_watcher()
        if changed is None:
            changed = await self.catalog.refresh(self._backend)
        self._is_up_to_date = True
        if first:  # what changed while no process looked shows by what the log told before
            await self._take_in([replace(intent, added=()) for intent in self._told])  # which the look has seen
            self._told = ()
        else:
            self.mark_changed(changed)
            self.outside.notice(changed)
        return frozenset(changed)

    async def _named_by_watcher(self) -> dict[str, Difference] | None:
        """Read what the watcher names, and return what changed of it; None when it takes a scan."""
        if self._watcher is None:
            return None
        trusted, self._is_up_to_date = self._is_up_to_date, False  # what is named once must be taken in, or all is looked at
        named = await asyncio.to_thread(self._watcher.changed)
        if named is None or not trusted or self.catalog.needs_scan or named & self.catalog.skipped.keys():
            return None
        self.catalog.told(named)
        wanted = [path for path in sorted(named) if path == INDEX or is_memory_path(path)]
        found = await self._backend.read(dict.fromkeys(wanted)) if wanted else {}
        if any(isinstance(file, FileProblem) and file.kind != "absent" for file in found.values()):
            return None
        return self.catalog.take(found)

    async def unlink(self, path: str) -> None:
        """Remove a symbolic link."""
        await self._backend.commit(uuid.uuid4().hex, [DeleteOp(path, LINK)])

    async def close(self) -> None:
        """Wait for the history to be looked through, end the watcher, and close the cache."""
        if self._retention is not None:
            await self._retention.close()
        await self.catalog.note()
        self.catalog.close()
        if self._watcher is not None:
            await asyncio.to_thread(self._watcher.close)

    def mark_changed(self, paths: Iterable[str]) -> None:
        """Note that files changed now, for `changes_since`."""
        for mark, path in enumerate(paths, self.change_mark + 1):
            self._changes.pop(path, None)
            self._changes[path] = mark

    @property
    def change_mark(self) -> int:
        """A number that grows with every change that is noticed or made."""
        return next(reversed(self._changes.values()), 0)

    def changes_since(self, mark: int) -> list[str]:
        """The paths that changed after `change_mark` was `mark`, the latest first."""
        return list(itertools.takewhile(lambda path: self._changes[path] > mark, reversed(self._changes)))

    async def current(self, paths: Sequence[str]) -> Mapping[str, File | FileProblem]:
        """The files, the index and what was changed outside, in one round trip with the news of the log, which are dealt with."""
        while True:
            wanted = dict.fromkeys([*paths, *self.outside.kept(), INDEX])
            found = await self._backend.read({**wanted, LOG: self._log.wanted})
            told = self._log.take(found[LOG])
            noticed = await self._take_in(told.finished)
            if not (noticed or told.more or told.unfinished):
                return found
            for intent in () if told.more else told.unfinished:
                await self._finish(intent)

    def assumed(self, changes: Sequence[Change]) -> Mapping[str, File | FileProblem] | None:
        """What a commit may take for granted of its files and the index without a look, as its preconditions tell when it is wrong.

        Returns:
            None when something is not known well enough.
        """
        index_now = self.catalog.index_now
        if index_now is None or self.outside.changes:
            return None
        found: dict[str, File | FileProblem] = {}
        for change in changes:
            known = self.catalog.headers.known(change.path)
            if isinstance(change, Create) and is_memory_path(change.path) and known is None:
                found[change.path] = FileProblem("absent", "it does not exist")
            elif isinstance(change, Replace) and known and change.base_data is not None and known.etag == change.base:
                found[change.path] = File(change.base_data, change.base, len(change.base_data), known.mtime_ns)
            else:
                return None
        return {**found, INDEX: index_now}

    async def _take_in(self, commits: Sequence[Intent]) -> bool:
        """Learn, without a scan, what other processes wrote, and what of it people changed since.

        Returns:
            Whether something was noticed that only a later line of the log may explain.
        """
        if not self.catalog.scanned:
            self._told = (*self._told, *commits)
            return False
        latest = {change.path: change.after for intent in commits for change in intent.files if is_memory_path(change.path)}
        latest = {path: etag for path, etag in latest.items() if etag != UNKNOWN}
        self.outside.explain(commits)
        grown = [added.path for intent in commits for added in intent.added]
        stale = [*self._others_than(latest), *grown]
        if not stale:
            return False
        found = await self._backend.read(dict.fromkeys(stale))
        changed = self.catalog.take(found)
        self.mark_changed(changed)
        self.outside.notice(changed)
        self.outside.explain(commits)
        self.outside.explain_added({path: found[path] for path in grown})
        strange = {path: latest[path] for path in self._others_than(latest)}
        before = await self._logged(strange)
        self.outside.changes |= {path: (before.get(path), self.catalog.headers.known(path)) for path in strange}
        return len(stale) > len(grown) or any(path in self.outside.changes for path in grown)

    def _others_than(self, etags: Mapping[str, str | None]) -> list[str]:
        """The files that are neither what the log says nor known to have been changed outside since."""
        known, outside = self.catalog.headers.known, self.outside.changes
        others = [path for path, etag in etags.items() if etag_in(known(path)) != etag]
        return [path for path in others if path not in outside or etag_in(outside[path][0]) != etags[path]]

    async def _logged(self, etags: Mapping[str, str | None]) -> Mapping[str, Known]:
        """What is known of files as the log has them, from the history's objects where they are kept."""
        places = {path: object_path(etag) for path, etag in etags.items() if etag}
        found = await self._backend.read(dict.fromkeys(places.values())) if places else {}
        logged = {path: Known(0, 0, etag, None) for path, etag in etags.items() if etag}
        for path, place in places.items():
            if isinstance(file := found[place], File):
                logged[path], _ = known_from(path, file.data, file.size, file.mtime_ns)
        return logged

    async def recover(self) -> None:
        """Finish what was cut short, and see whether the history is to be shortened."""
        found = await self.current([RETAINED])
        if self._retention is not None:
            self._retention.begin(found)

    async def _finish(self, intent: Intent) -> None:
        """Wait for a commit of another process to end; if it was cut short, finish it."""
        if intent.swept:
            return await finish_sweep(self._backend, intent)
        if not self.catalog.scanned:
            await self.refresh()
        before = await heal(self._backend, intent, self.catalog.headers.listed)
        await self._take_in([intent])
        changed = {path: (listed, self.catalog.headers.listed.get(path)) for path, listed in before.items() if is_memory_path(path)}
        changed = {path: pair for path, pair in changed.items() if path not in self.catalog.headers.unreadable}
        updated, warnings = await self.write_index(changed, moves_in(intent))
        if updated is None:
            logger.warning("%s", *warnings)

    def outside_data(self, found: Mapping[str, File | FileProblem]) -> Mapping[str, bytes]:
        """The bytes that people left, where they are still what was seen."""
        files = {path: (found.get(path), etag_in(self.outside.changes[path][1])) for path in self.outside.kept()}
        return {path: file.data for path, (file, etag) in files.items() if isinstance(file, File) and etag in (None, file.etag)}

    def committed(self, paths: Iterable[str]) -> Outside:
        """Note a commit of these files; returns what people changed up to now, which has been written into the log with it."""
        self.mark_changed(paths)
        if self._retention is not None:
            self._retention.count()
        taken, self.outside = self.outside, Outside()
        return taken

    async def write_index(
        self, changed: Mapping[str, IndexChange], renamed: Mapping[str, str]
    ) -> tuple[index.Updated | None, tuple[str, ...]]:
        """Bring the index up to date by a commit of its own; what stands in the way is a warning, as the files are written."""
        give_up = time.monotonic() + GIVE_UP_S
        while True:
            try:
                found = (await self.current([]))[INDEX]
                known = (
                    self.catalog.headers.listed | self.catalog.headers.unreadable
                )  # by now others may have deleted what we wrote
                still = {path: (old, new if path in known else None) for path, (old, new) in changed.items()}
                updated = updated_index(index_text(found), still, self.catalog.headers.listed, self._limits, renamed)
                data, etag = updated.text.encode(), found.etag if isinstance(found, File) else None
                if etag_of(data) != (etag or etag_of(b"")):
                    await self._backend.commit(uuid.uuid4().hex, [Put(INDEX, data, etag or ABSENT)])
                    self.catalog.wrote(INDEX, data, time.time_ns())
            except Conflict as conflict:
                if time.monotonic() > give_up:
                    return None, (left_alone(conflict),)
                await asyncio.sleep(random.uniform(0, 0.01))
            except MdmemoryError as error:
                return None, (left_alone(error),)
            else:
                full = index.warning(updated, self._limits)
                return updated, (full,) if full else ()
