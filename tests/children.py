"""Real child processes for tests: forked, so that one starts in a millisecond."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from mdmemory import open_memory

NOBODY = 65_534


def start(work: Callable[[], object], *, uid: int | None = None) -> int:
    """Fork a child that does the work, as another user if asked and possible, and return its process id."""
    sys.stdout.flush()
    if pid := os.fork():
        return pid
    try:
        if uid is not None and os.getuid() == 0:
            load_all()

            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def load_all() -> None:
    """Have modules imported by what uses them: another user may not be able to read where they are."""
    import watchdog.observers.inotify_c  # noqa: F401  # for this alone

    async def have_a_turn() -> None:
        async with open_memory("memory://") as memory:
            await memory.tools.call("Add", {"thinking": "", "content": "A boat."})
            async with memory.session("s").turn("Which boat?") as turn:
                await turn.system_prompt()
                await turn.take_hint()
                await turn.finish("That one.")
            await memory.context("boat")

    thread = threading.Thread(target=lambda: asyncio.run(have_a_turn()))  # the test may have a loop of its own
    thread.start()
    thread.join()


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
