"""Taking changes back: the exact bytes where nothing came after, else merged by lines, or a conflict that says what is in the way.

Undo and restore are changes like any other: `apply` writes them, so that they are logged and can be undone. Floor 4.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mdmemory.backends.paths import owner
from mdmemory.backends.protocol import etag_of
from mdmemory.care.history.contents import Content, Kept, Version, read_now, show, steps_of, versions, versions_of
from mdmemory.care.history.log import Event, FileEvent, Moment, back_to, events, find, moment
from mdmemory.care.history.views import is_index
from mdmemory.errors import Conflict, InvalidArguments, NotThere
from mdmemory.files import index
from mdmemory.files.changes import Change, Create, Delete, Rename, Replace, merge
from mdmemory.folder.any_folder import Folder, parts_of
from mdmemory.folder.known import is_markdown
from mdmemory.folder.settle import Applied

MAX_TOLD = 3  # later events that a conflict names


async def undo(
    folder: Folder,
    event: Event | str | None = None,
    *,
    session: str | None = None,
    since: Moment | None = None,
    paths: Sequence[str] = (),
    author: str = "person",
    dry_run: bool = False,
) -> Applied:
    """Take back one event, all of a session, or everything since a time; what else was changed stays.

    Args:
        event: also its id; the first digits are enough.
        paths: only these files, or all below these folders.
        dry_run: only say what would be written.

    Returns:
        What was written; no files when all of it was taken back before.

    Raises:
        Conflict: later changes of the same lines stand in the way, or bytes are no longer kept; nothing was written.
        InvalidArguments: it is not said, or twice, what to undo.
        NotThere: no such event.
    """
    await folder.refresh()
    chosen, reason = await _chosen(folder, event, session, since)
    ids = {each.id for each in chosen}
    found = await back_to(folder, chosen)

    def is_undone(each: Event, file: FileEvent) -> bool:
        return each.id in ids and _is_below(file.path, file.moved_from, paths)

    steps = list(steps_of(found, is_undone))
    undone = [step for step in steps if is_undone(step.event, step.file)]
    touched = {path for step in undone for path in (step.path, step.moved_from) if path is not None}
    later: dict[str, list[Event]] = {}
    for step in steps:
        if step.path in touched and not is_undone(step.event, step.file):
            later.setdefault(step.path, []).append(step.event)
    known = await versions_of(folder, steps, lambda step: is_undone(step.event, step.file))
    start = {path: content for version in known for path, content in _before(version)}
    now = await read_now(folder, touched | start.keys())
    back = _Back(folder, {path: now[path] for path in touched}, later)
    if any(now[path] != content for path, content in start.items()):  # else all of it was taken back before
        back.take(known)
    if not (changes := list(back.changes())):
        return Applied(None, (), None)
    plain = not all(map(is_markdown, touched))
    return await folder.apply(changes, author, reason, dry_run=dry_run, plain=plain)


async def _chosen(folder: Folder, event: Event | str | None, session: str | None, since: Moment | None) -> tuple[list[Event], str]:
    """The events to be undone, and what the history says of it."""
    if (event is not None) + (session is not None) + (since is not None) != 1:
        raise InvalidArguments("say what to undo: an event, a session, or since when")
    if event is not None:
        one = event if isinstance(event, Event) else await find(folder, event)
        return [one], f"undo {one.short_id}"
    if session is not None:
        found, reason = await events(folder, session=session), f"undo the session {session}"
    else:
        found, reason = await events(folder, since=since), f"undo all since {moment(since):%Y-%m-%d %H:%M:%SZ}"
    if not found:
        raise NotThere(f"There is nothing to {reason} in the history. `mdmemory log` lists what there is.")
    return found, reason


def _before(version: Version) -> Iterator[tuple[str, Content]]:
    """What was there before, under the names of then."""
    yield version.step.file.path, version.before
    if version.step.file.moved_from is not None:
        yield version.step.file.moved_from, version.after


def _is_below(path: str, moved_from: str | None, wanted: Sequence[str]) -> bool:
    names = [name for name in (path, moved_from) if name is not None]
    return not wanted or any(f"{name}/".startswith(f"{place.rstrip('/')}/") for name in names for place in wanted)


class _Back:
    """Files on their way back, from what they are now.

    Args:
        later: the events that concern each file and stay, the latest first.
    """

    def __init__(self, folder: Folder, now: Mapping[str, bytes | None], later: Mapping[str, Sequence[Event]]) -> None:
        self._folder, self._now, self._later = folder, now, later
        self._state: dict[str, bytes | None] = dict(now)
        self._origin: dict[str, str] = {}
        self._blocked: dict[str, str] = {}

    def take(self, found: Sequence[Version]) -> None:
        """Take back versions, the latest first.

        Raises:
            Conflict: something stands in the way.
        """
        own: dict[str, list[Version]] = {}
        for version in found:
            for name in (version.step.path, version.step.moved_from):
                own.setdefault(name or "", []).append(version)
        for version in found:
            path = version.step.path
            if path in self._blocked or self._is_back(path, own[path]):
                continue
            if version.step.moved_from is not None:
                problem = self._move(version, version.step.moved_from)
            elif is_index(self._folder, path):
                problem = self._take_index(path, version.before, version.after)
            else:
                problem = self._take(path, version.before, version.after)
            if problem:
                self._blocked[path] = problem
        if self._blocked:
            path = next(iter(self._blocked))
            now = self._now[path]
            told = "; ".join(f"{each}: {problem}" for each, problem in self._blocked.items())
            text = None if now is None else now.decode("utf-8", "replace")
            raise Conflict(path, None if now is None else etag_of(now), text, f"{told}. Nothing was undone.")

    def _is_back(self, path: str, own: Sequence[Version]) -> bool:
        """Whether a file is as it was before all of this already."""
        is_same = not is_index(self._folder, path) and own[-1].before == self._now[path]
        return is_same and all(version.step.moved_from is None for version in own)

    def _move(self, version: Version, old: str) -> str | None:
        new = version.step.path
        if new != version.step.file.path or self._state[new] is None:
            return f"it was renamed to {new}, and not left there{self._by(new)}"
        if self._state[old] is not None:
            return f"it can't be called {old} again, which is taken{self._by(old)}"
        self._state[old], self._state[new] = self._state[new], None
        self._origin[old] = self._origin.pop(new, new)
        return None

    def _take(self, path: str, before: Content, after: Content) -> str | None:
        now = self._state[path]
        if before is Kept.NOT or after is Kept.NOT:
            return "what it held before is no longer kept" if now != before else None
        if now in (before, after):
            self._state[path] = before
            return None
        merged = _merged(after, before, now)
        if merged is None:
            what = "it was deleted" if now is None else "it is there again" if after is None else "the same lines were changed"
            return f"{what} since{self._by(path)}"
        self._state[path] = merged
        return None

    def _take_index(self, path: str, before: Content, after: Content) -> str | None:
        """Of an index, people's own lines are taken back, and ours follow the files."""
        if before is Kept.NOT or after is Kept.NOT:
            return "what it held before is no longer kept"
        back = index_with(self._folder, path, self._state[path] or b"", before or b"", after or b"")
        if back is None:
            return f"the same lines were changed since{self._by(path)}"
        self._state[path] = back
        return None

    def _by(self, path: str) -> str:
        found = self._later.get(path, ())
        told = [f"{each.short_id} by {each.author} on {each.at:%Y-%m-%d}" for each in found[:MAX_TOLD]]
        more = f" and {len(found) - MAX_TOLD} more" if len(found) > MAX_TOLD else ""
        return f" ({', '.join(told)}{more})" if told else ", outside of the memory's tools"

    def changes(self) -> Iterator[Change]:
        """What has to be written."""
        moved = {
            new: old
            for old, new in self._origin.items()
            if self._now[old] is None and self._state[old] == self._now[new] and self._state[new] is None
        }
        targets = set(moved.values())
        for path, data in self._state.items():
            now = self._now[path]
            if path in moved:
                yield Rename(path, moved[path])
            elif data == now or path in targets:
                continue
            elif data is None:
                yield Delete(path, etag_of(now or b""))
            elif now is None:
                yield Create(path, data, restored=True)
            else:
                yield Replace(path, data, etag_of(now), now)


def _merged(base: bytes | None, ours: bytes | None, theirs: bytes | None) -> bytes | None:
    if base is None or ours is None or theirs is None:
        return None
    try:
        text = merge(base.decode(), ours.decode(), theirs.decode())
    except UnicodeDecodeError:
        return None
    return None if text is None else text.encode()


def index_with(folder: Folder, path: str, data: bytes, own: bytes, base: bytes) -> bytes | None:
    """An index in which people's own lines go from `base` to `own`; None where others of them are in the way."""
    prefix = owner(path, parts_of(folder))
    try:
        text, before, after = data.decode(), own.decode(), base.decode()
    except UnicodeDecodeError:
        return None
    mine = index.own_lines(text, parts_of(folder)[prefix].listed)
    wanted = merge(after, before, mine, keep_both_insertions=True)
    merged = None if wanted is None else merge(mine, wanted, text, keep_both_insertions=True)
    return None if merged is None else merged.encode()


async def restore(
    folder: Folder, path: str, at: Event | Moment | None = None, *, author: str = "person", dry_run: bool = False
) -> Applied:
    """Bring one file back as it was.

    Args:
        at: after this event, which may be given by its id, or at this time; None for the last version of a deleted file.
        dry_run: only say what would be written.

    Raises:
        NotThere: it was not there then, or its bytes are not kept.
        InvalidArguments: it is there, and it is not said which version is wanted.
        Conflict: it was changed meanwhile; nothing was written.
    """
    await folder.refresh()
    now = (await read_now(folder, [path]))[path]
    if at is None and now is not None:
        raise InvalidArguments(f"{path} is there. Say which version is wanted: an event, or a time")
    data = await _last_of(folder, path) if at is None else await show(folder, path, at)
    change: Change = Create(path, data, restored=True)
    if now is not None:
        back = index_with(folder, path, now, data, _own(folder, path, now)) if is_index(folder, path) else data
        change = Replace(path, data if back is None else back, etag_of(now), now)
    reason = "restore" if at is None else f"restore as of {at.short_id if isinstance(at, Event) else at}"
    return await folder.apply([change], author, reason, dry_run=dry_run, plain=not is_markdown(path))


async def _last_of(folder: Folder, path: str) -> bytes:
    found = await versions(folder, path)
    deleted = next((version for version in found if version.step.file.path == path and version.after is None), None)
    if deleted is None or not isinstance(deleted.before, bytes):
        raise NotThere(f"The history has no version of {path} that could be brought back.")
    return deleted.before


def _own(folder: Folder, path: str, data: bytes) -> bytes:
    prefix = owner(path, parts_of(folder))
    return index.own_lines(data.decode("utf-8", "replace"), parts_of(folder)[prefix].listed).encode()
