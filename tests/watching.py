"""Watched folders, for tests."""

from __future__ import annotations

import threading
from pathlib import Path

from counting import CountingBackend
from folders import memory

from mdmemory import Config
from mdmemory.backends.local import LocalBackend
from mdmemory.files.changes import Create
from mdmemory.folder.memory_folder import MemoryFolder

Pair = tuple[MemoryFolder, CountingBackend]


def threads() -> list[threading.Thread]:
    """The watchers' threads in this process."""
    return [thread for thread in threading.enumerate() if type(thread).__name__ == "InotifyFD" and thread.is_alive()]


async def watched(root: Path, config: Config | None = None) -> tuple[MemoryFolder, CountingBackend]:
    """A folder with two files that has been looked at twice, and what counts its calls."""
    backend = CountingBackend(LocalBackend(root))
    folder = MemoryFolder(backend, config)
    await folder.apply([Create("a.md", memory("A")), Create("sub/b.md", memory("B"))], "person", "test")
    for _ in range(3):  # the last reads what the first two left in doubt
        await folder.refresh()
    backend.calls.clear()
    return folder, backend
