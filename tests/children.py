"""Real child processes for tests: forked, so that one starts in a millisecond."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

NOBODY = 65_534


def start(work: Callable[[], object], *, uid: int | None = None) -> int:
    """Fork a child that does the work, as another user if asked and possible, and return its process id."""
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    try:
        if uid is not None and os.getuid() == 0:
            import watchdog.observers.inotify_c  # noqa: F401  # while the place where Python is installed can be read

            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def end(pid: int) -> int:
    """Wait for a child: 0 when its work succeeded, minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@contextlib.contextmanager
def open_folder() -> Iterator[Path]:
    """A temporary folder that every user can reach, unlike pytest's."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        for path, _, _ in os.walk(folder):
            os.chmod(path, 0o755)
        shutil.rmtree(folder)
