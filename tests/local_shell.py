"""Shells that are plain processes of this machine, for the tests of ShellBackend."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mdmemory.backends.shell import Completed
from mdmemory.errors import Unavailable

KINDS = [name for name in ("dash", "busybox") if shutil.which(name)]


class LocalShell:
    """Runs commands here, with `sh` and the tools of one kind.

    Args:
        kind: `dash` with the machine's own tools, or `busybox` with its applets.
        place: an empty folder for links to the tools.
    """

    def __init__(self, kind: str, place: Path) -> None:
        self.kind, self.runs = kind, 0
        self.verbs: list[str] = []
        self._path = os.environ["PATH"]
        self._bin = place / "bin"
        self._bin.mkdir(parents=True)
        (self._bin / "sh").symlink_to(shutil.which(kind) or kind)
        self._path = f"{self._bin}:{self._path}"

    async def run(self, argv: Sequence[str], stdin: bytes, *, timeout_s: float, max_output_bytes: int) -> Completed:
        """Run a command, as `Shell.run`."""
        self.runs += 1
        self.verbs.append(argv[argv.index("mdmemory") + 1] if "mdmemory" in argv else argv[0])
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={"PATH": self._path},
            cwd="/",
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(timeout_s):
                stdout, stderr = await process.communicate(stdin)
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        if len(stdout) > max_output_bytes:
            raise Unavailable("too much output")
        return Completed(process.returncode or 0, stdout, stderr)

    async def close(self) -> None:
        """Nothing is held."""
