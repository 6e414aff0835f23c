"""What is known of several folders, as of one: each folder's paths stand behind its prefix. Floor 3."""

from __future__ import annotations

from collections.abc import Collection as Paths
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import TypeVar

from mdmemory.backends.paths import owner
from mdmemory.backends.protocol import Scan
from mdmemory.folder.catalog import Catalog
from mdmemory.folder.known import Known
from mdmemory.recall.collections import Collections
from mdmemory.recall.ranking import Ranking

Value = TypeVar("Value")


class Joined(Mapping[str, Value]):
    """Several mappings by path as one.

    Args:
        parts: by prefix.
        prefixes: all that there are: a path belongs to the longest that it begins with, be that one of the parts or not.
    """

    def __init__(self, parts: Mapping[str, Mapping[str, Value]], prefixes: Iterable[str]) -> None:
        self._parts, self._prefixes = parts, tuple(prefixes)

    def __getitem__(self, path: str) -> Value:
        prefix = owner(path, self._prefixes)
        return self._parts[prefix][path.removeprefix(prefix)]

    def __iter__(self) -> Iterator[str]:
        for prefix, part in self._parts.items():
            inner = tuple(other for other in self._prefixes if other != prefix and other.startswith(prefix))
            for path in part:
                if not (prefix + path).startswith(inner):
                    yield prefix + path

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Catalogs:
    """Answers what a search asks of a `Catalog`.

    Args:
        parts: by the prefix of their paths, at least one.
        prefixes: as in `Joined`.
    """

    def __init__(self, parts: Mapping[str, Catalog], prefixes: Iterable[str]) -> None:
        self._parts, self._prefixes = parts, tuple(prefixes)

    @property
    def files(self) -> Mapping[str, Known]:
        """Every memory file by path."""
        return Joined({prefix: part.files for prefix, part in self._parts.items()}, self._prefixes)

    async def for_query(self, query: str, limit: int, allowed: AbstractSet[str] | None = None, also: Paths[str] = ()) -> Ranking:
        """One ranking of all files."""
        parts = {prefix: part.recall for prefix, part in self._parts.items()}
        return Ranking(await Collections.prepared(parts, self._prefixes, query, limit, allowed, also))

    @property
    def generation(self) -> int:
        """Grows with every file that is learnt or forgotten."""
        return sum(part.generation for part in self._parts.values())

    @property
    def is_bounded(self) -> bool:
        """Whether any file expires or supersedes another."""
        return any(part.is_bounded for part in self._parts.values())

    def mount_of(self, path: str) -> str:
        """The prefix that a path belongs to."""
        return owner(path, self._prefixes)


def joined(scans: Mapping[str, Scan], prefixes: Iterable[str]) -> Scan:
    """What scans of several folders found, as of one."""
    parts = [{prefix: getattr(scan, name) for prefix, scan in scans.items()} for name in ("files", "heads", "skipped")]
    return Scan(*(Joined(part, prefixes) for part in parts))
