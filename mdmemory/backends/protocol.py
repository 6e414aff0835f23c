"""The narrow waist: a backend is three verbs on bytes, each one round trip. Floor 1.

Paths are relative, `/`-separated and checked (`paths.check`). Bytes are exact. An etag is the sha256 of a file's bytes in hex,
on every backend. A version is the backend's own cheap mark of a file's state (on a disk: from stat); equal versions mean equal
bytes, and the empty version equals nothing: it is given for a file that changed too recently to be sure.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeVar

from mdmemory.backends import paths
from mdmemory.errors import BackendError, Conflict, InvalidPath, NotThere, Unavailable, UnsafeFile

Version = str | bytes
NO_VERSION: Final[Version] = b""
ANY: Final = "*"  # `if_match`: whatever is there, or nothing
ABSENT: Final = "-"  # `if_match`: only when nothing is there
LINK: Final = "link"  # `if_match` of a delete: only when a symbolic link is there, which goes, and nothing that it leads to
LOG: Final = ".mdmemory/log.jsonl"
TAIL_BYTES: Final = 65_536  # how far back an append looks for its entry id, and a commit for its own
HEAD_BYTES: Final = 16_384
COULD_NOT_LOOK: Final = "could not look"  # how the reason of a skipped path begins when nothing is known of what is there
LINK_INSIDE: Final = "a symbolic link to"  # how the reason begins where a link is known to lead to a place in the folder
MAX_FILE_BYTES: Final = 5 * 1024 * 1024


class Entry(NamedTuple):
    """A file as a scan sees it."""

    size: int
    mtime_ns: int
    version: Version


@dataclass(frozen=True, slots=True)
class Scan:
    """What one look at the folder found.

    Args:
        files: every visible regular file by path; parts that begin with a dot are left out.
        heads: the first `head_bytes` of each `.md` file whose version is not the known one.
        skipped: what was not followed or could not be read, by path, with the reason. What lies below a skipped folder is unknown,
            not absent. A path that is in `files` too is a hard link: it is read, and never written.
        versions: that of each file, by folder where the backend can go on from there; None where those in `files` say all.
        notes: what is kept of a file where the files are (see `term_tables`), in place of its head.
    """

    files: Mapping[str, Entry]
    heads: Mapping[str, bytes]
    skipped: Mapping[str, str]
    versions: Mapping[str, Version] | None = None
    notes: Mapping[str, str] = field(default_factory=dict)


class Range(NamedTuple):
    """Bytes from `start`, at most `length`; a negative start counts from the end, and one past it gives no bytes."""

    start: int
    length: int


@dataclass(frozen=True, slots=True)
class File:
    """A file's bytes; `etag` is None when only a part was asked for and that part is not the whole."""

    data: bytes
    etag: str | None
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class FileProblem:
    """Why a file can't be had. Only `absent` says that it is not there."""

    kind: Literal["absent", "unavailable", "unsafe", "too_large"]
    reason: str


@dataclass(frozen=True, slots=True)
class Put:
    """Replace or create a file as a whole; a put whose bytes are there already has succeeded."""

    path: str
    data: bytes
    if_match: str = ANY
    required: bool = True


@dataclass(frozen=True, slots=True)
class Append:
    """Add to the end, after a newline if the file lacks a final one; skipped when `entry_id` stands in the last 64 KB."""

    path: str
    data: bytes
    entry_id: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a file; one that is absent has been removed."""

    path: str
    if_match: str = ANY
    required: bool = True


@dataclass(frozen=True, slots=True)
class Move:
    """Rename a file or a folder to a path where nothing is."""

    src: str
    dst: str


Op = Put | Append | Delete | Move


class Backend(Protocol):
    """Where the bytes are. Opening one creates nothing; the first commit makes the folder.

    Some backends offer more, by an attribute that the others lack: one whose bytes are a folder on this machine says where, as
    `watchable_root: Path`, so that the system tells what changes there and a look at a quiet folder needs no scan; one that is told
    of changes by other means says whether there may be any, as `has_news: bool`. One whose bytes stay somewhere says where, as
    `location: str`, so that what is known of the files is kept from one process to the next; or it keeps that itself and searches
    in it, see `term_tables.py`: `term_tables(form: str) -> TermTables`. One whose commits can't be cut short has `is_atomic`, and
    one that keeps deleted bytes for a while says so to whoever purges them, as `holds_on_to: str`.
    """

    async def scan(self, known: Mapping[str, Version] = {}, *, head_bytes: int = HEAD_BYTES) -> Scan:
        """Look at every file, and bring the heads of those whose version is not the known one.

        A folder that does not exist yet is an empty scan; one that can't be looked at, or was there before and is gone, raises
        `Unavailable`.
        """
        ...

    async def read(self, wanted: Mapping[str, Range | None]) -> Mapping[str, File | FileProblem]:
        """Read files or parts of them; more than 5 MiB of one is `too_large`. Every wanted path has an answer."""
        ...

    async def commit(self, commit_id: str, ops: Sequence[Op]) -> Mapping[str, str]:
        """Check the preconditions of all operations against what is there, under one lock, then apply all of them in order.

        Returns:
            The etag of each path put. An operation with `required=False` whose precondition fails, or whose target is unsafe, is
            left out, and so is its path. A commit whose `done_mark` stands in the log's tail has happened: what returns are the
            current etags.

        Raises:
            Conflict: a required precondition failed; nothing was applied.
            InvalidPath, UnsafeFile, Unavailable: nothing was applied before the first operation could be.
        """
        ...

    async def close(self) -> None:
        """Let go of what the backend holds. Closing twice is fine."""
        ...


def etag_of(data: bytes) -> str:
    """The sha256 of the bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def done_mark(commit_id: str) -> str:
    """The text in the log by which a commit is known to have happened."""
    return f'"done":"{commit_id}"'


def unmet(ops: Iterable[Op], current: Callable[[str], str | None]) -> set[int]:
    """Check every precondition against the current etags.

    Args:
        ops: the operations of one commit.
        current: the etag of a path now, None when absent.

    Returns:
        The positions of optional operations that must be left out.

    Raises:
        Conflict: a required precondition failed.
    """
    left_out: set[int] = set()
    for position, op in enumerate(ops):
        if isinstance(op, Move):
            if current(op.dst) is not None:
                raise Conflict(op.dst, current(op.dst))
            if current(op.src) is None:
                raise Conflict(op.src, None)
        elif not isinstance(op, Append) and op.if_match != ANY and not _holds(op, current(op.path)):
            if op.required:
                raise Conflict(op.path, current(op.path))
            left_out.add(position)
    return left_out


def _holds(op: Put | Delete, now: str | None) -> bool:
    if isinstance(op, Delete):
        return now is None or now == op.if_match
    if now is not None and now == etag_of(op.data):
        return True  # a retry after a lost answer: the bytes are there
    return now is None if op.if_match == ABSENT else now == op.if_match


def check_ops(ops: Sequence[Op]) -> None:
    """Refuse what no backend may do, before anything is looked at.

    Raises:
        InvalidPath: a path that no memory may have, a move into itself, or a file that would be the parent of another.
        UnsafeFile: a file larger than can be read back; the log may be.
        ValueError: an entry id of several lines, which no line of the file could show.
    """
    made = {op.dst if isinstance(op, Move) else op.path for op in ops if not isinstance(op, Delete)}
    for op in ops:
        for path in touched(op):
            paths.check(path, hidden=True)
            if inside := next((parent for parent in parents(path) if parent in made), None):
                raise InvalidPath(f"{path} can't be inside {inside}, which the same change writes.")
        if isinstance(op, Move) and f"{op.dst}/".startswith(f"{op.src}/"):
            raise InvalidPath(f"{op.src} can't be moved into itself.")
        if isinstance(op, Put) and len(op.data) > MAX_FILE_BYTES and op.path != LOG:  # which is only read in parts
            raise UnsafeFile(f"{op.path} would have {len(op.data)} bytes, and {MAX_FILE_BYTES} is the most. Nothing was written.")
        if isinstance(op, Append) and ("\n" in op.entry_id or "\0" in op.entry_id):
            raise ValueError("an entry id is one line of text")


def touched(op: Op) -> tuple[str, ...]:
    """The paths an operation names."""
    return (op.src, op.dst) if isinstance(op, Move) else (op.path,)


def parents(path: str) -> list[str]:
    """The folders a path lies in, outermost first."""
    parts = path.split("/")
    return ["/".join(parts[:n]) for n in range(1, len(parts))]


def to_append(tail: bytes, op: Append) -> bytes:
    """What to write after a file ending in `tail`: nothing when the entry is there, a newline first when the last line has none."""
    if op.entry_id and op.entry_id.encode() in tail:
        return b""
    return (b"\n" if tail and not tail.endswith(b"\n") else b"") + op.data


def span(wanted: Range | None, size: int) -> tuple[int, int]:
    """Start and length of what is wanted of a file of this size."""
    if wanted is None:
        return 0, size
    start = min(wanted.start if wanted.start >= 0 else max(0, size + wanted.start), size)
    return start, max(0, min(wanted.length, size - start))


TOO_LARGE: Final = FileProblem("too_large", f"it is larger than {MAX_FILE_BYTES // 1024 // 1024} MiB; ask for a part of it")

T = TypeVar("T")


async def shielded(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` to its end even when the caller is cancelled; the cancellation goes on afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # looked at, so that it is not reported as never retrieved
        raise cancelled
    return task.result()


def problem_error(path: str, problem: FileProblem) -> BackendError:
    """The error that says what a `FileProblem` says."""
    kinds = {"absent": NotThere, "unavailable": Unavailable}
    return kinds.get(problem.kind, UnsafeFile)(f"{path}: {problem.reason}")
