"""Differences between two points of the history, and which event each line of a file comes from. Floor 4."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from mdmemory.care.history.contents import Content, Kept, Step, Version, point, read_now, steps_of, versions, versions_of
from mdmemory.care.history.log import Event, Moment, back_to, events
from mdmemory.errors import InvalidArguments, NotThere
from mdmemory.files.changes import MAX_EXACT_DIFF
from mdmemory.files.diffs import split_lines, unified
from mdmemory.files.history import OUTSIDE
from mdmemory.folder.any_folder import Folder, parts_of
from mdmemory.folder.known import INDEX


@dataclass(frozen=True, slots=True)
class FileDiff:
    """One file at two points.

    Args:
        path: what it is called now; of one event, what it was called then.
        moved_from: the name that it had, where it was renamed in between.
    """

    path: str
    before: Content
    after: Content
    moved_from: str | None = None

    @property
    def text(self) -> str:
        """As `diff -u` shows it; "" where nothing differs."""
        old = self.moved_from or self.path
        if self.before is Kept.NOT or self.after is Kept.NOT:
            return f"What {self.path} held is no longer kept.\n"
        moved = "" if self.moved_from is None else f"renamed {self.moved_from} to {self.path}\n"
        return moved + unified(self.path, self.before, self.after, old)


async def diff(
    folder: Folder,
    event: Event | Moment | None = None,
    to: Event | Moment | Literal["now"] | None = None,
    *,
    path: str | None = None,
) -> list[FileDiff]:
    """What one event changed; with `to`, what is different between two points.

    Args:
        event: also its id, or, with `to`, a time; None for the last change of `path`, one that no save has noted included.
        to: a later event or time, or `now`.
        path: only this file.

    Raises:
        InvalidArguments: neither an event nor a path, or no time.
        NotThere: there is no such event.
    """
    if event is None:
        if path is None:
            raise InvalidArguments("which change? Give an event, or the path of a file")
        return await _last_change(folder, path)
    first, start = await point(folder, event)
    if to is None:
        if first is None:
            raise InvalidArguments("a difference has two ends: give an event, or a time and what it is compared with")
        return await _of_event(folder, first, path)
    last, end = (None, datetime.max.replace(tzinfo=UTC)) if to == "now" else await point(folder, to)
    found = await (events(folder, since=start) if first is None else back_to(folder, [first]))
    if last is not None:
        newer = next((place for place, each in enumerate(found) if each.id == last.id), len(found))
        inside = {each.id for each in found[newer:]}
    else:
        inside = {each.id for each in found if each.at <= end}

    def is_wanted(step: Step) -> bool:
        return step.event.id in inside and path in (None, step.path)

    known: dict[str, list[Version]] = {}
    for version in await versions_of(folder, list(steps_of(found)), is_wanted):
        known.setdefault(version.step.path, []).append(version)
    now = await read_now(folder, [each for each in known if not is_index(folder, each)]) if to == "now" else {}
    diffs = (_between(each, own, first, now) for each, own in known.items())
    return [each for each in diffs if each.before != each.after or each.moved_from is not None]


def _between(path: str, known: Sequence[Version], first: Event | None, now: dict[str, bytes | None]) -> FileDiff:
    oldest, newest = known[-1], known[0]
    begins = first is not None and oldest.step.event.id == first.id
    before = oldest.after if begins or oldest.step.moved_from is not None else oldest.before
    old = oldest.step.file.path if begins else oldest.step.file.moved_from or oldest.step.file.path
    return FileDiff(path, before, now.get(path, newest.after), old if old != path else None)


async def _of_event(folder: Folder, event: Event, path: str | None) -> list[FileDiff]:
    is_added = any(file.kind == "added" for file in event.files)  # what was added is known from what follows
    steps = list(steps_of(await back_to(folder, [event]) if is_added else [event]))

    def is_wanted(step: Step) -> bool:
        return step.event.id == event.id and path in (None, step.file.path, step.file.moved_from)

    return [
        FileDiff(own.path, version.before if own.moved_from is None else version.after, version.after, own.moved_from)
        for version in await versions_of(folder, steps, is_wanted)
        if (own := version.step.file)
    ]


async def _last_change(folder: Folder, path: str) -> list[FileDiff]:
    found = await versions(folder, path)
    now = (await read_now(folder, [path]))[path]
    if not found:
        raise NotThere(f"The history knows nothing of {path}.")
    last = found[0]
    if last.after != now and last.step.file.path == path and not is_index(folder, path):
        return [FileDiff(path, last.after, now)]
    return await _of_event(folder, last.step.event, path)


def is_index(folder: Folder, path: str) -> bool:
    """Whether this is the index of the folder, or of one that is mounted in it."""
    return any(path == prefix + INDEX for prefix in parts_of(folder))


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a file, and what it comes from.

    Args:
        event: of what was changed outside since the last save, one without an id; None for what is older than the history.
    """

    text: str
    event: Event | None


async def blame(folder: Folder, path: str) -> list[Line]:
    """Where each line of a file comes from, under all names that it had.

    Raises:
        InvalidArguments: it is an index, whose lines are mostly made from the files.
        NotThere, Unavailable, UnsafeFile
    """
    if is_index(folder, path):
        raise InvalidArguments(f"{path} is made from the files: ask where the lines of a file come from")
    data = await folder.read(path)
    found = await versions(folder, path)
    lines, owners = list[str](), list[Event | None]()
    for content, event in _contents(found, data):
        new = split_lines(content.decode("utf-8", "replace"))
        owners = list(_handed_on(lines, new, owners, event))
        lines = new
    return [Line(line.rstrip("\r\n"), owner) for line, owner in zip(lines, owners, strict=True)]


def _contents(found: Sequence[Version], now: bytes) -> Iterator[tuple[bytes, Event | None]]:
    """Each content that is known, from the first on, and what made it."""
    last: Content = None
    for place, version in enumerate(reversed(found)):
        event, before = version.step.event, version.after if version.step.moved_from is not None else version.before
        if isinstance(before, bytes) and before != last:
            yield before, _outside(event.at) if place else None
        if isinstance(version.after, bytes):
            yield version.after, event
        last = version.after
    if now != last:
        yield now, _outside(datetime.now(UTC)) if found else None


def _outside(at: datetime) -> Event:
    return Event("", at, OUTSIDE, "changed outside", ())


def _handed_on(
    old: Sequence[str], new: Sequence[str], owners: Sequence[Event | None], event: Event | None
) -> Iterator[Event | None]:
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=len(old) * len(new) > MAX_EXACT_DIFF)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        yield from owners[i1:i2] if tag == "equal" else [event] * (j2 - j1)
