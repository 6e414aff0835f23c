"""Folders as a scan saw them, so that the next one asks only about what can have changed. Floor 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from struct import Struct
from typing import NamedTuple

from mdmemory.backends.protocol import NO_VERSION, Entry, Version

STATE = Struct("qqqQ")
"""A file's state on a disk: modification time and change time in nanoseconds, size, inode."""


class Listing(NamedTuple):
    """A folder.

    Args:
        mark: as long as a folder has the same mark, no name in it came or went; empty where that is not sure.
        folders: the names of the folders in it.
        files: name to version.
    """

    mark: bytes
    folders: tuple[str, ...]
    files: dict[str, Version]


class Versions(Mapping[str, Version]):
    """The version of each file by path, kept by folder; `""` is the root, any other folder ends in `/`."""

    def __init__(self, listings: Mapping[str, Listing] = {}) -> None:
        self.listings = dict(listings)

    @classmethod
    def of(cls, versions: Mapping[str, Version]) -> Versions:
        """The same versions by folder."""
        if isinstance(versions, cls):
            return versions
        found = cls()
        for path, version in versions.items():
            found.put(path, version)
        return found

    def put(self, path: str, version: Version) -> None:
        """Set a file's version."""
        prefix, name = _parts(path)
        if prefix not in self.listings:
            self.listings[prefix] = Listing(b"", (), {})
        self.listings[prefix].files[name] = version

    def drop(self, path: str) -> None:
        """Forget a file, known or not."""
        prefix, name = _parts(path)
        if prefix in self.listings:
            self.listings[prefix].files.pop(name, None)

    def missing_from(self, later: Versions) -> Iterator[str]:
        """The paths that a later look did not see."""
        for prefix, listing in self.listings.items():
            now = later.listings.get(prefix)
            if now is not listing:
                yield from (prefix + name for name in listing.files.keys() - (now.files.keys() if now else set()))

    def __getitem__(self, path: str) -> Version:
        prefix, name = _parts(path)
        return self.listings[prefix].files[name]

    def __iter__(self) -> Iterator[str]:
        for prefix, listing in self.listings.items():
            for name in listing.files:
                yield prefix + name

    def __len__(self) -> int:
        return sum(len(listing.files) for listing in self.listings.values())


class Entries(Mapping[str, Entry]):
    """The files of a scan by path; an entry is made when it is asked for, which few are when little has changed.

    Args:
        versions: packed by `STATE`; what follows it says that a version is not sure.
    """

    def __init__(self, versions: Versions) -> None:
        self._versions = versions

    def __getitem__(self, path: str) -> Entry:
        version = self._versions[path]
        assert isinstance(version, bytes)
        mtime_ns, _, size, _ = STATE.unpack_from(version)
        return Entry(size, mtime_ns, version if len(version) == STATE.size else NO_VERSION)

    def __iter__(self) -> Iterator[str]:
        return iter(self._versions)

    def __len__(self) -> int:
        return len(self._versions)


def _parts(path: str) -> tuple[str, str]:
    folder, slash, name = path.rpartition("/")
    return folder + slash, name
