"""An AgentScope workspace as a place where commands run: a memory in it is reached by them. Floor 7."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from typing import Any

from mdmemory.backends.shell import Completed
from mdmemory.errors import Unavailable

WITH_INPUT = 'input="$1"; shift; "$@" <"$input"; code=$?; rm -f "$input"; exit $code'


class WorkspaceShell:
    """A `Shell` of a workspace's backend, whose commands have no standard input: it goes by a file in /tmp.

    Args:
        backend: AgentScope's `BackendBase`.
    """

    def __init__(self, backend: Any) -> None:
        self._backend = backend

    async def run(self, argv: Sequence[str], stdin: bytes, *, timeout_s: float, max_output_bytes: int) -> Completed:
        """Run a command to its end, as `Shell.run`."""
        command = list(argv)
        if stdin:
            path = f"/tmp/mdmemory-{secrets.token_hex(8)}"
            await self._backend.write_file(path, stdin)
            command = ["sh", "-c", WITH_INPUT, "sh", path, *argv]
        done = await self._backend.exec_shell(command, timeout=timeout_s)
        if done.exit_code == -1:
            raise Unavailable("the workspace of the memory did not answer. Try again.")
        if max(len(done.stdout), len(done.stderr)) > max_output_bytes:
            raise Unavailable(f"more than {max_output_bytes} bytes came back, which is more than a memory has.")
        return Completed(done.exit_code, done.stdout, done.stderr)

    async def close(self) -> None:
        """The workspace is the agent's, which closes it."""
