"""One of two folders, as of its last look. Floor 4."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from mdmemory.backends.protocol import File, FileProblem, etag_of
from mdmemory.care.reconcile.state import Stamp
from mdmemory.files.history import TOMBSTONES, Forgotten, read_tombstones
from mdmemory.files.journal import session_of
from mdmemory.folder.known import INDEX, MAX_RECALL_BYTES, Known, is_memory_path
from mdmemory.folder.memory_folder import MemoryFolder

AT_ONCE: Final = 200  # files of one commit
AT_ONCE_BYTES: Final = 8 * 1024 * 1024
T = TypeVar("T")


class Side:
    """A folder, and what a look at it told.

    Args:
        folder: where it is; no others may be mounted in it.
        name: what the other side's history calls it.
    """

    def __init__(self, folder: MemoryFolder, name: str) -> None:
        self.folder, self.name = folder, name
        self.etags: dict[str, str] = {}
        """Of every memory file that can be read."""
        self.faults: dict[str, str] = {}
        """Why a memory file can't be read."""
        self.stamps: dict[str, Stamp] = {}
        self.still: dict[str, str] = {}
        """Where files are that would be renamed: old path by new path."""
        self.forgotten = Forgotten({}, {}, frozenset())

    async def look(self, stamps: Mapping[str, Stamp]) -> None:
        """Look at the folder; files whose etags a look does not tell are read, unless they are as the stamps say.

        Raises:
            Unavailable
        """
        await self.folder.refresh()
        self.etags, self.faults, self.stamps = {}, {}, dict(stamps)
        unknown: dict[str, int] = {}
        for path, known in self.folder.files.items():
            if etag := known.etag or self.stamped(path):
                self.etags[path] = etag
                if known.size > MAX_RECALL_BYTES:
                    self.stamp(path, etag)  # of which the next process will not know it
            else:
                unknown[path] = known.size
        for some in parted(unknown, unknown.__getitem__):
            for path, file in (await self.read(some)).items():
                if isinstance(file, File) and file.etag:
                    self.etags[path] = file.etag
                    self.stamp(path, file.etag)
                elif not isinstance(file, File) and file.kind != "absent":
                    self.faults[path] = file.reason

    async def read(self, paths: Iterable[str]) -> Mapping[str, File | FileProblem]:
        """Files of any kind, in one round trip; no paths, none."""
        wanted = {path: self.still.get(path, path) for path in paths}
        found = await self.folder.backend.read(dict.fromkeys(wanted.values())) if wanted else {}
        return {path: found[place] for path, place in wanted.items()}

    def take_forgotten(self, found: Mapping[str, File | FileProblem]) -> None:
        """Take in the tombstones, where they were read."""
        if isinstance(file := found.get(TOMBSTONES), File):
            self.forgotten = read_tombstones(file.data)

    def known(self, path: str) -> Known | None:
        """What is known of a memory file."""
        return self.folder.files.get(path)

    def version(self, path: str) -> str:
        """The version that the last look told of a file; "" when it is not sure."""
        entry = self.folder.catalog.journals.get(path)
        version = entry.version if entry is not None else self.folder.catalog.versions.get(path, b"")
        return version.hex() if isinstance(version, bytes) else version

    def stamped(self, path: str) -> str:
        """The etag of a file that has the version that it had when it was last read; "" when it has not."""
        version, etag = self.stamps.get(path, ("", ""))
        return etag if version and version == self.version(path) else ""

    def stamp(self, path: str, etag: str) -> None:
        """Note the etag of a file with the version that the last look told."""
        self.stamps.pop(path, None)
        if version := self.version(path):
            self.stamps[path] = version, etag

    def is_unseen(self, path: str) -> bool:
        """Whether a path that is not listed was skipped, or lies in a folder that was: then it is not known to be gone."""
        skipped = self.folder.skipped
        return bool(skipped) and path not in self.folder.files and any(f"{path}/".startswith(f"{place}/") for place in skipped)

    def others(self) -> Iterator[str]:
        """What is not kept in step: files that are no Markdown, and what was not followed."""
        for path in self.folder.catalog.versions:
            if not is_memory_path(path) and path != INDEX and session_of(path) is None:
                yield path
        yield from (path for path in self.folder.skipped if path not in self.folder.files)


def parted(items: Iterable[T], size_of: Callable[[T], int]) -> Iterator[Sequence[T]]:
    """Items some at a time, so that each some are few and small enough for one round trip.

    Args:
        size_of: the bytes of an item.
    """
    some: list[T] = []
    total = 0
    for item in items:
        size = size_of(item)
        if some and (len(some) >= AT_ONCE or total + size > AT_ONCE_BYTES):
            yield some
            some, total = [], 0
        some.append(item)
        total += size
    if some:
        yield some


def etag_or_none(data: bytes | None) -> str | None:
    """The etag of bytes; None for absent."""
    return None if data is None else etag_of(data)
