"""A folder wherever a POSIX shell can be run: one call, and so one round trip, a verb. Floor 1.

What runs there is `helper.sh`, sent with each call. Docker and E2B are thin on top of it, and so is any other place that can
run a command with standard input: see docs/backends/your-own.md.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Final, Protocol

from mdmemory.backends import paths
from mdmemory.backends.protocol import (
    ANY,
    HEAD_BYTES,
    MAX_FILE_BYTES,
    File,
    FileProblem,
    Op,
    Put,
    Range,
    Scan,
    Version,
    check_ops,
    etag_of,
    shielded,
)
from mdmemory.backends.shell_answer import Answer, could_not_look, parse
from mdmemory.backends.shell_commit import commit_request, read_commit
from mdmemory.backends.shell_look import known_versions, read_files, read_scan, wanted_paths
from mdmemory.errors import ConfigError, Conflict, Unavailable

MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024
_RETRY_AFTER_S: Final = 0.2
_KILLED: Final = (137, -9)  # what `timeout -s KILL` leaves behind, as a shell or as a process says it


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
        if not root.startswith("/"):
            raise ConfigError(f"The memory's folder in a sandbox is an absolute path, such as /memory, not {root!r}.")
        self.shell = shell
        self._root = root
        self._timeout_s, self._lock_timeout_s = timeout_s, lock_timeout_s
        self._turn = asyncio.Lock()  # in one process, waiting writers take turns without polling
        self._waiting = 0
        self._written: dict[str, tuple[int, str]] = {}
        self._commits = 0
        self._unanswered: set[str] = set()
        self._reading = asyncio.Lock()
        self._next_trip: _Trip | None = None
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
        trip = self._next_trip
        if trip is None or any(trip.wanted.get(path, part) != part for path, part in wanted.items()):
            trip = self._next_trip = _Trip({})
            trip.task = asyncio.ensure_future(self._go(trip))
        trip.wanted.update(wanted)
        assert trip.task is not None
        found = await asyncio.shield(trip.task)
        return {path: found[path] for path in wanted}

    async def _go(self, trip: _Trip) -> Mapping[str, File | FileProblem]:
        async with self._reading:
            if self._next_trip is trip:
                self._next_trip = None
            return await self._read(trip.wanted)

    async def _read(self, wanted: Mapping[str, Range | None]) -> Mapping[str, File | FileProblem]:
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
        since = self._commits
        self._waiting += 1
        try:
            async with self._turn:
                if commit_id not in self._unanswered:  # else it may have happened
                    self._refuse_overtaken(ops, since)
                arguments = (str(int(not self._seen)), f"{self._lock_timeout_s:.0f}", secrets.token_hex(8))
                answer = await self._call("commit", *arguments, stdin=request)
                etags = self._committed(answer, ops)
                self._commits += 1
                self._written.update({path: (self._commits, etag) for path, etag in etags.items()})
                return etags
        except Unavailable:
            self._unanswered.add(commit_id)
            raise
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._written.clear()

    def _refuse_overtaken(self, ops: Sequence[Op], since: int) -> None:
        """Spare the round trip of a put whose file another commit of this process replaced while it waited its turn."""
        for op in ops:
            if isinstance(op, Put) and op.required and op.if_match != ANY:
                number, etag = self._written.get(op.path, (0, ""))
                if number > since and etag not in (op.if_match, etag_of(op.data)):
                    raise Conflict(op.path, etag)

    def _committed(self, answer: Answer, ops: Sequence[Op]) -> Mapping[str, str]:
        if answer.status == "busy":
            raise Unavailable(
                f"another process has held the memory's lock for {self._lock_timeout_s:g} s; nothing was written. "
                "Try again, or end it."
            )
        etags = read_commit(self._look(answer), ops)
        self._seen = True
        return etags

    def _look(self, answer: Answer) -> Answer:
        if answer.status == "absent":
            raise could_not_look("it was there and is gone")
        if answer.status == "unavailable":
            raise could_not_look(answer.words)
        return answer

    async def _call(self, verb: str, *arguments: str, stdin: bytes) -> Answer:
        """Run the helper; once more after a lost connection, which is safe as a commit that happened is told by its traces."""
        command = ["sh", "-c", _helper(), "mdmemory", verb, str(len(stdin)), self._root, *arguments]
        argv = ["timeout", "-s", "KILL", f"{self._timeout_s:g}", *command]
        try:
            done = await self._run(argv, stdin)
        except LostConnection:
            await asyncio.sleep(_RETRY_AFTER_S)
            done = await self._run(argv, stdin)
        return parse(verb, done.code, done.stdout, done.stderr)

    async def _run(self, argv: Sequence[str], stdin: bytes) -> Completed:
        began = time.monotonic()
        wait_s = self._timeout_s + self._lock_timeout_s
        done = await self.shell.run(argv, stdin, timeout_s=wait_s, max_output_bytes=MAX_ANSWER_BYTES)
        if done.code in _KILLED and time.monotonic() - began >= self._timeout_s:
            raise Unavailable(f"the memory's sandbox took more than {self._timeout_s:g} s, and the call was ended. Try again.")
        if done.code in _KILLED:
            raise LostConnection("the call to the memory's sandbox was killed there; it may lack memory. Try again.")
        return done


@dataclass(slots=True)
class _Trip:
    """Reads that were asked for while another was under way, and so go together."""

    wanted: dict[str, Range | None]
    task: asyncio.Future[Mapping[str, File | FileProblem]] | None = None


@cache
def _helper() -> str:
    """The helper without its comments."""
    lines = files("mdmemory.backends").joinpath("helper.sh").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if line and not line.lstrip().startswith("#"))
