"""A folder that exists only in this process: for tests. Floor 1."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence

from mdmemory.backends import paths
from mdmemory.backends.protocol import (
    HEAD_BYTES,
    LOG,
    MAX_FILE_BYTES,
    TAIL_BYTES,
    TOO_LARGE,
    Append,
    Delete,
    Entry,
    File,
    FileProblem,
    Move,
    Op,
    Put,
    Range,
    Scan,
    Version,
    check_ops,
    done_mark,
    etag_of,
    parents,
    shielded,
    span,
    to_append,
    touched,
    unmet,
)
from mdmemory.errors import InvalidPath


class MemoryBackend:
    """The same contract on a dictionary. Each verb gives way once before it works in one go, as a round trip would."""

    def __init__(self) -> None:
        self._files: dict[str, tuple[bytes, Entry]] = {}
        self._writes = 0

    async def scan(self, known: Mapping[str, Version] = {}, *, head_bytes: int = HEAD_BYTES) -> Scan:
        """Look at every file, as `Backend.scan`."""
        await asyncio.sleep(0)
        shown = {path: file for path, file in self._files.items() if not path.startswith(".")}
        files = {path: entry for path, (_, entry) in shown.items()}
        heads = {
            path: data[:head_bytes]
            for path, (data, entry) in shown.items()
            if path.lower().endswith(".md") and known.get(path) != entry.version
        }
        return Scan(files, heads, {})

    async def read(self, wanted: Mapping[str, Range | None]) -> Mapping[str, File | FileProblem]:
        """Read files or parts of them, as `Backend.read`."""
        await asyncio.sleep(0)
        return {paths.check(path, hidden=True): self._read_one(path, part) for path, part in wanted.items()}

    async def commit(self, commit_id: str, ops: Sequence[Op]) -> Mapping[str, str]:
        """Check and apply, as `Backend.commit`."""
        check_ops(ops)
        return await shielded(self._commit(commit_id, ops))

    async def close(self) -> None:
        """Nothing is held."""

    def _read_one(self, path: str, part: Range | None) -> File | FileProblem:
        if self._below(path):
            return FileProblem("unsafe", "it is a folder, not a file")
        if path not in self._files:
            return FileProblem("absent", "it does not exist")
        data, entry = self._files[path]
        start, length = span(part, entry.size)
        if length > MAX_FILE_BYTES:
            return TOO_LARGE
        whole = length == entry.size
        return File(data[start : start + length], etag_of(data) if whole else None, entry.size, entry.mtime_ns)

    async def _commit(self, commit_id: str, ops: Sequence[Op]) -> Mapping[str, str]:
        await asyncio.sleep(0)
        if done_mark(commit_id).encode() in self._data(LOG)[-TAIL_BYTES:]:
            return {op.path: etag for op in ops if isinstance(op, Put) and (etag := self._etag(op.path))}
        for op in ops:
            self._refuse(op)
        left_out = unmet(ops, self._etag)
        kept = [op for position, op in enumerate(ops) if position not in left_out]
        for op in kept:
            self._apply(op)
        return {op.path: etag_of(op.data) for op in kept if isinstance(op, Put)}

    def _refuse(self, op: Op) -> None:
        for path in touched(op):
            if blocking := next((parent for parent in parents(path) if parent in self._files), None):
                raise InvalidPath(f"{blocking} is a file, not a folder; nothing was written. Choose another path.")
            if not isinstance(op, Move) and self._below(path):
                raise InvalidPath(f"{path} is a folder, not a file; name a file.")

    def _apply(self, op: Op) -> None:
        match op:
            case Put():
                if op.path not in self._files or self._data(op.path) != op.data:
                    self._write(op.path, op.data)
            case Append():
                data = self._data(op.path)
                more = to_append(data[-TAIL_BYTES:], op)
                if more or op.path not in self._files:
                    self._write(op.path, data + more)
            case Delete():
                self._files.pop(op.path, None)
            case Move():
                for path in [op.src, *self._below(op.src)]:
                    if path in self._files:
                        self._files[op.dst + path.removeprefix(op.src)] = self._files.pop(path)

    def _write(self, path: str, data: bytes) -> None:
        self._writes += 1
        self._files[path] = data, Entry(len(data), time.time_ns(), str(self._writes))

    def _data(self, path: str) -> bytes:
        return self._files[path][0] if path in self._files else b""

    def _etag(self, path: str) -> str | None:
        if path in self._files:
            return etag_of(self._files[path][0])
        return "folder" if self._below(path) else None

    def _below(self, folder: str) -> list[str]:
        return [path for path in self._files if path.startswith(f"{folder}/")]
