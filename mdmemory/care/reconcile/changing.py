"""From the fates of some files to the changes of each side, and their application. Floor 4."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from mdmemory.backends.paths import collision_key
from mdmemory.backends.protocol import MAX_FILE_BYTES, File, FileProblem, etag_of
from mdmemory.care.reconcile.fates import Fate, Step, copy_of, has_copy, merged
from mdmemory.care.reconcile.side import Side
from mdmemory.errors import Conflict, InvalidMemoryFile, InvalidPath, UnsafeFile
from mdmemory.files.changes import Change, Create, Delete, Replace
from mdmemory.files.diffs import unified
from mdmemory.files.history import object_path
from mdmemory.files.memory_file import decode

AUTHOR: Final = "sync"
FORGOTTEN: Final = "it was deleted on this side, and does not come back: delete it on the other one, or change it there to keep it"
Found = Mapping[str, File | FileProblem]


@dataclass(frozen=True, slots=True)
class Made:
    """What one file comes to.

    Args:
        step: None for one that both have already.
        here, there: the changes of each side, which are made together or not at all.
        after: the etags that both then have, by path; None for absent.
        kept: contents from which a later merge begins.
    """

    step: Step | None
    here: tuple[Change, ...] = ()
    there: tuple[Change, ...] = ()
    after: Mapping[str, str | None] = field(default_factory=dict)
    kept: tuple[bytes, ...] = ()


class Maker:
    """Makes changes of fates.

    Args:
        was: the etags that both had.
        first: whether that is not known of all files: then what a side has forgotten does not come back to it.
    """

    def __init__(self, here: Side, there: Side, was: Mapping[str, str], *, first: bool) -> None:
        self._here, self._there, self._was, self._first = here, there, was, first
        self._today = datetime.now(UTC).date()

    async def make(self, fates: Mapping[str, Fate]) -> list[Made]:
        """What some files come to, with one round trip to each side, where anything is to be read."""
        wanted: tuple[list[str], list[str]] = ([], [])
        for path, each in fates.items():
            if (
                (each.action == "adopt" and path in self._here.etags)
                or each.action == "merge"
                or (each.action != "delete" and each.side == "there")
            ):
                wanted[0].append(path)
            if each.action == "merge" or (each.action in ("create", "update") and each.side == "here"):
                wanted[1].append(path)
        bases = [object_path(self._was[path]) for path, each in fates.items() if each.action == "merge" and path in self._was]
        found = await asyncio.gather(self._here.read([*wanted[0], *bases]), self._there.read([*wanted[1], *bases]))
        made = [self._one(path, each, *found) for path, each in fates.items()]
        return [each for each in made if each is not None]

    def _one(self, path: str, each: Fate, here: Found, there: Found) -> Made | None:
        ours, theirs = self._here.etags.get(path), self._there.etags.get(path)
        if each.action == "delete":
            change = Delete(path, ours if each.side == "here" else theirs)
            return _on(each.side, Step(path, "delete", each.side), change, {path: None})
        if each.action == "adopt":
            data = _as_looked_at(here.get(path), ours)
            return Made(None, after={path: ours}, kept=(data,) if data else ())
        if each.action == "merge":
            data, other = _as_looked_at(here[path], ours), _as_looked_at(there[path], theirs)
            if data is None or other is None or ours is None or theirs is None:
                return None  # it has changed since: the next look tells
            return self._both(path, data, other, _base(path, self._was, (here, there)))
        target, data = (self._here, _as_looked_at(there[path], theirs)) if each.side == "here" else (
            self._there, _as_looked_at(here[path], ours))  # fmt: skip
        if data is None:
            return None
        if why := self._refused(target, path, data, each):
            return Made(Step(path, "left", each.side, why))
        step = Step(path, each.action, each.side, each.reason)
        return _on(each.side, step, _put(target, path, data), {path: etag_of(data)}, data)

    def _both(self, path: str, data: bytes, other: bytes, was: bytes | None) -> Made:
        together = merged(path, was, data, other)
        if together is not None and len(together) <= MAX_FILE_BYTES:
            here, there = (
                () if together == now else (_put(side, path, together),) for side, now in ((self._here, data), (self._there, other))
            )
            return Made(Step(path, "merge", "both"), here, there, {path: etag_of(together)}, (together,))
        etag = etag_of(other)
        copy = copy_of(path, etag, self._today)
        for side in (self._here, self._there):
            copy = has_copy(path, etag, side.etags) or copy
        for text in (data, other):
            if why := _no_text(path, text):
                return Made(Step(path, "left", "both", why))
        here, there = (
            () if side.etags.get(copy) == etag else (Create(copy, other, as_is=True),) for side in (self._here, self._there)
        )
        what = "both changed the same lines" if path in self._was else "both sides had another text"
        why = f"{what}: the one of here stays, the other is in {copy}"
        after = {path: etag_of(data), copy: etag}
        return Made(Step(path, "conflict", "both", why), here, (*there, _put(self._there, path, data)), after, (data, other))

    def _refused(self, target: Side, path: str, data: bytes, each: Fate) -> str | None:
        """Why a file can't be had by the other side; None when it can."""
        if why := _no_text(path, data):
            return why
        if each.action != "create":
            return None
        twin = target.folder.catalog.lookalike(path)
        if twin is not None and twin != path:
            return f"it would be taken for {twin}, which is there: rename one of them"
        source = self._there if target is self._here else self._here
        known = source.known(path)
        if not self._first or known is None or known.header is None:
            return None
        said = datetime.fromtimestamp(known.mtime_ns / 1e9, UTC)
        if target.forgotten.covers(path, known.header.name, said):
            return FORGOTTEN
        return None


def _base(path: str, was: Mapping[str, str], sides: Iterable[Found]) -> bytes | None:
    """The text that both had, from the history of either."""
    if path not in was:
        return None
    place = object_path(was[path])
    found = (side.get(place) for side in sides)
    return next((file.data for file in found if isinstance(file, File) and file.etag == was[path]), None)


def _as_looked_at(file: File | FileProblem | None, etag: str | None) -> bytes | None:
    return file.data if isinstance(file, File) and file.etag == etag else None


def _no_text(path: str, data: bytes) -> str | None:
    try:
        decode(path, data)
    except InvalidMemoryFile as error:
        return error.reason
    return None


def _put(side: Side, path: str, data: bytes) -> Change:
    if etag := side.etags.get(path):
        return Replace(path, data, etag, as_is=True)
    return Create(path, data, restored=path in side.forgotten.paths, as_is=True)


def _on(side: str, step: Step, change: Change, after: Mapping[str, str | None], kept: bytes | None = None) -> Made:
    contents = () if kept is None else (kept,)
    return Made(step, (change,), (), after, contents) if side == "here" else Made(step, (), (change,), after, contents)


def apart(made: Sequence[Made]) -> tuple[list[Made], list[Step]]:
    """Those that can be made together, and what is left because its name looks like that of another one that comes."""
    seen: dict[tuple[str, str], str] = {}
    good: list[Made] = []
    left: list[Step] = []
    for each in made:
        new = [(side, change.path) for side, changes in (("here", each.here), ("there", each.there)) for change in changes
               if isinstance(change, Create)]  # fmt: skip
        twin = next((seen[key] for side, path in new if (key := (side, collision_key(path))) in seen), None)
        if twin is not None and each.step is not None:
            left.append(Step(each.step.path, "left", each.step.side, f"it would be taken for {twin}: rename one of them"))
            continue
        seen |= {(side, collision_key(path)): path for side, path in new}
        good.append(each)
    return good, left


async def with_diffs(side: Side, made: Sequence[Made], where: str) -> list[Made]:
    """The same, with what changes on one side in their steps."""
    changes = [change for each in made for change in (each.here if where == "here" else each.there)]
    now = await side.read(change.path for change in changes if not isinstance(change, Create))
    shown: list[Made] = []
    for each in made:
        text = each.step.diff if each.step else ""
        for change in each.here if where == "here" else each.there:
            before, after = now.get(change.path), getattr(change, "data", None)
            name = f"{where}/{change.path}"
            text += unified(name, before.data if isinstance(before, File) else None, after)
        shown.append(replace(each, step=replace(each.step, diff=text)) if each.step else each)
    return shown


async def apply_all(side: Side, groups: Sequence[tuple[str, Sequence[Change]]], reason: str) -> dict[str, str]:
    """Make the changes of one side in one commit; where one can't be made, in halves, so that it alone is left.

    Args:
        groups: a path, and the changes that are made together for it.

    Returns:
        Why something could not be made, by path; "" where it has changed meanwhile, and the next look tells more.
    """
    groups = [group for group in groups if group[1]]
    if not groups:
        return {}
    changes = [change for _, group in groups for change in group]
    try:
        applied = await side.folder.apply(changes, AUTHOR, reason)
    except (Conflict, InvalidMemoryFile, InvalidPath, UnsafeFile) as error:
        if len(groups) == 1:
            return {groups[0][0]: "" if isinstance(error, Conflict) else str(error)}
        half = len(groups) // 2
        return await apply_all(side, groups[:half], reason) | await apply_all(side, groups[half:], reason)
    wanted = {change.path: change.data for change in changes if isinstance(change, Create | Replace)}
    met = {item.path for item in applied.files if item.path in wanted and item.after != wanted[item.path]}
    return {path: "" for path, group in groups if any(change.path in met for change in group)}
