"""A folder on this machine's disk. Floor 1.

Cooperating writers, in any number of processes, never lose each other's updates. An editor takes no lock: what it saves in the
few milliseconds between a commit's last check and its rename is the one window in which a save can be lost.
"""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

from mdmemory.backends import paths
from mdmemory.backends.listing import Versions
from mdmemory.backends.local_commit import Commit, has_leftovers, not_saved, prepare, sweep
from mdmemory.backends.local_io import BY_DESCRIPTOR, OWN, Tree, open_file, problem_of, read_bytes, words
from mdmemory.backends.local_lock import HAS_FLOCK, locked
from mdmemory.backends.local_scan import Look
from mdmemory.backends.mounts import is_own_disk
from mdmemory.backends.protocol import (
    HEAD_BYTES,
    MAX_FILE_BYTES,
    TOO_LARGE,
    File,
    FileProblem,
    Op,
    Range,
    Scan,
    Version,
    check_ops,
    etag_of,
    shielded,
    span,
)
from mdmemory.errors import Unavailable


class LocalBackend:
    """A folder on this machine.

    Args:
        root: where it is, or will be after the first commit; it may be a link, which is followed now and never again.
        lock_timeout_s: how long a commit waits for another process that holds the lock.
    """

    _by_descriptor = BY_DESCRIPTOR  # the two ways a platform may lack; tests turn them off
    _flock = HAS_FLOCK

    def __init__(self, root: str | os.PathLike[str], *, lock_timeout_s: float = 30.0) -> None:
        self._tree = Tree(os.path.realpath(root), self._by_descriptor)
        self._lock_timeout_s = lock_timeout_s
        self._turn = threading.Lock()  # in one process, waiting writers take turns without polling
        self._seen = False
        self._swept = False

    @cached_property
    def _own_disk(self) -> bool:
        return is_own_disk(Path(self._tree.root))

    @property
    def location(self) -> str:
        """What no other folder has."""
        return f"file://{self._tree.root}"

    @property
    def watchable_root(self) -> Path:
        """The folder, which the system can tell of."""
        return Path(self._tree.root)

    async def scan(self, known: Mapping[str, Version] = {}, *, head_bytes: int = HEAD_BYTES) -> Scan:
        """Look at every file, as `Backend.scan`."""
        return await asyncio.to_thread(self._scan, known, head_bytes)

    async def read(self, wanted: Mapping[str, Range | None]) -> Mapping[str, File | FileProblem]:
        """Read files or parts of them, as `Backend.read`."""
        for path in wanted:
            paths.check(path, hidden=True)
        return await asyncio.to_thread(self._read, wanted)

    async def commit(self, commit_id: str, ops: Sequence[Op]) -> Mapping[str, str]:
        """Check and apply, as `Backend.commit`."""
        check_ops(ops)
        return await shielded(asyncio.to_thread(self._commit, commit_id, ops))

    async def close(self) -> None:
        """Nothing is held between calls."""

    def _scan(self, known: Mapping[str, Version], head_bytes: int) -> Scan:
        if not self._swept:
            self._swept = True
            self._sweep()
        try:
            scan = Look(Versions.of(known), head_bytes, self._own_disk).over(self._tree)
        except OSError as error:
            if error.errno == errno.ENOENT and not self._seen:
                return Scan({}, {}, {})
            raise self._could_not_look(error) from error
        self._seen = True
        return scan

    def _read(self, wanted: Mapping[str, Range | None]) -> dict[str, File | FileProblem]:
        try:
            self._tree.open().close()
        except OSError as error:
            if error.errno != errno.ENOENT or self._seen:
                problem = FileProblem("unavailable", str(self._could_not_look(error)))
                return dict.fromkeys(wanted, problem)
        else:
            self._seen = True
        return {path: self._read_one(path, part) for path, part in wanted.items()}

    def _read_one(self, path: str, part: Range | None) -> File | FileProblem:
        try:
            with self._tree.holder(path) as (folder, name):
                fd, found = open_file(folder.place(name))
            try:
                start, length = span(part, found.st_size)
                if length > MAX_FILE_BYTES:
                    return TOO_LARGE
                data = read_bytes(fd, start, length)
            finally:
                os.close(fd)
        except OSError as error:
            return problem_of(error)
        whole = start == 0 and len(data) == found.st_size
        return File(data, etag_of(data) if whole else None, found.st_size, found.st_mtime_ns)

    def _commit(self, commit_id: str, ops: Sequence[Op]) -> Mapping[str, str]:
        try:
            if not self._seen:
                os.makedirs(self._tree.root, exist_ok=True)
            with self._locked(self._lock_timeout_s):
                self._seen = True
                prepare(self._tree)
                return Commit(self._tree, commit_id, ops).run()
        except FileNotFoundError as error:
            raise self._could_not_look(error) from error
        except OSError as error:
            raise not_saved(error) from error

    @contextmanager
    def _locked(self, timeout_s: float) -> Iterator[None]:
        if not self._turn.acquire(timeout=timeout_s):
            raise Unavailable(f"another save has been under way for {timeout_s:g} s; nothing was written. Try again later.")
        try:
            with self._tree.holder(f"{OWN}/.", []) as (own, _), locked(own, timeout_s, flock=self._flock):
                yield
        finally:
            self._turn.release()

    def _sweep(self) -> None:
        if has_leftovers(self._tree):
            with suppress(OSError, Unavailable), self._locked(0):  # held: they are a living process's
                sweep(self._tree)

    def _could_not_look(self, error: OSError) -> Unavailable:
        reason = "it was there and is gone" if error.errno == errno.ENOENT else words(error)
        return Unavailable(f"could not look into the memory folder: {reason}. Check that it is mounted and readable.")
