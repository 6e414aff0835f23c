"""What the system tells of changes on this machine's disk, so that a look at a quiet folder costs no scan. Floor 3.

Nothing is taken on trust: before each answer a file is made in `.mdmemory/`, and only when the system has told of it is everything
told that was saved before. Whatever is unsure (events that were lost, a silent system, folders that came or moved) ends in a scan.
Changes on a network file system are not told of, so one is never watched; nor is a folder outside Linux, or one not writable.
A few changes here are not told of either, such as those through a second name that a file has elsewhere: so that they are found
as well, everything is looked at from time to time.
"""

from __future__ import annotations

import itertools
import logging
import os
import stat
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mdmemory.backends.local_io import OWN
from mdmemory.backends.mounts import MOUNTS, is_own_disk
from mdmemory.backends.paths import fault

if TYPE_CHECKING:
    from watchdog.observers.inotify_c import InotifyEvent, InotifyFD

logger = logging.getLogger("mdmemory")
WAIT_S: Final = 0.25
MAX_PATHS: Final = 100  # of more, a scan knows sooner which ones changed
MAX_RESTARTS: Final = 3
TRUST_S: Final = 600.0


class Watcher:
    """Tells which files may have changed; its thread begins with the second question, and ends at `close`.

    Args:
        root: the folder, resolved.
        mounts: where the system lists its mounts.
        trust_s: how long it is trusted until everything is looked at.
    """

    def __init__(self, root: Path, mounts: Path = MOUNTS, trust_s: float = TRUST_S) -> None:
        self._root, self._mounts, self._trust_s = root, mounts, trust_s
        self._trusted_from = 0.0
        self._turn = threading.Lock()
        self._listener: _Listener | None = None
        self._stop: Callable[[], object] | None = None
        self._asked, self._given_up, self._restarts = False, False, 0

    def changed(self) -> frozenset[str] | None:
        """The visible paths that may have changed since the last question; None: look at everything. Blocks up to 250 ms."""
        with self._turn:
            if self._listener is None:
                if self._asked and not self._given_up:
                    self._begin()  # before the scan that now follows, so that nothing falls between
                self._asked = True
                return None
            try:
                told = self._listener.told()
            except OSError as error:
                logger.warning("the folder's watcher is begun anew after a scan: %s", error.strerror)
                self._restarts += 1
                told = None
            else:
                self._restarts = 0
            if told is None:
                self._end()
                self._given_up = self._restarts > MAX_RESTARTS
                if not self._given_up:
                    self._begin()
                return None
            is_due = time.monotonic() >= self._trusted_from + self._trust_s
            if is_due or len(told) > MAX_PATHS or not all(map(self._is_plain, told)):
                self._trusted_from = time.monotonic()
                return None
            return frozenset(told)

    @property
    def has_news(self) -> bool:
        """Whether the next answer may tell of something: False only while the system has told of nothing since the last one."""
        return self._listener is None or self._listener.has_news

    @property
    def is_watching(self) -> bool:
        """Whether the system tells of changes by now."""
        return self._listener is not None

    def close(self) -> None:
        """End the thread."""
        with self._turn:
            self._end()
            self._given_up = True

    def _begin(self) -> None:
        if not is_own_disk(self._root, self._mounts):
            self._given_up = True
        elif os.access(self._root / OWN, os.W_OK):  # else the first commit will make it
            try:
                self._listener = _Listener(self._root)
            except (OSError, ImportError) as error:
                why = error.strerror if isinstance(error, OSError) else "watchdog is older than 7.1"
                logger.info("the folder is not watched, so every look at it is a scan: %s", why)
                self._given_up = True
            else:
                self._trusted_from = time.monotonic()
                self._stop = weakref.finalize(self, self._listener.close)  # also for a watcher that nobody closed

    def _end(self) -> None:
        if self._stop is not None:
            self._stop()
        self._listener = self._stop = None

    def _is_plain(self, path: str) -> bool:
        """Whether a file is gone or can be read as it is: of links, and of odd names, only a scan tells."""
        try:
            found = os.lstat(self._root / path)
        except OSError:
            return not fault(path)
        return not fault(path) and stat.S_ISREG(found.st_mode) and found.st_nlink == 1


class _Listener:
    """One watch on every visible folder, from one walk over them until the first doubt."""

    _numbers = itertools.count()

    def __init__(self, root: Path) -> None:
        from watchdog.observers.inotify_c import InotifyFD

        self._root, self._identity = root, _identity(root)
        self._lock, self._heard = threading.Lock(), threading.Event()
        self._paths: set[str] = set()
        self._prefixes: dict[int, str] = {}
        self._awaited = ""
        self._everything = self._lost = False
        self._own = os.open(root / OWN, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        self._inotify: InotifyFD | None = None
        try:
            self._inotify = InotifyFD()
            self._inotify.start()
            with self._lock:  # what happens meanwhile waits
                self._watch_all(self._inotify)
        except OSError:
            self.close()
            raise

    @property
    def has_news(self) -> bool:
        """Whether anything was told since the last time; what was saved within the last moment may yet be on its way."""
        return bool(self._paths) or self._everything or self._lost

    def told(self) -> set[str] | None:
        """The paths told of since the last time; None when that does not tell all.

        Raises:
            OSError: events were lost, or none come any more.
        """
        if self._inotify is None or not self._inotify.is_alive():
            raise OSError(0, "its thread has died")
        self._heard.clear()
        self._awaited = f"watch-{os.getpid()}-{next(self._numbers)}"
        os.close(os.open(self._awaited, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600, dir_fd=self._own))
        try:
            in_time = self._heard.wait(WAIT_S)
        finally:
            os.unlink(self._awaited, dir_fd=self._own)
        with self._lock:
            paths, self._paths = self._paths, set()
            if self._lost:
                raise OSError(0, "there were more changes than the system remembers")
            if self._everything or _identity(self._root) != self._identity:
                return None
        if not in_time:
            raise OSError(0, "the system is silent")
        return paths

    def close(self) -> None:
        """End the thread; closing twice is fine."""
        inotify, self._inotify = self._inotify, None
        if inotify is not None and inotify.is_alive():
            inotify.stop()
            if threading.current_thread() is not inotify:
                inotify.join()
        if self._own >= 0:
            os.close(self._own)
            self._own = -1

    def _watch_all(self, inotify: InotifyFD) -> None:
        from watchdog.observers.inotify_c import CallbackId, InotifyConstants, Mask

        on = InotifyConstants  # reading makes no event that is asked for here: no open, no access, no close without a write
        itself = on.IN_DELETE_SELF | on.IN_MOVE_SELF | on.IN_DONT_FOLLOW | on.IN_ONLYDIR
        saved = on.IN_MODIFY | on.IN_ATTRIB | on.IN_CLOSE_WRITE | on.IN_MOVE | on.IN_CREATE | on.IN_DELETE
        key, callback = CallbackId(id(self)), self
        self._barrier = inotify.add_callback(os.fsencode(self._root / OWN), Mask(itself | on.IN_CREATE), callback, key)
        below = [""]
        while below:
            prefix = below.pop()
            place = self._root / prefix
            try:  # first the watch and then the look, so that no folder comes between them
                wd = inotify.add_callback(os.fsencode(place), Mask(itself | saved), callback, key)
                with os.scandir(place) as entries:
                    names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
            except (FileNotFoundError, NotADirectoryError):
                self._everything = True  # it was there a moment ago
                continue
            except PermissionError:
                continue  # the scan says so
            self._prefixes[wd] = prefix
            below += [f"{prefix}{name}/" for name in names if not name.startswith(".")]

    def on_event(self, event: InotifyEvent) -> None:
        """Take in an event; called by the thread."""
        name = os.fsdecode(event.name)
        with self._lock:
            if event.wd == self._barrier and name:
                if name == self._awaited:
                    self._heard.set()
            elif event.is_directory or not name or event.wd not in self._prefixes:
                self._everything = self._everything or not name.startswith(".")
            elif not name.startswith("."):
                self._paths.add(self._prefixes[event.wd] + name)

    def on_watch_deleted(self, wd: int) -> None:
        """A folder went; called by the thread."""
        self._everything = True

    def on_queue_overflow(self) -> None:
        """Events were lost; called by the thread."""
        self._lost = True


def _identity(root: Path) -> Any:
    """What tells a folder from another that has come to its place; None when there is none."""
    try:
        found = os.stat(root)
    except OSError:
        return None
    return found.st_dev, found.st_ino
