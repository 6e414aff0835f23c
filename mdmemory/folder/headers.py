"""The headers of all memory files, as the index and the tools see them; the cache is asked when they are. Floor 3."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from mdmemory.backends.paths import collision_key
from mdmemory.files.index import Listed
from mdmemory.folder.known import INDEX, Known, from_text, listed_as
from mdmemory.recall.cache import CACHE_ERRORS, Cache


class Headers:
    """What is known of each file.

    Args:
        cache: what processes before this one knew.
        is_complete: whether the cache has nothing to tell.
        is_there: whether the last look saw a file; another process may have noted one since that is gone by now.
    """

    def __init__(self, cache: Cache, is_complete: bool, is_there: Callable[[str], bool]) -> None:
        self._cache, self.is_loaded, self._is_there = cache, is_complete, is_there
        self._files: dict[str, Known] = {}
        self._listed: dict[str, Listed] = {}
        self._unreadable: dict[str, Listed] = {}
        self._bounded: set[str] = set()
        self._new: dict[str, None] = {}  # files that the other lists lack, as nobody asked for these since
        self._alike: defaultdict[str, set[str]] = defaultdict(set)

    @property
    def files(self) -> dict[str, Known]:
        """By path."""
        self._load()
        return self._files

    @property
    def listed(self) -> dict[str, Listed]:
        """What the index says of each file that could be read, now or before it broke."""
        self._derive_all()
        return self._listed

    @property
    def unreadable(self) -> dict[str, Listed]:
        """What a prompt says of the others; on disk they get no line, as it would be out of date once they are mended."""
        self._derive_all()
        return self._unreadable

    @property
    def bounded(self) -> set[str]:
        """Files that expire or supersede another."""
        self._derive_all()
        return self._bounded

    def known(self, path: str) -> Known | None:
        """One file, without a look at the others; None when it is absent, or the cache does not know it."""
        if self.is_loaded or path in self._files:
            return self._files.get(path)
        try:
            text = self._cache.header(path)
            return from_text(path, text) if text else None
        except CACHE_ERRORS as error:
            self._cache.lose(error)
            return None

    def lookalike(self, path: str) -> str | None:
        """An existing file whose name a person, or some disk, takes for this one."""
        self._derive_all()
        key = collision_key(path)
        if key == collision_key(INDEX):
            return INDEX if path != INDEX else None
        return min(self._alike.get(key, set()) - {path}, default=None)

    def set(self, path: str, known: Known) -> None:
        """Take in a file."""
        self._files[path] = known
        self._new[path] = None

    def drop(self, path: str) -> None:
        """Forget a file, known or not."""
        self._new.pop(path, None)
        self._bounded.discard(path)
        self._files.pop(path, None)
        self._listed.pop(path, None)
        self._unreadable.pop(path, None)
        self._alike[collision_key(path)].discard(path)

    def go_on_with(self, cache: Cache) -> None:
        """Keep what is known in place of a cache that was damaged."""
        self._load()
        self._cache = cache

    def _load(self) -> None:
        if not self.is_loaded:
            self.is_loaded = True
            try:
                for path, text in self._cache.headers():
                    if path not in self._files and self._is_there(path):
                        self.set(path, from_text(path, text))
            except CACHE_ERRORS as error:
                self._cache.lose(error)

    def _derive_all(self) -> None:
        self._load()
        new, self._new = self._new, {}
        for path in new:
            self._derive(path, self._files[path])

    def _derive(self, path: str, known: Known) -> None:
        header = known.header or known.last_good
        if header and (header.valid_until or header.supersedes):
            self._bounded.add(path)
        else:
            self._bounded.discard(path)
        listed, other = (self._listed, self._unreadable) if header else (self._unreadable, self._listed)
        listed[path] = listed_as(path, known)
        other.pop(path, None)
        self._alike[collision_key(path)].add(path)
