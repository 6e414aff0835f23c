"""What files held before and after events: from the objects that commits keep, under the names the files have now. Floor 4."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from itertools import islice

from mdmemory.backends.paths import check
from mdmemory.backends.protocol import File, FileProblem, etag_of, problem_error
from mdmemory.care.history.log import Event, FileEvent, Moment, events, find, moment
from mdmemory.errors import NotThere
from mdmemory.folder.any_folder import Folder, parts_of
from mdmemory.folder.reading import kept_contents


class Kept(Enum):
    """What stands for bytes that are not known."""

    NOT = "not kept"


Content = bytes | Kept | None
"""What a file holds; None when it is absent."""


@dataclass(frozen=True, slots=True)
class Step:
    """One file of an event.

    Args:
        path: what the file is called now.
        moved_from: what it would be called now if it had not been renamed in this event.
    """

    event: Event
    file: FileEvent
    path: str
    moved_from: str | None = None


@dataclass(frozen=True, slots=True)
class Version:
    """A file before and after an event."""

    step: Step
    before: Content
    after: Content


@dataclass(frozen=True, slots=True)
class _Now:
    """The content of a file as it is now."""

    path: str


@dataclass(frozen=True, slots=True)
class _Etag:
    """The content with this etag, in the history of a folder."""

    etag: str
    prefix: str


@dataclass(frozen=True, slots=True)
class _Before:
    """A content without what was added at its end; `etag` is that of the rest, where it is known."""

    content: _Ref
    added_bytes: int
    etag: str | None = None


_Ref = _Now | _Etag | _Before | None


def steps_of(found: Iterable[Event], is_undone: Callable[[Event, FileEvent], bool] = lambda event, file: False) -> Iterator[Step]:
    """Every file of events, the latest first, with the names that they have now.

    Args:
        is_undone: whether what an event did to a file is to be undone, so that what it renamed has its old name again.
    """
    names: dict[str, str] = {}
    for event in found:
        moves = {file.moved_from: file.path for file in event.files if file.moved_from is not None and not is_undone(event, file)}
        for file in event.files:
            old = file.moved_from
            yield Step(event, file, names.get(file.path, file.path), None if old is None else names.get(old, old))
        names |= {old: names.pop(new, new) for old, new in moves.items()}


async def versions_of(folder: Folder, steps: Sequence[Step], is_wanted: Callable[[Step], bool]) -> list[Version]:
    """What the files of these steps held before and after.

    Args:
        steps: the latest first, back from now.

    Raises:
        Unavailable, UnsafeFile: a file can't be read as it is now.
    """
    then: dict[str, _Ref] = {}
    pairs: list[tuple[Step, _Ref, _Ref]] = []
    for place, step in enumerate(steps):
        before, after = _refs(step, then.get(step.path, _Now(step.path)), islice(steps, place + 1, None))
        then[step.path] = before
        if step.moved_from is not None:
            then[step.moved_from] = after
        if is_wanted(step):
            pairs.append((step, before, after))
    ends = [_end(ref) for _, *refs in pairs for ref in refs]
    now = await read_now(folder, [end.path for end in ends if isinstance(end, _Now)])
    kept = await read_objects(folder, [(end.prefix, end.etag) for end in ends if isinstance(end, _Etag)])

    def content(ref: _Ref) -> Content:
        match ref:
            case _Now(path):
                return now[path]
            case _Etag(etag):
                return kept.get(etag, Kept.NOT)
            case _Before(inner, added_bytes, etag):
                return _without(content(inner), added_bytes, etag)
        return None

    return [Version(step, content(before), content(after)) for step, before, after in pairs]


def _refs(step: Step, then: _Ref, older: Iterable[Step]) -> tuple[_Ref, _Ref]:
    file, prefix = step.file, step.event.prefix
    if file.kind == "added":
        last = next((other.file.after for other in older if other.path == step.path), None)
        return _Before(then, file.added_bytes, last), then
    before, after = (None if etag is None else _Etag(etag, prefix) for etag in (file.before, file.after))
    return (None if file.kind == "renamed" else before), after


def _end(ref: _Ref) -> _Ref:
    return _end(ref.content) if isinstance(ref, _Before) else ref


def _without(data: Content, added_bytes: int, etag: str | None) -> Content:
    """What was there before an addition; where the file had no final newline, one was added with it."""
    if not isinstance(data, bytes):
        return Kept.NOT
    rest = data[:-added_bytes]
    if etag in (None, etag_of(rest)):
        return rest
    return rest[:-1] if etag_of(rest[:-1]) == etag else Kept.NOT


async def read_now(folder: Folder, paths: Iterable[str]) -> dict[str, bytes | None]:
    """What files hold now; None for absent.

    Raises:
        Unavailable, UnsafeFile: one can't be read.
    """
    found = await folder.read_many(list(dict.fromkeys(paths)))
    for path, file in found.items():
        if isinstance(file, FileProblem) and file.kind != "absent":
            raise problem_error(path, file)
    return {path: file.data if isinstance(file, File) else None for path, file in found.items()}


async def read_objects(folder: Folder, wanted: Iterable[tuple[str, str]]) -> dict[str, bytes]:
    """Contents by etag, as far as they are kept.

    Args:
        wanted: pairs of a mount's prefix and an etag.
    """
    kept: dict[str, bytes] = {}
    for prefix, part in parts_of(folder).items():
        async for some in kept_contents(part.backend, (etag for own, etag in wanted if own == prefix)):
            kept |= some
    return kept


async def versions(folder: Folder, path: str, wanted: Callable[[Step], bool] = lambda step: True) -> list[Version]:
    """A file's versions, the latest first, under all names that it had."""
    steps = list(steps_of(await events(folder, path=path)))
    own = set(map(id, _followed(steps, path)))
    return await versions_of(folder, steps, lambda step: id(step) in own and wanted(step))


def _followed(steps: Iterable[Step], name: str) -> Iterator[Step]:
    for step in steps:
        if name in (step.file.path, step.file.moved_from):
            yield step
            if step.file.path == name:
                name = step.file.moved_from or name


async def show(folder: Folder, path: str, at: Event | Moment | None = None) -> bytes:
    """A file's exact bytes, as it is or as it was; of an index, only people's own lines are kept.

    Args:
        path: a name that the file has, or had since then.
        at: after this event, or one that is given by its id, or at this time; None for now.

    Raises:
        NotThere: it was not there, or its bytes are not kept.
        InvalidArguments: neither an event nor a time.
    """
    if at is None:
        return await folder.read(path)
    event, last = await point(folder, at)
    found = await versions(folder, check(path))
    content: Content = None if found else (await read_now(folder, [path]))[path]
    by_id = event is not None and any(version.step.event.id == event.id for version in found)
    for version in found:
        own = version.step.event
        if own.id == event.id if by_id and event is not None else own.at <= last:
            content = content if version.after is Kept.NOT else version.after
            break
        content = version.after if version.step.moved_from is not None else version.before
    if isinstance(content, bytes):
        return content
    raise NotThere(f"There was no {path} then." if content is None else f"What {path} held then is no longer kept.")


async def point(folder: Folder, at: Event | Moment) -> tuple[Event | None, datetime]:
    """A point in the history: the event, if it is one, and its time.

    Raises:
        InvalidArguments, NotThere: neither an event nor a time.
    """
    if isinstance(at, str) and re.fullmatch("[0-9a-f]{4,}(-outside)?", at):
        try:
            at = await find(folder, at)
        except NotThere:
            if not str(at).isdecimal():
                raise
    return (at, at.at) if isinstance(at, Event) else (None, moment(at, last=True))
