"""Commands in a sandbox of the E2B server, for tests."""

from __future__ import annotations

from mdmemory.backends.e2b import E2BShell
from mdmemory.backends.e2b_sandbox import MemorySandbox
from mdmemory.backends.shell import Completed, LostConnection


def new_shell(memory: str = "m", sandbox_id: str = "") -> E2BShell:
    """A shell of its own, as another process would have it."""
    return E2BShell(MemorySandbox("base", memory, 300, sandbox_id, {}))


async def run(shell: E2BShell, script: str, stdin: bytes = b"", *, timeout_s: float = 30, at_most: int = 1 << 20) -> Completed:
    """Run a script of POSIX sh, once more after a lost connection, as `ShellBackend` does."""
    argv = ["sh", "-c", script]
    try:
        return await shell.run(argv, stdin, timeout_s=timeout_s, max_output_bytes=at_most)
    except LostConnection:
        return await shell.run(argv, stdin, timeout_s=timeout_s, max_output_bytes=at_most)
