"""Every backend that runs without a server passes the one conformance suite."""

from __future__ import annotations

from pathlib import Path

from mdmemory.backends.local import LocalBackend
from mdmemory.backends.memory import MemoryBackend
from mdmemory.backends.protocol import Backend
from mdmemory.testing.conformance import BackendConformance


class WeakerLocalBackend(LocalBackend):
    """What runs where the platform has neither folder descriptors nor flock."""

    _by_descriptor = False
    _flock = False


class TestMemory(BackendConformance):
    """The backend in memory."""

    async def make_backend(self, tmp_path: Path) -> Backend:
        """Make an empty one."""
        return MemoryBackend()


class TestLocal(BackendConformance):
    """The local backend, walking by descriptors."""

    kind: type[LocalBackend] = LocalBackend

    async def make_backend(self, tmp_path: Path) -> Backend:
        """Make one for a folder that does not exist yet."""
        self.root = tmp_path / "memory"
        return self.kind(self.root)

    async def plant(self, backend: Backend, path: str, data: bytes) -> None:
        """Write the file as an editor does."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


class TestLocalWeaker(TestLocal):
    """The local backend, in the weaker way."""

    kind = WeakerLocalBackend
