"""What happened to a memory, from the logs that its commits write: events, the latest first. Floor 4.

A log is read from its end, and no further than it takes.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Literal

from mdmemory.backends.paths import fault
from mdmemory.backends.protocol import LOG, MAX_FILE_BYTES, Backend, FileProblem, Range, problem_error
from mdmemory.errors import InvalidArguments, NotThere
from mdmemory.files.history import OUTSIDE, FileChange, Intent, read_line
from mdmemory.folder.any_folder import Folder, parts_of
from mdmemory.folder.recovery import moves_in

FIRST_BYTES = 65_536  # of the log's end; each further read brings more
SHORT = 8
Kind = Literal["created", "changed", "deleted", "renamed", "added"]
Moment = str | date | datetime
SKEW = timedelta(hours=1)  # by which clocks of several writers may differ
_BEGINNING = datetime.min.replace(tzinfo=UTC)
_AGO = re.compile(r"(\d{1,4})([mhdw])(?: ago)?")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


@dataclass(frozen=True, slots=True)
class FileEvent:
    """What an event did to one file.

    Args:
        kind: `added` is text at the end of it, of which no etags are known.
        before, after: etags; None when absent.
        moved_from: the path it had, when it was renamed.
        added_bytes: how much was added.
    """

    path: str
    kind: Kind
    before: str | None = None
    after: str | None = None
    moved_from: str | None = None
    added_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """One commit, or what people changed between two.

    Args:
        at: UTC; of changes from outside, when they were noticed.
        author: such as `agent:session-1`, `person`, `doctor`, `sync` or `outside`.
        prefix: of the mount in whose history it stands; "" for the home.
    """

    id: str
    at: datetime
    author: str
    reason: str
    files: tuple[FileEvent, ...]
    prefix: str = ""

    @property
    def session(self) -> str | None:
        """The conversation in which an agent made it, or from which it was drawn."""
        agent, _, session = self.author.partition(":")
        return session.removesuffix("/extractor") or None if agent == "agent" else None

    @property
    def short_id(self) -> str:
        """The first digits of the id, by which `find` knows it."""
        return self.id[:SHORT] + "-outside" * self.id.endswith("-outside")


async def events(
    folder: Folder,
    *,
    path: str | None = None,
    author: str | None = None,
    session: str | None = None,
    since: Moment | None = None,
    until: Moment | None = None,
    limit: int | None = None,
) -> list[Event]:
    """What happened, the latest first.

    Args:
        path: only what concerns this file, under the names that it had before, too; or all below a folder.
        author: `agent` also means every `agent:…`.
        since, until: both included: a time, a day, or text such as `2026-11-30`, `2026-11-30T12:00` or `2h` (m, h, d, w) ago; UTC.

    Raises:
        InvalidArguments: no time.
        Unavailable: a log can't be read.
    """
    first, last = moment(since), moment(until, last=True)
    logs: list[list[Event]] = []
    for prefix, part in parts_of(folder).items():
        names, found = {path.rstrip("/")} if path is not None else None, list[Event]()
        async for event in _back(part.backend, prefix):
            if event.at < first - SKEW * (first > _BEGINNING) or len(found) == limit:
                break
            is_wanted = names is None or _concerns(event, names)  # asked of each, as it follows the names
            if is_wanted and first <= event.at <= last and _is_by(event, author, session):
                found.append(event)
        logs.append(found)
    return _together(logs)[:limit]


async def back_to(folder: Folder, chosen: Sequence[Event]) -> list[Event]:
    """Every event from now back to these, whatever the clocks said."""
    logs: list[list[Event]] = []
    for prefix, part in parts_of(folder).items():
        left, found = {event.id for event in chosen if event.prefix == prefix}, list[Event]()
        if left:
            async for event in _back(part.backend, prefix):
                found.append(event)
                left.discard(event.id)
                if not left:
                    break
        logs.append(found)
    return _together(logs)


def _together(logs: Iterable[Sequence[Event]]) -> list[Event]:
    """Several logs as one by time; the events of one keep their order."""
    return list(heapq.merge(*logs, key=lambda event: event.at, reverse=True))


async def find(folder: Folder, id: str) -> Event:
    """The event with this id, of which the first digits are enough.

    Raises:
        NotThere: there is none, or no longer.
        InvalidArguments: several ids begin so.
    """
    digits, outside, _ = id.partition("-")
    if not re.fullmatch("[0-9a-f]{4,}", digits):
        raise InvalidArguments(f"{id!r} is no id of an event: give at least 4 of its digits, as the log shows them")
    mark = f'"id":"{digits}'.encode()
    every = list[Event]()
    for prefix, part in parts_of(folder).items():
        async for event in _back(part.backend, prefix, mark):
            every.append(event)
            if event.id == id:
                return event
    found = [event for event in every if event.id.startswith(digits) and event.id.endswith("-outside") == bool(outside)]
    if len(found) > 1:
        shown = ", ".join(f"{event.id[: SHORT + 4]} ({event.at:%Y-%m-%d})" for event in found[:5])
        raise InvalidArguments(f"several events begin with {id}: {shown}; give more digits")
    if not found:
        raise NotThere(f"There is no event {id} in the history, or it is no longer kept. `mdmemory log` lists what there is.")
    return found[0]


async def _back(backend: Backend, prefix: str, mark: bytes = b"") -> AsyncIterator[Event]:
    """The events of one log, the last first; with a mark, only of lines that hold it."""
    done, seen = set[str](), set[str]()
    async for line in _lines_back(backend):
        said = read_line(line) if mark in line or b'"done"' in line[:7] else None
        if isinstance(said, str):
            done.add(said)
        elif said is not None and said.id not in seen and (said.id in done or said.author == OUTSIDE):
            seen.add(said.id)
            if files := tuple(_files(said, prefix)):
                yield Event(said.id, said.at, said.author, said.reason, files, prefix)


async def _lines_back(backend: Backend) -> AsyncIterator[bytes]:
    """The lines of a log, the last first."""
    end, size, length, rest = 0, -1, FIRST_BYTES, b""
    while size < 0 or end > 0:
        wanted = Range(-length, length) if size < 0 else Range(max(0, end - length), min(length, end))
        file = (await backend.read({LOG: wanted}))[LOG]
        if isinstance(file, FileProblem):
            if file.kind == "absent":
                return
            raise problem_error("the history's log", file)
        if file.size < size:  # rewritten meanwhile, as by a purge
            size, rest = -1, b""
            continue
        end = max(0, file.size - length) if size < 0 else wanted.start
        size, length = file.size, min(4 * length, MAX_FILE_BYTES)
        first, newline, others = (file.data + rest).partition(b"\n") if end else (b"", b"", file.data + rest)
        rest = first + newline
        for line in reversed(others.split(b"\n")):
            yield line


def _files(intent: Intent, prefix: str) -> Iterator[FileEvent]:
    """What a commit did; the log is a file, and anyone may have written there."""
    moves = moves_in(intent)
    for change in intent.files:
        if not fault(change.path) and change.path not in moves:
            old = next((old for old, new in moves.items() if new == change.path), None)
            yield FileEvent(
                prefix + change.path,
                _kind(change, old),
                change.before if old is None else change.after,
                change.after,
                None if old is None else prefix + old,
            )
    for added in intent.added:
        if not fault(added.path):
            yield FileEvent(prefix + added.path, "added", added_bytes=added.bytes)


def _kind(change: FileChange, old: str | None) -> Kind:
    if old is not None:
        return "renamed"
    if change.before is None and change.after is not None:
        return "created"
    return "deleted" if change.after is None and change.before is not None else "changed"


def _concerns(event: Event, names: set[str]) -> bool:
    """Whether an event is about one of these files or folders; before a rename, a file had another name."""
    concerns = False
    for file in event.files:
        if file.path in names or any(file.path.startswith(f"{name}/") for name in names):
            concerns = True
            if file.moved_from is not None and file.path in names:
                names.remove(file.path)
                names.add(file.moved_from)
        elif file.moved_from in names:
            concerns = True
    return concerns


def _is_by(event: Event, author: str | None, session: str | None) -> bool:
    is_author = author is None or event.author == author or event.author.startswith(f"{author}:")
    return is_author and (session is None or event.session == session)


def moment(when: Moment | None, *, last: bool = False) -> datetime:
    """A time from what a person gives; of a day its beginning, or its last moment; None is the beginning, or the end, of all times.

    Raises:
        InvalidArguments: it is no time.
    """
    if when is None:
        return datetime.max.replace(tzinfo=UTC) if last else _BEGINNING
    if isinstance(when, str):
        when = _parsed(when.strip())
    if not isinstance(when, datetime):
        when = datetime.combine(when, time.max if last else time.min)
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)


def _parsed(text: str) -> date | datetime:
    if ago := _AGO.fullmatch(text):
        return datetime.now(UTC) - int(ago[1]) * _UNITS[ago[2]]
    try:
        return date.fromisoformat(text)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InvalidArguments(f"{text!r} is no time: give one such as 2026-11-30, 2026-11-30T12:00, 2h or 3d") from None
