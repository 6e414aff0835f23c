"""One look at every file of a local folder. Floor 1."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping

from mdmemory.backends import paths
from mdmemory.backends.local_io import Folder, Place, Tree, open_file, problem_of, what_is
from mdmemory.backends.protocol import Entry, Scan, Version

_HARD_LINK = "hard link: it has another name elsewhere, so it is read but never written. Copy it to a file of its own to change it."


class Look:
    """A scan under way.

    Args:
        known: the versions the caller has; their paths were checked when they were first seen.
        head_bytes: how much of a new or changed file to bring.
    """

    def __init__(self, known: Mapping[str, Version], head_bytes: int) -> None:
        self._known, self._head_bytes = known, head_bytes
        self._now = time.time_ns()
        self._files: dict[str, Entry] = {}
        self._heads: dict[str, bytes] = {}
        self._skipped: dict[str, str] = {}

    def over(self, tree: Tree) -> Scan:
        """Look at the whole tree.

        Raises:
            OSError: the root can't be listed.
        """
        with tree.open() as root:
            self._folder(root, "")
        return Scan(self._files, self._heads, self._skipped)

    def _folder(self, folder: Folder, prefix: str) -> None:
        below: list[str] = []
        known, files, now = self._known, self._files, self._now  # this loop is what a turn costs in a large folder
        dir_fd = folder.at if isinstance(folder.at, int) else None
        with os.scandir(folder.at) as entries:
            for entry in entries:
                name = entry.name
                if name.startswith("."):
                    continue
                path = prefix + name
                if path not in known and (fault := _name_fault(path)):
                    self._skipped[repr(path)[1:-1]] = f"its name can't be used: {fault}"
                    continue
                try:
                    found = entry.stat(follow_symlinks=False)
                except OSError as error:
                    self._miss(path, error)
                    continue
                if stat.S_ISREG(found.st_mode):
                    version = version_of(found, now)
                    changed = not version or known.get(path) != version
                    if changed and not self._look_into(path, Place(entry.path, dir_fd)):
                        continue
                    files[path] = Entry(found.st_size, found.st_mtime_ns, version)
                    if found.st_nlink > 1:
                        self._skipped[path] = _HARD_LINK
                elif stat.S_ISDIR(found.st_mode):
                    below.append(name)
                else:
                    self._skipped[path] = what_is(found.st_mode)
        for name in below:  # after the listing is closed: one open descriptor a level
            try:
                with folder.below(name) as child:
                    self._folder(child, f"{prefix}{name}/")
            except OSError as error:
                self._miss(prefix + name, error)

    def _look_into(self, path: str, place: Place) -> bool:
        """Bring the head of a `.md` file; False when it can't be had."""
        if path[-3:].lower() == ".md":
            try:
                self._heads[path] = _head(place, self._head_bytes)
            except OSError as error:
                self._miss(path, error)
                return False
        return True

    def _miss(self, path: str, error: OSError) -> None:
        problem = problem_of(error)
        if problem.kind != "absent":  # what went away meanwhile is simply not there
            self._skipped[path] = problem.reason


def version_of(found: os.stat_result, now: int) -> Version:
    """Mark a file's state; empty when it changed so recently that a next change could leave the same mark.

    The change time counts, which no program can set (git calls such files racy). Disks that keep only whole seconds need longer.
    """
    changed = found.st_ctime_ns
    if changed > now - 2_000_000_000 and (changed > now - 20_000_000 or changed % 1_000_000_000 == 0):
        return ""
    return f"{found.st_mtime_ns}.{changed}.{found.st_size}.{found.st_ino}"


def _head(place: Place, head_bytes: int) -> bytes:
    fd, _ = open_file(place)
    try:
        return os.read(fd, head_bytes)
    finally:
        os.close(fd)


def _name_fault(path: str) -> str | None:
    try:
        path.encode()
    except UnicodeEncodeError:
        return "it is not UTF-8"
    return paths.fault(path)
