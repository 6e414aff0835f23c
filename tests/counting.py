"""A backend that counts round trips: a wrapper, as anyone may write one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mdmemory.backends.protocol import HEAD_BYTES, Backend, File, FileProblem, Op, Range, Scan, Version


class CountingBackend:
    """Passes every call on; `calls` names them in order, `paths` what was read, `heads` counts the heads that scans brought."""

    def __init__(self, inner: Backend) -> None:
        self.inner = inner
        self.watchable_root: Path | None = getattr(inner, "watchable_root", None)
        self.calls: list[str] = []
        self.paths: list[str] = []
        self.heads = 0

    async def scan(self, known: Mapping[str, Version] = {}, *, head_bytes: int = HEAD_BYTES) -> Scan:
        """Count, and scan."""
        self.calls.append("scan")
        found = await self.inner.scan(known, head_bytes=head_bytes)
        self.heads = len(found.heads)
        return found

    async def read(self, wanted: Mapping[str, Range | None]) -> Mapping[str, File | FileProblem]:
        """Count, and read."""
        self.calls.append("read")
        self.paths += wanted
        return await self.inner.read(wanted)

    async def commit(self, commit_id: str, ops: Sequence[Op]) -> Mapping[str, str]:
        """Count, and commit."""
        self.calls.append("commit")
        return await self.inner.commit(commit_id, ops)

    async def close(self) -> None:
        """Close."""
        await self.inner.close()
