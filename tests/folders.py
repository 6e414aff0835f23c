"""Memory folders on a real disk, for tests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from mdmemory.backends.local import LocalBackend
from mdmemory.backends.memory import MemoryBackend
from mdmemory.errors import MdmemoryError
from mdmemory.files.changes import Change
from mdmemory.files.memory_file import new_file
from mdmemory.folder.memory_folder import MemoryFolder


def memory(name: str, description: str = "what it says", type: str = "user", body: str = "The body.", **fields: str) -> bytes:
    """The bytes of a memory file."""
    return new_file(name, description, type, body, **fields)


def on_disk(root: Path, files: Mapping[str, Any] = {}, **settings: Any) -> MemoryFolder:
    """A folder at `root`, with these files, bytes or text, put there by a person."""
    for path, data in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data.encode() if isinstance(data, str) else data)
    return MemoryFolder(LocalBackend(root), **settings)


def in_memory(**settings: Any) -> MemoryFolder:
    """An empty folder that exists in this process only."""
    return MemoryFolder(MemoryBackend(), **settings)


def visible(root: Path) -> dict[str, bytes]:
    """Every file a person sees, by path."""
    files = (path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink())
    found = {path.relative_to(root).as_posix(): path for path in files}
    return {path: place.read_bytes() for path, place in found.items() if not path.startswith(".")}


def everything(root: Path) -> dict[str, str]:
    """The sha256 of every file, the history's too; not of the lock, which any attempt to write leaves."""
    files = (path for path in sorted(root.rglob("*")) if path.is_file() and path.name not in ("lock", ".gitignore"))
    return {path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def index_of(root: Path) -> str:
    """MEMORY.md, empty when it is not there."""
    place = root / "MEMORY.md"
    return place.read_bytes().decode() if place.exists() else ""


def log_of(root: Path) -> list[dict[str, Any]]:
    """The log's entries; every line must parse."""
    place = root / ".mdmemory/log.jsonl"
    return [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines()] if place.exists() else []


def objects_of(root: Path) -> list[bytes]:
    """The contents that the history holds."""
    return [path.read_bytes() for path in sorted(root.glob(".mdmemory/objects/*"))]


async def refuse(root: Path, folder: MemoryFolder, change: Change, error: type[MdmemoryError], author: str = "person") -> str:
    """Apply a change that must be refused with not one byte changed, and return the message."""
    before = everything(root)
    with pytest.raises(error) as caught:
        await folder.apply([change], author, "test")
    assert everything(root) == before and not list(root.glob(".mdmemory/tmp/*"))
    assert str(root) not in str(caught.value)
    return str(caught.value)
