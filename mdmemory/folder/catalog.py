"""What is known of every memory file: learnt from scans, changed files only, and ready for the index and for recall. Floor 3."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection as Paths
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import islice

from mdmemory.backends.listing import Versions
from mdmemory.backends.paths import collision_key
from mdmemory.backends.protocol import (
    COULD_NOT_LOOK,
    NO_VERSION,
    Backend,
    Entry,
    File,
    FileProblem,
    Scan,
    Version,
    etag_of,
    shielded,
)
from mdmemory.backends.term_tables import TermTables
from mdmemory.errors import BackendError
from mdmemory.files.journal import session_of
from mdmemory.folder.headers import Headers
from mdmemory.folder.known import INDEX, Difference, Known, as_text, from_text, going_on, is_memory_path, is_same, known_from
from mdmemory.folder.larger import larger_texts
from mdmemory.folder.seen import journals_in, seen
from mdmemory.recall.cache import CACHE_ERRORS, Cache
from mdmemory.recall.ranking import LexicalIndex, Ranking
from mdmemory.recall.remote import RemoteIndex
from mdmemory.recall.tokens import ENGLISH

logger = logging.getLogger("mdmemory")
AT_ONCE = 128  # files read at a time, for which the event loop waits
WRITTEN_AT_ONCE = 1024  # files written in one transaction, for which it waits as long, and other processes too
FEW_NEWER = 64  # rows beside the versions in one piece that cost nothing to speak of
_SOMETHING = Known(0, 0, None, None)  # a file of which this process did not ask what it was


class Catalog:
    """Every memory file, kept by `refresh`; the only state a folder has between calls.

    Args:
        cache: what processes before this one knew; None for nothing.
        tables: where the backend keeps the words itself; None for here.
    """

    def __init__(self, languages: tuple[str, ...] = ENGLISH, cache: Cache | None = None, tables: TermTables | None = None) -> None:
        self._languages, self._tables = tuple(languages), tables
        self.skipped: Mapping[str, str] = {}
        self.index_data: bytes | None = None
        """MEMORY.md as last looked at; None when it is absent, larger than a scan's head, or unread."""
        self.journals: dict[str, Entry] = {}
        """Each conversation's file, as last looked at."""
        self.generation = 0
        """Grows with every file that is learnt or forgotten."""
        self.scanned = False
        self._unkept = 0
        self.cache, self.versions = cache or Cache(), Versions()  # the version of every visible file, memory file or not
        self.recall = self._new_recall()
        try:
            self.versions = self.cache.versions()
        except CACHE_ERRORS as error:
            self.cache.lose(error)
        self.headers = Headers(self.cache, not self.versions.listings, lambda path: path in self.versions)
        if INDEX in self.versions:
            self.versions.put(INDEX, NO_VERSION)  # its text is not in the cache

    def _begin_anew(self) -> None:
        """Go on with an empty cache: every file is read again, and what was there and is gone by now is noticed."""
        self.cache, self.versions = self.cache.renewed(), Versions.of(dict.fromkeys(self.versions, NO_VERSION))
        self.headers.go_on_with(self.cache)
        self.recall = self._new_recall()

    def _new_recall(self) -> LexicalIndex | RemoteIndex:
        return RemoteIndex(self._languages, self._tables) if self._tables else LexicalIndex(self._languages, self.cache)

    async def for_query(self, query: str, limit: int, allowed: AbstractSet[str] | None = None, also: Paths[str] = ()) -> Ranking:
        """What ranks the files for a query; see `recall.source.Part.prepared`."""
        return await self.recall.for_query(query, limit, allowed, also)

    @property
    def is_remote(self) -> bool:
        """Whether the backend keeps what recall knows, so that no cache here can be damaged."""
        return self._tables is not None

    async def note(self) -> None:
        """Have the backend keep what was read, where it does: others need not read it then."""
        if isinstance(self.recall, RemoteIndex):
            try:
                await self.recall.note()
            except BackendError as error:
                logger.info("what was read of the memory is not kept for others: %s", error)

    @property
    def files(self) -> Mapping[str, Known]:
        """Every memory file by path."""
        return self.headers.files

    def lookalike(self, path: str) -> str | None:
        """An existing file, memory file or not, whose name a person, or some disk, takes for this one."""
        key = collision_key(path)
        others = (other for other in self.versions if other != path and collision_key(other) == key)
        return self.headers.lookalike(path) or min(others, default=None)

    @property
    def is_bounded(self) -> bool:
        """Whether any file expires or supersedes another."""
        return bool(self.headers.bounded)

    def mount_of(self, path: str) -> str:
        """The prefix of the mount that a path belongs to: of a folder by itself, none."""
        return ""

    async def refresh(self, backend: Backend) -> dict[str, Difference]:
        """Scan, and read what changed.

        Returns:
            The memory files that changed; of the first scan, those that the cache did not know.
        """
        changed = self._news() if self.scanned else {}
        begins_anew = self.is_lost
        if begins_anew:
            self._begin_anew()
        scan = await backend.scan(self.versions)
        texts = await larger_texts(backend, scan, self.headers)
        await shielded(self._take_in(scan, texts, changed))
        now = {path: (before, self.headers.known(path)) for path, (before, _) in changed.items()}
        return {path: pair for path, pair in now.items() if not is_same(*pair) and not (begins_anew and pair[0] is None)}

    async def _take_in(self, scan: Scan, texts: Mapping[str, bytes], changed: dict[str, Difference]) -> None:
        """Learn what a scan saw, and add to `changed` what was known before of the files that are not as they were."""
        self.versions, gone = seen(self.versions, scan)
        self.journals.update(journals_in(self.versions, scan))
        for path in (*gone, *scan.heads, *scan.notes):
            if is_memory_path(path) and path not in changed:
                changed[path] = (self.headers.known(path), None)
        for path in gone:
            self.forget(path)
        for path, text in scan.notes.items():
            self._set(path, going_on(self.headers.known(path), from_text(path, text)))
            self.recall.remove(path)  # what was kept here is of another version
        heads = iter(scan.heads.items())
        while some := list(islice(heads, AT_ONCE)):
            self._learn_all(some, scan, texts)
            await asyncio.sleep(0)  # outside of transactions: another memory of this process may wait for the end of ours
        self._write()
        self.skipped = scan.skipped
        self.scanned = True
        self._keep(len(scan.heads) + len(gone))

    def _news(self) -> dict[str, Difference]:
        """Take in what other processes learnt and noted in the cache, so that it need not be read again."""
        changed: dict[str, Difference] = {}
        try:
            for path, version, text in self.cache.news():
                if version and text:
                    before = _SOMETHING if path in self.versions else None
                    changed[path] = (self.headers.known(path) if self.headers.is_loaded else before, None)
                    self._set(path, from_text(path, text))
                    self.versions.put(path, version)
                elif path in self.versions:  # forgotten, words and all: if it is there after all, it is read again
                    self.versions.put(path, NO_VERSION)
        except CACHE_ERRORS as error:
            self.cache.lose(error)
        return changed

    def _learn_all(self, heads: Iterable[tuple[str, bytes]], scan: Scan, texts: Mapping[str, bytes]) -> None:
        """Take in new files."""
        with self.cache.guarded(), self.cache.changing():
            for path, head in heads:
                entry = scan.files[path]
                if path == INDEX:
                    self.index_data = head if len(head) == entry.size else None
                elif is_memory_path(path):
                    self._learn(path, texts.get(path, head), entry.size, entry.mtime_ns, entry.version)
        self._write(WRITTEN_AT_ONCE)

    def _write(self, fewest: int = 1) -> None:
        """Have the words of what was learnt kept, with its version and header; after an error it will be read again."""
        if not isinstance(self.recall, RemoteIndex):
            with self.cache.guarded():
                self.recall.write(fewest=fewest)

    def _keep(self, changes: int) -> None:
        """Write all versions in one piece when many have changed since the last time."""
        self._unkept += changes
        if self._unkept > max(FEW_NEWER, len(self.versions) // 16):
            self._unkept = 0
            with self.cache.guarded():
                self.cache.keep(self.versions)

    @property
    def is_lost(self) -> bool:
        """Whether the cache is damaged, so that the next `refresh` reads every file."""
        return self.cache.is_lost

    def lose(self, error: Exception) -> None:
        """Take note that the cache is damaged."""
        self.cache.lose(error)

    def close(self) -> None:
        """Close the cache."""
        self.cache.close()

    @property
    def index_now(self) -> File | FileProblem | None:
        """MEMORY.md as last seen or written; None when it is there and unread."""
        if self.index_data is not None:
            return File(self.index_data, etag_of(self.index_data), len(self.index_data), 0)
        return None if INDEX in self.versions or INDEX in self.skipped else FileProblem("absent", "it does not exist")

    def take(self, found: Mapping[str, File | FileProblem]) -> dict[str, Difference]:
        """Take in memory files, or the index, that were read; returns the memory files that changed."""
        changed: dict[str, Difference] = {}
        for path, file in found.items():
            before = self.headers.known(path)
            if path == INDEX:
                self._take_index(file)
            elif isinstance(file, File):
                now = self.learn(path, file.data, file.size, file.mtime_ns)
                if not is_same(before, now):
                    changed[path] = (before, now)
            elif file.kind == "absent" and before is not None:
                self.forget(path)
                changed[path] = (before, None)
        return changed

    def told(self, paths: Iterable[str]) -> None:
        """Note that these files have changed, which of a journal is all that is known until it is read."""
        self.journals.update((path, Entry(0, time.time_ns(), NO_VERSION)) for path in paths if session_of(path) is not None)

    def _take_index(self, file: File | FileProblem) -> None:
        if isinstance(file, File):
            self.versions.put(INDEX, NO_VERSION)
            self.index_data = file.data
        elif file.kind == "absent":
            self.forget(INDEX)

    @property
    def needs_scan(self) -> bool:
        """Whether something is there of which only a scan tells: a file with a second name elsewhere, or what could not be seen."""
        return self.is_lost or any(
            path in self.versions or reason.startswith(COULD_NOT_LOOK) for path, reason in self.skipped.items()
        )

    def learn(self, path: str, data: bytes, size: int, mtime_ns: int, version: Version = NO_VERSION) -> Known:
        """Take in a file's bytes, or the first of them.

        Args:
            version: as a scan told; without it the next scan looks again.
        """
        known = self._learn(path, data, size, mtime_ns, version)
        self._write()
        return known

    def _learn(self, path: str, data: bytes, size: int, mtime_ns: int, version: Version) -> Known:
        """Take in a file's bytes; its words are to be written."""
        before, told_ns = self.headers.known(path), mtime_ns
        mtime_ns = min(mtime_ns, time.time_ns())  # a clock that was ahead must not make a file the newest until then
        known, document = known_from(path, data, size, mtime_ns, (before.header or before.last_good) if before else None)
        self.versions.put(path, version)
        self._set(path, known)
        if isinstance(self.recall, RemoteIndex):
            self.recall.put(path, document, told_ns, known.etag, size, as_text(known))
            return known
        if is_same(before, known):
            with self.cache.guarded(), self.cache.changing():
                if self.recall.touch(path, document, mtime_ns):
                    self.cache.note(path, version, as_text(known))
                    return known
        self.recall.add(path, document, mtime_ns, version, as_text(known))
        return known

    def _set(self, path: str, known: Known) -> None:
        self.generation += 1
        self.headers.set(path, known)

    def wrote(self, path: str, data: bytes, mtime_ns: int) -> None:
        """Take in what was just written; the next scan looks again, because only it knows the version."""
        if path == INDEX or is_memory_path(path):
            self.take({path: File(data, etag_of(data), len(data), mtime_ns)})

    def forget(self, path: str) -> None:
        """Drop a file that is gone."""
        if path == INDEX:
            self.index_data = None
        self.generation += 1
        self.headers.drop(path)
        self.journals.pop(path, None)
        self.versions.drop(path)
        with self.cache.guarded(), self.cache.changing():
            self.recall.remove(path)
            self.cache.forget(path)
