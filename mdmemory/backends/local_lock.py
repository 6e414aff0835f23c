"""One writer at a time in a local folder, over all processes. Floor 1.

The lock is `flock` on `.mdmemory/lock`, which the system lets go of when a process dies. Where the file system has no flock, it
is a folder `.mdmemory/lock.d` that holds one file named after its owner. Any process may remove the name of a dead owner of its
own host; as each name is used once, only one can, and never a living one's.
"""

from __future__ import annotations

import errno
import os
import random
import secrets
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial

from mdmemory.backends.local_io import Folder, open_file
from mdmemory.errors import Unavailable

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]  # the platform decides

HAS_FLOCK = fcntl is not None
_NO_FLOCK = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS)
_POLL_S = (0.002, 0.016)  # measured: shorter waits take more from the holder than they give
_LOCK, _LOCK_FOLDER = "lock", "lock.d"

Release = Callable[[], None]


@contextmanager
def locked(own: Folder, timeout_s: float, *, flock: bool = HAS_FLOCK) -> Iterator[None]:
    """Hold the lock of the memory whose `.mdmemory` folder is `own`.

    Args:
        own: the open `.mdmemory` folder.
        timeout_s: how long to wait for it; 0 tries once.
        flock: use flock where the file system has it.

    Raises:
        Unavailable: another process held it all the time.
    """
    deadline = time.monotonic() + timeout_s
    take = _take_file if flock else _take_folder
    while (release := take(own)) is None:
        if time.monotonic() >= deadline:
            raise Unavailable(
                f"another process has held the memory's lock for {timeout_s:g} s; nothing was written. Try again, or end it."
            )
        time.sleep(random.uniform(*_POLL_S))
    try:
        yield
    finally:
        release()


def _take_file(own: Folder) -> Release | None:
    fd, _ = open_file(own.place(_LOCK), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(fd).st_nlink:  # else someone removed it: others lock a new one
            return partial(_let_go, fd)
    except BlockingIOError:
        pass
    except OSError as error:
        if error.errno in _NO_FLOCK:
            os.close(fd)
            return _take_folder(own)
        raise
    os.close(fd)
    return None


def _let_go(fd: int) -> None:
    fcntl.flock(fd, fcntl.LOCK_UN)  # a process forked meanwhile has the descriptor as well
    os.close(fd)


def _take_folder(own: Folder) -> Release | None:
    place = own.place(_LOCK_FOLDER)
    try:
        os.mkdir(place.name, 0o700, dir_fd=place.dir_fd)
    except FileExistsError:
        return _take_folder(own) if _clear_dead(own) else None
    name = f"{os.getpid()}.{secrets.token_hex(8)}.{socket.gethostname()}"
    try:
        with own.below(_LOCK_FOLDER) as folder:
            mine = folder.place(name)
            os.close(open_file(mine, os.O_WRONLY | os.O_CREAT | os.O_EXCL)[0])
            if os.listdir(folder.at) == [name]:
                return partial(_leave_folder, own, name)
            os.unlink(mine.name, dir_fd=mine.dir_fd)  # ours was cleared as empty and made anew by another: both step back
    except FileNotFoundError:
        pass
    return None


def _clear_dead(own: Folder) -> bool:
    with suppress(FileNotFoundError), own.below(_LOCK_FOLDER) as folder:
        for name in os.listdir(folder.at):
            pid, _, host = name.split(".", 2)
            if host == socket.gethostname() and not _alive(int(pid)):
                dead = folder.place(name)
                os.unlink(dead.name, dir_fd=dead.dir_fd)
    return _remove_folder(own)


def _leave_folder(own: Folder, name: str) -> None:
    with own.below(_LOCK_FOLDER) as folder:
        mine = folder.place(name)
        os.unlink(mine.name, dir_fd=mine.dir_fd)
    _remove_folder(own)


def _remove_folder(own: Folder) -> bool:
    place = own.place(_LOCK_FOLDER)
    try:
        os.rmdir(place.name, dir_fd=place.dir_fd)
    except OSError:  # not empty: someone holds it
        return False
    return True


def _alive(pid: int) -> bool:
    if os.name == "nt":
        return True  # there, a signal 0 would end the process
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
