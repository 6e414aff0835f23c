"""Memories with mounts on a real disk, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

from mdmemory import Memory, Mount, open_memory
from mdmemory.config import Config

STAGES = ("plan", "write")


def put(root: Path, files: Mapping[str, bytes | str]) -> None:
    """Files that a person put there."""
    for path, data in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data.encode() if isinstance(data, str) else data)


def mounted(root: Path, config: Config | None = None, *, policy: Any = None, **mounts: Any) -> AbstractAsyncContextManager[Memory]:
    """The memory at `root/home`, with `root/NAME` mounted at `NAME/` for each name, its settings a mapping."""
    every = {f"{name}/": Mount(root / name, **settings) for name, settings in mounts.items()}
    more = {"policy": policy} if policy else {}
    return open_memory(root / "home", mounts=every, config=config or Config(cache=False, journal=False, stages=STAGES), **more)
