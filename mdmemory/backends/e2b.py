"""A memory in an E2B sandbox, through the async SDK. Floor 1.

A command is one request; what is given to it beyond 64 KB, compressed, is uploaded by one more. E2B pauses the sandbox when its
time is over, and the next call resumes it; nothing ends it but `kill`.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import gzip
import secrets
import shlex
from collections.abc import Sequence
from typing import Any, Final, Self

from mdmemory.backends.e2b_errors import TooManyRequests, translated
from mdmemory.backends.e2b_sandbox import MemorySandbox, settings_of
from mdmemory.backends.shell import Completed, LostConnection, ShellBackend
from mdmemory.errors import Unavailable

INLINE_BYTES: Final = 65_536  # in base64 and with the helper, this is near what Linux takes as one argument
ROOT: Final = "/home/user/memory"
_WAITS_S: Final = (0.5, 2.0, 4.0)  # after a 429, whose retry-after the SDK drops
_SWEEP: Final = "find ~ -maxdepth 1 -name '.mdmemory-*' -mmin +60 -exec rm -f {} +"  # uploads whose command never came


class E2BShell:
    """Runs commands in the sandbox of a memory, under a login shell of its user."""

    def __init__(self, sandbox: MemorySandbox) -> None:
        self.sandbox = sandbox

    async def run(self, argv: Sequence[str], stdin: bytes, *, timeout_s: float, max_output_bytes: int) -> Completed:
        """Run a command, as `Shell.run`; a 429 is waited out for some seconds."""
        waits = iter(_WAITS_S)
        while True:
            try:
                return await self._run(await self.sandbox.connected(), argv, stdin, timeout_s, max_output_bytes)
            except TooManyRequests:
                if (wait_s := next(waits, None)) is None:
                    raise
                await asyncio.sleep(wait_s)

    async def close(self) -> None:
        """Let go of the sandbox, which E2B pauses when its time is over."""
        self.sandbox.let_go()

    async def _run(self, sandbox: Any, argv: Sequence[str], stdin: bytes, timeout_s: float, max_output_bytes: int) -> Completed:
        mark = secrets.token_hex(8)  # stands before the output: a login shell may greet
        data = gzip.compress(stdin, 1, mtime=0) if len(stdin) > INLINE_BYTES else stdin
        unpack = "gzip -dc" if len(stdin) > INLINE_BYTES else "cat"
        out, err = _Output(2 * max_output_bytes + 65_536), _Output(max_output_bytes)
        try:
            if len(data) <= INLINE_BYTES:
                source = f"printf %s {base64.b64encode(data).decode()} | base64 -d | {unpack}"
            else:
                file = f".mdmemory-{mark}"
                source = f"exec <~/{file}; rm -f ~/{file}; {_SWEEP}; {unpack}"
                await translated(sandbox.files.write(file, data, use_octet_stream=True), inside=True)
            work = f"{shlex.join(argv)} < <({source}) | head -c {max_output_bytes + 1} | base64"
            code = await translated(_exit_code(sandbox, f"set -o pipefail; echo {mark}; {work}", timeout_s, out, err), inside=True)
        except LostConnection:
            self.sandbox.let_go(sandbox)
            raise
        try:
            stdout = base64.b64decode("".join(out.pieces).partition(f"{mark}\n")[2])
        except binascii.Error as error:
            raise Unavailable("the sandbox's answer can't be read. Try again.") from error
        if len(stdout) > max_output_bytes:
            raise _too_much()
        return Completed(code, stdout, "".join(err.pieces).encode())


class E2BBackend(ShellBackend):
    """A folder in an E2B sandbox.

    Args:
        template: what the sandbox is made from when there is none.
        memory: the memory's name, by which its sandbox is found again.
        root: the folder, inside the sandbox.
        timeout_s: how long after it was last connected to E2B pauses the sandbox; the next call resumes it.
        sandbox_id: use this sandbox, whatever its name.
        options: of each request of the SDK, such as `api_key`.
    """

    def __init__(
        self,
        template: str = "base",
        *,
        memory: str = "",
        root: str = ROOT,
        timeout_s: int = 300,
        sandbox_id: str = "",
        **options: Any,
    ) -> None:
        self.sandbox = MemorySandbox(template, memory, timeout_s, sandbox_id, options)
        super().__init__(E2BShell(self.sandbox), root)
        self.location = f"e2b://{sandbox_id or memory}{root}"

    @classmethod
    def from_url(cls, url: str) -> Self:
        """The backend of `e2b://TEMPLATE?memory=NAME`, with `root`, `timeout` and `sandbox` where they are wanted.

        Raises:
            ConfigError: a part of the URL can't be used.
        """
        return cls(**settings_of(url))

    async def pause(self) -> None:
        """Write to the disk what is on its way, and pause the sandbox, if it was used, until the next call."""
        await self.sandbox.pause()

    async def kill(self) -> None:
        """End the sandbox, and with it the memory."""
        await self.sandbox.kill()


class _Output:
    """What a command says, up to a limit in characters."""

    def __init__(self, limit: int) -> None:
        self.pieces: list[str] = []
        self._left = limit

    def __call__(self, text: str) -> None:
        self._left -= len(text)
        if self._left < 0:
            raise _too_much()
        self.pieces.append(text)


def _too_much() -> Unavailable:
    return Unavailable("the sandbox answered with more than was asked for.")


async def _exit_code(sandbox: Any, command: str, timeout_s: float, out: _Output, err: _Output) -> int:
    from e2b import CommandExitException

    limits = {"timeout": timeout_s, "request_timeout": timeout_s}
    running = await sandbox.commands.run(command, background=True, on_stdout=out, on_stderr=err, retain_output=False, **limits)
    try:
        return int((await running.wait()).exit_code)
    except CommandExitException as error:
        return error.exit_code
    finally:
        await running.disconnect()
