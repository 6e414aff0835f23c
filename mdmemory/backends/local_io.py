"""The local disk, walked part by part without following a link. Floor 1.

Every folder on the way to a file is opened by its descriptor with O_NOFOLLOW, so that a link swapped in at any moment is
refused by the system. Where a platform has no such descriptors, the same code works on whole paths and looks for links just
before each use: weaker, as a link swapped in between the look and the use would be followed.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final, NamedTuple

from mdmemory.backends.protocol import FileProblem

_NOFOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0)
_FILE: Final[int] = _NOFOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_FOLDER: Final[int] = os.O_RDONLY | _NOFOLLOW | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
BY_DESCRIPTOR: Final = bool(_NOFOLLOW and {os.open, os.stat, os.mkdir, os.rename, os.unlink} <= os.supports_dir_fd)
OWN: Final = ".mdmemory"

_WORDS: Final = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "the file would be larger than this system allows",
    errno.EROFS: "the folder is read-only",
    errno.EACCES: "permission denied",
    errno.EPERM: "permission denied",
    errno.EIO: "the disk reports an error",
    errno.EXDEV: "the file lies on another disk than the memory folder",
    errno.EMFILE: "this process has too many files open",
}


class NotRegular(OSError):
    """Something that is no regular file; `strerror` says what it is."""


class InTheWay(OSError):
    """A link or a file where a path needs a folder; `filename` is its path inside the memory."""


class Place(NamedTuple):
    """How to name a file to an `os` function: by an open folder, or, without one, by its whole path."""

    name: str
    dir_fd: int | None


class Folder:
    """A folder held open; in the weaker way, its checked path."""

    __slots__ = ("_root", "at")

    def __init__(self, at: int | str, root: str) -> None:
        self.at, self._root = at, root

    def place(self, name: str) -> Place:
        """Where a direct child is."""
        return Place(name, self.at) if isinstance(self.at, int) else Place(os.path.join(self.at, name), None)

    def below(self, name: str) -> Folder:
        """Open a folder in this one.

        Raises:
            OSError: ELOOP for a link, ENOTDIR for what is no folder.
        """
        if isinstance(self.at, int):
            try:
                return Folder(os.open(name, _FOLDER, dir_fd=self.at), self._root)
            except NotADirectoryError:  # Linux says so for a link as well
                if stat.S_ISDIR(refuse_link(self.place(name))):
                    raise OSError(errno.ELOOP, "swapped in between") from None
                raise
        place = self.place(name)
        if not stat.S_ISDIR(refuse_link(place)):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.path.realpath(place.name).startswith(os.path.join(self._root, "")):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return Folder(place.name, self._root)

    def sync(self) -> None:
        """Make the names in this folder durable."""
        if isinstance(self.at, int):
            os.fsync(self.at)
        elif os.name != "nt":  # Windows can't open a folder
            fd = os.open(self.at, _FOLDER)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def close(self) -> None:
        """Let go of the descriptor."""
        if isinstance(self.at, int):
            os.close(self.at)

    def __enter__(self) -> Folder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Tree:
    """The folder as a tree below one root, which may be absent.

    Args:
        root: resolved path; links in it were the user's choice.
        by_descriptor: walk by descriptors, or in the weaker way.
    """

    def __init__(self, root: str, by_descriptor: bool) -> None:
        self.root, self._by_descriptor = root, by_descriptor

    def open(self) -> Folder:
        """Open the root."""
        if self._by_descriptor:
            return Folder(os.open(self.root, _FOLDER), self.root)
        if not os.path.isdir(self.root):
            os.stat(self.root)  # says why
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return Folder(self.root, self.root)

    @contextmanager
    def holder(self, path: str, made: list[str] | None = None) -> Iterator[tuple[Folder, str]]:
        """Open the folder that holds a path, for as long as the context lasts.

        Args:
            path: checked, relative.
            made: make missing folders, and note them here.

        Yields:
            The folder and the last part of the path.

        Raises:
            InTheWay: a parent is no folder.
            OSError: a parent is missing or can't be opened.
        """
        *parts, name = path.split("/")
        folder = self.open()
        try:
            for position, part in enumerate(parts, 1):
                below = _step(folder, part, "/".join(parts[:position]), made)
                folder.close()
                folder = below
            yield folder, name
        finally:
            folder.close()

    def stat(self, path: str) -> os.stat_result | None:
        """Stat without following, None when nothing is there."""
        try:
            with self.holder(path) as (folder, name):
                place = folder.place(name)
                return os.lstat(place.name, dir_fd=place.dir_fd)
        except FileNotFoundError:
            return None


def _step(folder: Folder, part: str, path: str, made: list[str] | None) -> Folder:
    try:
        try:
            return folder.below(part)
        except FileNotFoundError:
            if made is None:
                raise
            place = folder.place(part)
            with suppress(FileExistsError):  # another process was quicker
                os.mkdir(place.name, 0o700 if path == OWN else 0o777, dir_fd=place.dir_fd)
                made.append(path)
            return folder.below(part)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise InTheWay(error.errno, os.strerror(error.errno), path) from error
        raise


def refuse_link(place: Place) -> int:
    """Return the mode of what is there, if it is no link."""
    mode = os.lstat(place.name, dir_fd=place.dir_fd).st_mode
    if stat.S_ISLNK(mode):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return mode


def open_file(place: Place, flags: int = os.O_RDONLY, mode: int = 0o600) -> tuple[int, os.stat_result]:
    """Open a regular file without following a link or waiting for a FIFO.

    Raises:
        OSError: ELOOP for a link; `NotRegular` for a folder, FIFO, device or socket.
    """
    if not _NOFOLLOW and not flags & os.O_EXCL:
        refuse_link(place)
    fd = os.open(place.name, flags | _FILE, mode, dir_fd=place.dir_fd)
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        raise NotRegular(errno.EINVAL, what_is(found.st_mode))
    return fd, found


def read_bytes(fd: int, start: int, length: int) -> bytes:
    """Read up to `length` bytes from `start`, fewer only at the end of the file."""
    if start:
        os.lseek(fd, start, os.SEEK_SET)
    parts = []
    while length > 0 and (chunk := os.read(fd, min(length, 1 << 20))):
        parts.append(chunk)
        length -= len(chunk)
    return b"".join(parts)


def write_bytes(fd: int, data: bytes) -> None:
    """Write all bytes, in one call where the system takes them at once."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def what_is(mode: int) -> str:
    """Name the kind of a file that is no regular one."""
    if stat.S_ISLNK(mode):
        return "a symbolic link, which is never followed"
    if stat.S_ISDIR(mode):
        return "a folder, not a file"
    if stat.S_ISFIFO(mode):
        return "a FIFO, not a file"
    return "a socket, not a file" if stat.S_ISSOCK(mode) else "a device, not a file"


def words(error: OSError) -> str:
    """Say an error of the system in plain words, without a path."""
    return _WORDS.get(error.errno or 0) or os.strerror(error.errno or 0).lower()


def problem_of(error: OSError) -> FileProblem:
    """Say why a file can't be had; only what is known to be missing is `absent`."""
    if isinstance(error, NotRegular):
        return FileProblem("unsafe", f"it is {error.strerror}")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return FileProblem("absent", "it does not exist")
    if error.errno == errno.ELOOP:
        return FileProblem("unsafe", "a symbolic link is never followed")
    if error.errno == errno.ENXIO:
        return FileProblem("unsafe", "it is a socket or a device, not a file")
    return FileProblem("unavailable", f"could not look: {words(error)}")
