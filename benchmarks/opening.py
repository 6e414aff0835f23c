"""What a process that has just started pays for opening a folder, without what it pays for Python, for imports and for a loop."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

import corpus
from timing import Used, used_by

from mdmemory import Config, open_memory


def opening(folder: Path, config: Config, *, floor_first: bool) -> tuple[Used, Used]:
    """Opening and looking at the folder, beside listing it: to be called in a process of its own."""
    with asyncio.Runner() as runner, tempfile.TemporaryDirectory() as small:
        corpus.fill(Path(small), 2)
        runner.run(open_and_look(Path(small), config))  # a folder of two files has everything imported, and a thread started
        if floor_first:
            floor = used_by(lambda: look(folder))
            return used_by(lambda: runner.run(open_and_look(folder, config))), floor
        ours = used_by(lambda: runner.run(open_and_look(folder, config)))
        return ours, used_by(lambda: look(folder))


async def open_and_look(folder: Path, config: Config) -> None:
    """Be ready to search."""
    async with open_memory(folder, config=config) as memory:
        await memory.folder.refresh()


def look(folder: str | Path) -> None:
    """List every folder and look at every file: nobody notices a change for less without being told of it."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                look(entry.path)
            else:
                entry.stat(follow_symlinks=False)
