"""What is known of every memory file: learnt from scans, changed files only, and ready for the index and for recall. Floor 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from mdmemory.backends.paths import collision_key
from mdmemory.backends.protocol import COULD_NOT_LOOK, Backend, File, Range, Scan, Version, etag_of
from mdmemory.errors import InvalidMemoryFile
from mdmemory.files.index import Listed
from mdmemory.files.memory_file import Header, MemoryFile, parse
from mdmemory.recall.dates import in_words, stated_date
from mdmemory.recall.ranking import LexicalIndex
from mdmemory.recall.tokens import ENGLISH

INDEX = "MEMORY.md"
JOURNAL = "journal/"
MAX_RECALL_BYTES = 262_144


def is_memory_path(path: str) -> bool:
    """Whether a path is that of a memory file: `.md`, and neither the index nor a journal."""
    return path.lower().endswith(".md") and path != INDEX and not path.startswith(JOURNAL)


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


class Catalog:
    """Every memory file's header, kept by `refresh`; the only state a folder has between calls."""

    def __init__(self, languages: tuple[str, ...] = ENGLISH) -> None:
        self.files: dict[str, Known] = {}
        self.listed: dict[str, Listed] = {}
        self.skipped: Mapping[str, str] = {}
        self.index_data: bytes | None = None
        """MEMORY.md as last scanned; None when it is absent, larger than a head, or unread."""
        self.recall = LexicalIndex(languages)
        self.bounded: set[str] = set()
        """Files that expire or supersede another."""
        self.generation = 0
        """Grows with every file that is learnt or forgotten."""
        self.scanned = False
        self._versions: dict[str, Version] = {}
        self._names: dict[str, str] = {}

    async def refresh(self, backend: Backend) -> dict[str, tuple[Known | None, Known | None]]:
        """Scan, and read what changed.

        Returns:
            What was known before and is known now of each memory file that changed; None for absent.
        """
        scan = await backend.scan(self._versions)
        changed: dict[str, tuple[Known | None, Known | None]] = {}
        for path in self._vanished(scan):
            changed[path] = (self.files.get(path), None)
            self.forget(path)
        texts = await self._recall_texts(backend, scan)
        for path, head in scan.heads.items():
            entry = scan.files[path]
            self._versions[path] = entry.version
            if path == INDEX:
                self.index_data = head if len(head) == entry.size else None
            elif is_memory_path(path):
                before = self.files.get(path)
                data = texts.get(path, head)
                known = self.learn(path, data, entry.size, entry.mtime_ns)
                if before is None or before.etag is None or before.etag != known.etag:
                    changed[path] = (before, known)
        self.skipped = scan.skipped
        self.scanned = True
        return changed

    def _vanished(self, scan: Scan) -> list[str]:
        gone = self._versions.keys() - scan.files.keys()
        unseen = tuple(path for path, reason in scan.skipped.items() if reason.startswith(COULD_NOT_LOOK))
        if unseen:  # what could not be looked at is not gone
            gone = {path for path in gone if not any(path == place or path.startswith(f"{place}/") for place in unseen)}
        return sorted(gone)

    async def _recall_texts(self, backend: Backend, scan: Scan) -> Mapping[str, bytes]:
        """The text of changed files that are larger than their head, in one round trip, up to 256 KB of each."""
        large = {
            path: Range(0, MAX_RECALL_BYTES)
            for path, head in scan.heads.items()
            if scan.files[path].size > len(head) and is_memory_path(path)
        }
        found = await backend.read(large) if large else {}
        return {path: file.data for path, file in found.items() if isinstance(file, File)}

    def learn(self, path: str, data: bytes, size: int, mtime_ns: int) -> Known:
        """Take in a file's bytes, or the first of them."""
        before = self.files.get(path)
        complete = len(data) == size
        etag = etag_of(data) if complete else None
        try:
            file = parse(path, data, complete=complete)
        except InvalidMemoryFile as error:
            last_good = (before.header or before.last_good) if before else None
            known = Known(size, mtime_ns, etag, None, error, last_good=last_good)
            self.recall.put(path, data.decode("utf-8", "replace"), mtime_ns)
        else:
            known = Known(size, mtime_ns, etag, file.header, warnings=file.warnings)
            self._learn_words(file, data, mtime_ns)
        self.files[path] = known
        self.generation += 1
        header = known.header or known.last_good
        if header and (header.valid_until or header.supersedes):
            self.bounded.add(path)
        else:
            self.bounded.discard(path)
        self.listed[path] = listed_as(path, known)
        self._names[collision_key(path)] = path
        return known

    def _learn_words(self, file: MemoryFile, data: bytes, mtime_ns: int) -> None:
        header, stem = file.header, PurePosixPath(file.path).with_suffix("").as_posix()
        day = stated_date((*_date_fields(header), header.description, header.name, stem))
        words = stem.replace("-", " ").replace("_", " ").replace("/", " ")
        head = (words, header.name, header.description, " ".join(header.tags), in_words(day) if day else "")
        before = data.count(b"\n") - file.body.count("\n")
        self.recall.put(file.path, file.body, mtime_ns, head="\n".join(head), day=day, before=before)

    def wrote(self, path: str, data: bytes, mtime_ns: int) -> None:
        """Take in what was just written; the next scan looks again, because only it knows the version."""
        self._versions[path] = ""
        if path == INDEX:
            self.index_data = data
        else:
            self.learn(path, data, len(data), mtime_ns)

    def forget(self, path: str) -> None:
        """Drop a file that is gone."""
        if path == INDEX:
            self.index_data = None
        self.generation += 1
        self.bounded.discard(path)
        self._versions.pop(path, None)
        self.files.pop(path, None)
        self.listed.pop(path, None)
        self.recall.remove(path)
        if self._names.get(collision_key(path)) == path:
            del self._names[collision_key(path)]

    def lookalike(self, path: str) -> str | None:
        """An existing file whose name a person, or some disk, takes for this one."""
        return self._names.get(collision_key(path))

    def below(self, folder: str) -> Iterator[str]:
        """Every memory file in a folder."""
        return (path for path in self.files if path.startswith(f"{folder}/"))


def listed_as(path: str, known: Known) -> Listed:
    """What the index says of a file; a broken one keeps what was last good, or says that it is broken."""
    header = known.header or known.last_good
    if header is None:
        return Listed(PurePosixPath(path).stem, "this file can't be read: see `mdmemory doctor`", mtime_ns=known.mtime_ns)
    return Listed(header.name, header.description, header.pinned, known.mtime_ns)


def _date_fields(header: Header) -> tuple[str, ...]:
    """What the frontmatter says about the file's date."""
    fields = header.fields or {}
    found = (fields.get("date"), fields.get("created"), header.valid_from)
    return tuple(value for value in found if isinstance(value, str))
