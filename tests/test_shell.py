"""The helper of ShellBackend, run by plain shells of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from local_shell import KINDS, LocalShell

from mdmemory.backends.shell import ShellBackend
from mdmemory.testing.conformance import BackendConformance


@pytest.mark.skipif("dash" not in KINDS, reason="no dash here")
class TestDash(BackendConformance):
    async def make_backend(self, tmp_path: Path) -> ShellBackend:
        return ShellBackend(LocalShell("dash", tmp_path), str(tmp_path / "memory"))


@pytest.mark.skipif("busybox" not in KINDS, reason="no busybox here")
class TestBusybox(BackendConformance):
    async def make_backend(self, tmp_path: Path) -> ShellBackend:
        return ShellBackend(LocalShell("busybox", tmp_path), str(tmp_path / "memory"))
