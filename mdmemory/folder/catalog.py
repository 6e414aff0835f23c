"""What is known of every memory file: learnt from scans, changed files only, and ready for the index and for recall. Floor 3."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from mdmemory.backends.paths import collision_key
from mdmemory.backends.protocol import (
    COULD_NOT_LOOK,
    MAX_FILE_BYTES,
    Backend,
    Entry,
    File,
    FileProblem,
    Range,
    Scan,
    Version,
    etag_of,
)
from mdmemory.errors import InvalidMemoryFile
from mdmemory.files.index import Listed
from mdmemory.files.journal import JOURNAL, session_of
from mdmemory.files.memory_file import Header, parse
from mdmemory.recall.collection import Document
from mdmemory.recall.dates import in_words, stated_date
from mdmemory.recall.ranking import LexicalIndex
from mdmemory.recall.tokens import ENGLISH

INDEX = "MEMORY.md"
MAX_RECALL_BYTES = 262_144


def is_markdown(path: str) -> bool:
    """Whether a path ends in `.md`."""
    return path.lower().endswith(".md")


def is_memory_path(path: str) -> bool:
    """Whether a path is that of a memory file: `.md`, and neither the index nor a journal."""
    return is_markdown(path) and path != INDEX and not path.startswith(JOURNAL)


@dataclass(frozen=True, slots=True)
class Known:
    """A memory file as last seen.

    Args:
        etag: None when only the head of a large file was read.
        header: None when the file is broken; `problem` then says why.
        last_good: the header before it broke, if this process saw it.
    """

    size: int
    mtime_ns: int
    etag: str | None
    header: Header | None
    problem: InvalidMemoryFile | None = None
    warnings: tuple[str, ...] = ()
    last_good: Header | None = None


Difference = tuple[Known | None, Known | None]
"""What was known of a file before and is known now; None for absent."""


def etag_in(known: Known | None) -> str | None:
    """The etag, where there is a file and it is known."""
    return None if known is None else known.etag


def is_same(before: Known | None, now: Known | None) -> bool:
    """Whether both are known to be the same bytes, or the same absence."""
    if before is None or now is None:
        return before is now
    return before.etag is not None and before.etag == now.etag


class Catalog:
    """Every memory file's header, kept by `refresh`; the only state a folder has between calls."""

    def __init__(self, languages: tuple[str, ...] = ENGLISH) -> None:
        self.files: dict[str, Known] = {}
        self.listed: dict[str, Listed] = {}
        """What the index says of each file that could be read, now or before it broke."""
        self.unreadable: dict[str, Listed] = {}
        """What a prompt says of the others; on disk they get no line, as it would be out of date once they are mended."""
        self.skipped: Mapping[str, str] = {}
        self.index_data: bytes | None = None
        """MEMORY.md as last looked at; None when it is absent, larger than a scan's head, or unread."""
        self.journals: dict[str, Entry] = {}
        """Each conversation's file, as last looked at."""
        self.recall = LexicalIndex(tuple(languages))
        self.bounded: set[str] = set()
        """Files that expire or supersede another."""
        self.generation = 0
        """Grows with every file that is learnt or forgotten."""
        self.scanned = False
        self._versions: dict[str, Version] = {}
        self._alike: defaultdict[str, set[str]] = defaultdict(set)

    async def refresh(self, backend: Backend) -> dict[str, Difference]:
        """Scan, and read what changed.

        Returns:
            The memory files that changed.
        """
        scan = await backend.scan(self._versions)
        texts = await self._recall_texts(backend, scan)
        changed: dict[str, Difference] = {}
        for path in self._vanished(scan):
            if path in self.files:
                changed[path] = (self.files[path], None)
            self.forget(path)
        for path, head in scan.heads.items():
            entry = scan.files[path]
            self._versions[path] = entry.version
            if path == INDEX:
                self.index_data = head if len(head) == entry.size else None
            elif is_memory_path(path):
                before = self.files.get(path)
                now = self.learn(path, texts.get(path, head), entry.size, entry.mtime_ns)
                if not is_same(before, now):
                    changed[path] = (before, now)
        self.journals.update((path, entry) for path, entry in scan.files.items() if session_of(path) is not None)
        self.skipped = scan.skipped
        self.scanned = True
        return changed

    @property
    def index_now(self) -> File | FileProblem | None:
        """MEMORY.md as last seen or written; None when it is there and unread."""
        if self.index_data is not None:
            return File(self.index_data, etag_of(self.index_data), len(self.index_data), 0)
        return None if INDEX in self._versions or INDEX in self.skipped else FileProblem("absent", "it does not exist")

    def take(self, found: Mapping[str, File | FileProblem]) -> dict[str, Difference]:
        """Take in memory files, or the index, that were read; returns the memory files that changed."""
        changed: dict[str, Difference] = {}
        for path, file in found.items():
            before = self.files.get(path)
            if path == INDEX:
                self._take_index(file)
            elif isinstance(file, File):
                self._versions[path] = ""  # only a scan knows it
                now = self.learn(path, file.data, file.size, file.mtime_ns)
                if not is_same(before, now):
                    changed[path] = (before, now)
            elif file.kind == "absent" and before is not None:
                self.forget(path)
                changed[path] = (before, None)
        return changed

    def told(self, paths: Iterable[str]) -> None:
        """Note that these files have changed, which of a journal is all that is known until it is read."""
        self.journals.update((path, Entry(0, time.time_ns(), "")) for path in paths if session_of(path) is not None)

    def _take_index(self, file: File | FileProblem) -> None:
        if isinstance(file, File):
            self._versions[INDEX], self.index_data = "", file.data
        elif file.kind == "absent":
            self.forget(INDEX)

    @property
    def needs_scan(self) -> bool:
        """Whether something is there of which only a scan tells: a file with a second name elsewhere, or what could not be seen."""
        return any(path in self._versions or reason.startswith(COULD_NOT_LOOK) for path, reason in self.skipped.items())

    def _vanished(self, scan: Scan) -> list[str]:
        gone = self._versions.keys() - scan.files.keys()
        unseen = tuple(path for path, reason in scan.skipped.items() if reason.startswith(COULD_NOT_LOOK))
        if unseen:  # what could not be looked at is not gone
            gone = {path for path in gone if not any(path == place or path.startswith(f"{place}/") for place in unseen)}
        return sorted(gone)

    async def _recall_texts(self, backend: Backend, scan: Scan) -> Mapping[str, bytes]:
        """The text of changed files that are larger than their head, in one round trip.

        Up to 256 KB of each; the whole only of one whose etag is known, so that the same bytes are seen to be the same.
        """
        large = {
            path: None if etag_in(self.files.get(path)) and scan.files[path].size <= MAX_FILE_BYTES else Range(0, MAX_RECALL_BYTES)
            for path, head in scan.heads.items()
            if scan.files[path].size > len(head) and is_memory_path(path)
        }
        found = await backend.read(large) if large else {}
        return {path: file.data for path, file in found.items() if isinstance(file, File)}

    def learn(self, path: str, data: bytes, size: int, mtime_ns: int) -> Known:
        """Take in a file's bytes, or the first of them."""
        before = self.files.get(path)
        mtime_ns = min(mtime_ns, time.time_ns())  # a clock that was ahead must not make a file the newest until then
        known, document = known_from(path, data, size, mtime_ns, (before.header or before.last_good) if before else None)
        self.files[path] = known
        self.generation += 1
        header = known.header or known.last_good
        if header and (header.valid_until or header.supersedes):
            self.bounded.add(path)
        else:
            self.bounded.discard(path)
        listed, other = (self.listed, self.unreadable) if header else (self.unreadable, self.listed)
        listed[path] = listed_as(path, known)
        other.pop(path, None)
        self._alike[collision_key(path)].add(path)
        self.recall.put(path, document, mtime_ns)
        return known

    def wrote(self, path: str, data: bytes, mtime_ns: int) -> None:
        """Take in what was just written; the next scan looks again, because only it knows the version."""
        self._versions[path] = ""
        if path == INDEX:
            self.index_data = data
        elif is_memory_path(path):
            self.learn(path, data, len(data), mtime_ns)

    def forget(self, path: str) -> None:
        """Drop a file that is gone."""
        if path == INDEX:
            self.index_data = None
        self.generation += 1
        self.bounded.discard(path)
        self._versions.pop(path, None)
        self.journals.pop(path, None)
        self.files.pop(path, None)
        self.listed.pop(path, None)
        self.unreadable.pop(path, None)
        self.recall.remove(path)
        self._alike[collision_key(path)].discard(path)

    def lookalike(self, path: str) -> str | None:
        """An existing file whose name a person, or some disk, takes for this one."""
        key = collision_key(path)
        if key == collision_key(INDEX):
            return INDEX if path != INDEX else None
        return min(self._alike.get(key, set()) - {path}, default=None)


def known_from(path: str, data: bytes, size: int, mtime_ns: int, last_good: Header | None = None) -> tuple[Known, Document]:
    """What a file's bytes, or the first of them, say of it; and what recall searches."""
    complete = len(data) == size
    etag = etag_of(data) if complete else None
    try:
        file = parse(path, data, complete=complete)
    except InvalidMemoryFile as error:
        text = data.decode("utf-8", "replace")[:MAX_RECALL_BYTES]
        return Known(size, mtime_ns, etag, None, error, last_good=last_good), Document(text)
    before = data.count(b"\n") - file.body.count("\n")
    return Known(size, mtime_ns, etag, file.header, warnings=file.warnings), _document(path, file.header, file.body, before)


def _document(path: str, header: Header, body: str, before: int) -> Document:
    stem = PurePosixPath(path).with_suffix("").as_posix()
    words = stem.replace("-", " ").replace("_", " ").replace("/", " ")
    fields = header.fields or {}
    dates = [value for value in (fields.get("date"), fields.get("created"), header.valid_from) if isinstance(value, str)]
    day = stated_date((*dates, header.description, header.name, stem))
    head = (words, header.name, header.description, " ".join(header.tags), in_words(day) if day else "")
    return Document(body[:MAX_RECALL_BYTES], "\n".join(head), day, before)


def listed_as(path: str, known: Known) -> Listed:
    """What the index says of a file; a broken one keeps what was last good, or says that it is broken."""
    header = known.header or known.last_good
    if header is None:
        return Listed(PurePosixPath(path).stem, "this file can't be read: see `mdmemory doctor`", mtime_ns=known.mtime_ns)
    return Listed(header.name, header.description, header.pinned, known.mtime_ns)
