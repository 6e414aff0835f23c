"""One look at every file of a local folder. Floor 1.

A folder whose own times are those of the last look has the same names in it: its files are asked for their state, and nothing is
listed. So a look at a folder where nothing changed costs less than to list it.
"""

from __future__ import annotations

import os
import stat
import struct
import time
from collections.abc import Mapping
from contextlib import suppress

from mdmemory.backends import paths
from mdmemory.backends.listing import STATE, Entries, Listing, Versions
from mdmemory.backends.local_io import Folder, Place, Tree, open_file, problem_of, what_is
from mdmemory.backends.protocol import LINK_INSIDE, Scan, Version

_HARD_LINK = "hard link: it has another name elsewhere, so it is read but never written. Copy it to a file of its own to change it."
_RACY_NS, _COARSE_NS = 20_000_000, 2_000_000_000
_FURTHEST_NS = 2**63 - 1


class Look:
    """A scan under way.

    Args:
        known: the versions the caller has; their paths were checked when they were first seen.
        head_bytes: how much of a new or changed file to bring.
        own_disk: whether the times of files and folders can be relied on, as on a network they can't.
    """

    def __init__(self, known: Versions, head_bytes: int, own_disk: bool) -> None:
        self._known, self._head_bytes, self._own_disk = known, head_bytes, own_disk
        self._now = time.time_ns()
        self._device = -1
        self._seen = Versions()
        self._heads: dict[str, bytes] = {}
        self._skipped: dict[str, str] = {}

    def over(self, tree: Tree) -> Scan:
        """Look at the whole tree.

        Raises:
            OSError: the root can't be listed.
        """
        with tree.open() as root:
            if isinstance(root.at, int):
                self._device = os.fstat(root.at).st_dev
            self._folder(root, "")
        return Scan(Entries(self._seen), self._heads, self._skipped, self._seen)

    def _folder(self, folder: Folder, prefix: str) -> None:
        mark, before = self._mark(folder), self._known.listings.get(prefix)
        listing = self._again(folder, prefix, before) if before is not None and mark and mark == before.mark else None
        if listing is None:
            listing = self._list(folder, prefix, before.files if before else {}, mark)
        self._seen.listings[prefix] = listing
        for name in listing.folders:  # after the listing is closed: one open descriptor a level
            try:
                with folder.below(name) as child:
                    self._folder(child, f"{prefix}{name}/")
            except OSError as error:
                self._miss(prefix + name, error)

    def _mark(self, folder: Folder) -> bytes:
        """The state of a folder's list of names; empty where it can't be relied on."""
        if not self._own_disk or not isinstance(folder.at, int):
            return b""
        found = os.fstat(folder.at)
        version = version_of(found, self._now, self._own_disk)
        return version if len(version) == STATE.size and found.st_dev == self._device else b""

    def _again(self, folder: Folder, prefix: str, before: Listing) -> Listing | None:
        """The same names once more; None when one of them is gone after all, or has a time that is out of reach."""
        known, changed, dir_fd, lstat, pack = before.files, {}, folder.at, os.lstat, STATE.pack
        assert isinstance(dir_fd, int)
        for name, version in known.items():  # this loop is what a look costs in a large folder
            try:
                found = lstat(name, dir_fd=dir_fd)
                if pack(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino) != version:
                    changed[name] = found
            except (OSError, struct.error):
                return None
        if not changed:
            return before
        files, told = dict(known), len(self._skipped)
        for name, found in changed.items():
            version = self._version(prefix + name, found, Place(name, dir_fd), known[name])
            if not version:
                return None
            files[name] = version
        return Listing(before.mark if len(self._skipped) == told else b"", before.folders, files)

    def _list(self, folder: Folder, prefix: str, known: Mapping[str, Version], mark: bytes) -> Listing:
        below, files, told = list[str](), dict[str, Version](), len(self._skipped)
        dir_fd = folder.at if isinstance(folder.at, int) else None
        with os.scandir(folder.at) as entries:
            for entry in entries:
                name = entry.name
                if name.startswith("."):
                    continue
                path = prefix + name
                if name not in known and (fault := _name_fault(path)):
                    self._skipped[repr(path)[1:-1]] = f"its name can't be used: {fault}"
                    continue
                try:
                    found = entry.stat(follow_symlinks=False)
                except OSError as error:
                    self._miss(path, error)
                    continue
                before = known.get(name)
                if before is not None and before == _state(found) and found.st_nlink == 1:
                    files[name] = before
                elif stat.S_ISDIR(found.st_mode):
                    below.append(name)
                elif version := self._version(path, found, Place(entry.path, dir_fd), before):
                    files[name] = version
        return Listing(mark if len(self._skipped) == told else b"", tuple(below), files)

    def _version(self, path: str, found: os.stat_result, place: Place, before: Version | None) -> bytes:
        """A file's version, after its head is brought where it is not as before; empty for what is no file, or can't be read."""
        if not stat.S_ISREG(found.st_mode):
            self._skipped[path] = _link(path, place) if stat.S_ISLNK(found.st_mode) else what_is(found.st_mode)
            return b""
        version = version_of(found, self._now, self._own_disk)
        if path[-3:].lower() == ".md" and before != version:
            try:
                self._heads[path] = _head(place, self._head_bytes)
            except OSError as error:
                self._miss(path, error)
                return b""
        if found.st_nlink > 1:
            self._skipped[path] = _HARD_LINK
        return version

    def _miss(self, path: str, error: OSError) -> None:
        problem = problem_of(error)
        if problem.kind != "absent":  # what went away meanwhile is simply not there
            self._skipped[path] = problem.reason


def version_of(found: os.stat_result, now: int, own_disk: bool = True) -> bytes:
    """Mark a file's state by modification time, change time, size and inode.

    The change time counts, which no program can set. A file that changed so recently that a next change could leave the same mark
    gets the time of this look behind it, so that it equals no other (git calls such files racy). Disks that keep only whole
    seconds need longer, and so do those of other machines.
    """
    state = _state(found)
    changed = found.st_ctime_ns
    is_coarse = not own_disk or changed % 1_000_000_000 == 0
    return state + now.to_bytes(8) if changed > now - (_COARSE_NS if is_coarse else _RACY_NS) else state


def _state(found: os.stat_result) -> bytes:
    try:
        return STATE.pack(found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
    except struct.error:  # anyone can set a modification time that is centuries away
        nearest = max(-_FURTHEST_NS, min(found.st_mtime_ns, _FURTHEST_NS))
        return STATE.pack(nearest, found.st_ctime_ns, found.st_size, found.st_ino)


def _head(place: Place, head_bytes: int) -> bytes:
    fd, _ = open_file(place)
    try:
        return os.read(fd, head_bytes)
    finally:
        os.close(fd)


def _link(path: str, place: Place) -> str:
    """What a link is: where it leads is told when that is a place in the folder."""
    with suppress(OSError):
        target = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(place.name, dir_fd=place.dir_fd)))
        if _name_fault(target) is None:
            return f"{LINK_INSIDE} {target}, which is never followed"
    return what_is(stat.S_IFLNK)


def _name_fault(path: str) -> str | None:
    try:
        path.encode()
    except UnicodeEncodeError:
        return "it is not UTF-8"
    return paths.fault(path)
