"""The Anthropic SDK's own tests of its memory tool, pointed at ours: run by `anthropic_suite.py`, beside its `test_filesystem.py`.

Those tests look under the hood of the SDK's tool. What they reach for is here: where the files are, a copy of what a person sees
there (without our index and history), and the two steps between which they swap a file for a link.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from anyio import Path as AsyncPath
from test_filesystem import *  # type: ignore[import-not-found]  # noqa: F403  # the tests themselves, from the SDK's sdist

from mdmemory import open_memory
from mdmemory.adapters import bridge
from mdmemory.adapters.anthropic_memory import AsyncMemoryTool, MemoryTool


def seen_copy(root: Path) -> str:
    """A folder that has, as `memories`, what a person sees in the memory, without the index."""
    copy = tempfile.mkdtemp(dir=root.parent)
    shutil.copytree(root, Path(copy, "memories"), symlinks=True, ignore=shutil.ignore_patterns(".*", "MEMORY.md"))
    return copy


def resolved(root: Path, path: str) -> Path:
    """Where a path of the tool is, links in it followed; the tool itself follows none."""
    return (root / path.removeprefix("/memories").lstrip("/")).resolve()


def first_open(place: Path) -> None:
    """Open a file by its whole path, as the SDK's tool does, and as ours, which goes by descriptors, does not."""
    with suppress(OSError):
        os.close(os.open(place, os.O_RDONLY | os.O_NOFOLLOW))


class SyncTool(MemoryTool):
    """Ours, with what the tests reach for."""

    memory_root: Path

    @property
    def base_path(self) -> str:
        """What is to be compared with the tests' snapshot."""
        return seen_copy(self.memory_root)

    def _validate_path(self, path: str) -> Path:
        return resolved(self.memory_root, path)

    def execute(self, command: Any) -> str:
        """The command, after the steps that the tests hook into."""
        if hasattr(command, "path"):
            first_open(self._validate_path(command.path))
        return super().execute(command)

    view = create = str_replace = insert = delete = rename = execute


class AsyncTool(AsyncMemoryTool):
    """Ours, with what the tests reach for."""

    memory_root: AsyncPath

    @property
    def base_path(self) -> str:
        """What is to be compared with the tests' snapshot."""
        return seen_copy(Path(self.memory_root))

    async def _validate_path(self, path: str) -> AsyncPath:
        return AsyncPath(resolved(Path(self.memory_root), path))

    async def execute(self, command: Any) -> str:
        """The command, after the steps that the tests hook into."""
        if hasattr(command, "path"):
            first_open(Path(await self._validate_path(command.path)))
        return await super().execute(command)

    view = create = str_replace = insert = delete = rename = execute


@pytest.fixture
def sync_local_filesystem_tool(temp_directory: str) -> Iterator[SyncTool]:
    """In place of the SDK's."""
    root = Path(temp_directory, "memories")
    root.mkdir()
    with bridge.open_memory(root) as opened:
        tool = SyncTool(opened, dialect="sdk")
        tool.memory_root = root
        yield tool


@pytest.fixture
async def async_local_filesystem_tool(temp_directory: str) -> AsyncIterator[AsyncTool]:
    """In place of the SDK's."""
    root = Path(temp_directory, "memories")
    root.mkdir()
    async with open_memory(root) as memory:
        tool = AsyncTool(memory, dialect="sdk")
        tool.memory_root = AsyncPath(root)
        yield tool
