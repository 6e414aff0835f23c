"""A folder wherever a POSIX shell can be run: one call, and so one round trip, a verb. Floor 1.

What runs there is `helper.sh`, sent with each call. Docker and E2B are thin on top of it, and so is any other place that can
run a command with standard input: see docs/backends/your-own.md.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, Protocol

from mdmemory.backends import paths
from mdmemory.backends.protocol import (
    HEAD_BYTES,
    MAX_FILE_BYTES,
    File,
    FileProblem,
    Op,
    Range,
    Scan,
    Version,
    check_ops,
    shielded,
)
from mdmemory.backends.shell_answers import Answer, could_not_look, parse, read_commit, read_files, read_scan
from mdmemory.backends.shell_request import commit_request, known_versions, wanted_paths
from mdmemory.errors import Unavailable

MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024
_KILLED: Final = 137  # what `timeout -s KILL` leaves behind


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that ran to its end."""

    code: int
    stdout: bytes
    stderr: bytes


class Shell(Protocol):
    """A place where a command can be run."""

    async def run(self, argv: Sequence[str], stdin: bytes, *, timeout_s: float, max_output_bytes: int) -> Completed:
        """Run a command to its end, without a terminal, and bring exactly what it wrote.

        Args:
            argv: the program and its arguments; no shell reads them.
            stdin: what the command reads. It need not see its end, and it may end itself before it has read it all.
            timeout_s: how long to wait at most. The command ends itself before that, but whatever it waits for may not.
            max_output_bytes: how much to take in of stdout and of stderr; more is an error as soon as it is known.

        Raises:
            LostConnection: the connection broke, the place was restarted or is asleep: a second try may help.
            Unavailable: anything else, a time-out and too much output included.
        """
        ...

    async def close(self) -> None:
        """Let go of the place. Closing twice is fine."""
        ...


class LostConnection(Unavailable):
    """The connection broke; whether the command ran is unknown."""


class ShellBackend:
    """The `Backend` of a folder inside a sandbox, or on another machine.

    Args:
        shell: runs the commands.
        root: absolute path of the memory's folder there.
        timeout_s: how long a verb may take; it is killed there after that.
        lock_timeout_s: how long a commit waits for another process that holds the lock.
    """

    def __init__(self, shell: Shell, root: str, *, timeout_s: float = 120.0, lock_timeout_s: float = 30.0) -> None:
        self.shell = shell
        self._root = root
        self._timeout_s, self._lock_timeout_s = timeout_s, lock_timeout_s
        self._turn = asyncio.Lock()  # in one process, waiting writers take turns without polling
        self._seen = False

    async def scan(self, known: Mapping[str, Version] = {}, *, head_bytes: int = HEAD_BYTES) -> Scan:
        """Look at every file, as `Backend.scan`."""
        answer = await self._call("scan", str(head_bytes), stdin=known_versions(known))
        if answer.status == "absent" and not self._seen:
            return Scan({}, {}, {})
        scan = await asyncio.to_thread(read_scan, self._look(answer), known, head_bytes)
        self._seen = True
        return scan

    async def read(self, wanted: Mapping[str, Range | None]) -> Mapping[str, File | FileProblem]:
        """Read files or parts of them, as `Backend.read`."""
        for path in wanted:
            paths.check(path, hidden=True)
        if not wanted:
            return {}
        try:
            answer = await self._call("read", str(MAX_FILE_BYTES), stdin=wanted_paths(wanted))
            if answer.status == "absent" and not self._seen:
                return dict.fromkeys(wanted, FileProblem("absent", "it does not exist"))
            found = await asyncio.to_thread(read_files, self._look(answer), wanted)
        except Unavailable as error:
            return dict.fromkeys(wanted, FileProblem("unavailable", str(error)))
        self._seen = True
        return found

    async def commit(self, commit_id: str, ops: Sequence[Op]) -> Mapping[str, str]:
        """Check and apply, as `Backend.commit`."""
        check_ops(ops)
        return await shielded(self._commit(commit_id, ops))

    async def close(self) -> None:
        """Close the shell, after a running commit."""
        async with self._turn:
            await self.shell.close()

    async def _commit(self, commit_id: str, ops: Sequence[Op]) -> Mapping[str, str]:
        request = await asyncio.to_thread(commit_request, commit_id, ops)
        async with self._turn:
            arguments = (str(int(not self._seen)), f"{self._lock_timeout_s:.0f}", secrets.token_hex(8))
            answer = await self._call("commit", *arguments, stdin=request)
        if answer.status == "busy":
            raise Unavailable(
                f"another process has held the memory's lock for {self._lock_timeout_s:g} s; nothing was written. "
                "Try again, or end it."
            )
        if answer.status == "absent":
            self._look(answer)
        self._seen = True
        return read_commit(answer, ops)

    def _look(self, answer: Answer) -> Answer:
        if answer.status == "absent":
            raise could_not_look("it was there and is gone")
        if answer.status == "unavailable":
            raise could_not_look(answer.words)
        return answer

    async def _call(self, verb: str, *arguments: str, stdin: bytes) -> Answer:
        """Run the helper; once more after a lost connection, which is safe as a commit that happened is told by its traces."""
        limit = f"{self._timeout_s:.0f}"
        command = ["sh", "-c", _helper(), "mdmemory", verb, str(len(stdin)), self._root, *arguments]
        argv = ["timeout", "-s", "KILL", limit, *command]
        for last_try in (False, True):
            try:
                done = await self.shell.run(
                    argv, stdin, timeout_s=self._timeout_s + self._lock_timeout_s, max_output_bytes=MAX_ANSWER_BYTES
                )
                break
            except LostConnection:
                if last_try:
                    raise
        if done.code == _KILLED:
            raise Unavailable(f"the memory's {verb} was ended after {limit} s, or its sandbox was. Try again.")
        return parse(verb, done.code, done.stdout, done.stderr)


@cache
def _helper() -> str:
    """The helper without its comments."""
    lines = files("mdmemory.backends").joinpath("helper.sh").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))
