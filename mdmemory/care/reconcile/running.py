"""A sync of two folders, both ways: look, decide, write, and look again until nothing is left to do. Floor 4.

Every write has the etag that was looked at as its precondition, and what was synced is noted last: so a sync that is cut short, or
that another one runs beside, is finished by the next, and what changes meanwhile waits for the next look.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from mdmemory.backends.protocol import ABSENT, File, Op, Put
from mdmemory.care.reconcile import index, journals
from mdmemory.care.reconcile.changing import FORGOTTEN, Made, Maker, apart, apply_all, with_diffs
from mdmemory.care.reconcile.fates import Fate, Step, fate, moved, renames
from mdmemory.care.reconcile.pair import Pair, Synced
from mdmemory.care.reconcile.side import Side, parted
from mdmemory.care.reconcile.state import State, place_of, read_state
from mdmemory.errors import Conflict, InvalidArguments, PermissionDenied
from mdmemory.files import history
from mdmemory.files.changes import Rename
from mdmemory.files.history import TOMBSTONES
from mdmemory.folder.memory_folder import MemoryFolder

LOOKS: Final = 5  # what changes faster than this many looks waits for the next sync
MAX_DELETED: Final = 10  # so many may always go, but not all of a folder; beyond it, this share of what was there
MAX_DELETED_SHARE: Final = 0.2
MADE_ANEW: Final = "The other folder was wiped or made anew since the last sync: it is filled again, and nothing is deleted."


async def reconcile(pair: Pair, *, max_deletions: int | None = None, dry_run: bool = False, diff: bool = False) -> Synced:
    """Bring each folder's changes since the last sync into the other.

    Args:
        max_deletions: how many files may be deleted; None for ten, or a fifth of them, and never all of a folder.
        dry_run: only say what would be done.
        diff: say it with differences; nothing is written.

    Raises:
        InvalidArguments: other folders are mounted in one of them.
        PermissionDenied: too much would be deleted; nothing was done.
        Unavailable: a folder can't be looked at, or written to; what was done by then stays, and the next sync goes on.
    """
    if not (isinstance(pair.here, MemoryFolder) and isinstance(pair.there, MemoryFolder)):
        raise InvalidArguments("A sync is between two folders, and here several are mounted in one. Name the folder itself.")
    here, there = Side(pair.here, pair.name), Side(pair.there, pair.own_name)
    run = _Run(here, there, place_of(pair.name), max_deletions, dry_run or diff, diff)
    for _ in range(1 if run.dry_run else LOOKS):
        if not await run.once():
            break
    return run.told()


@dataclass
class _Run:
    """One sync, of several looks."""

    here: Side
    there: Side
    place: str
    max_deletions: int | None
    dry_run: bool
    diff: bool
    state: State = field(default_factory=State)
    read: bool = False
    etag: str | None = None
    done: dict[tuple[str, str, str], Step] = field(default_factory=dict)
    left: list[Step] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)

    async def once(self) -> bool:
        """Look, and do what is to be done; returns whether to look again."""
        if not self.read:
            self.state, self.etag = await read_state(self.here.folder, self.place)
            self.read = True
        self.left, before = [], self.state
        await asyncio.gather(*(side.look(stamps) for side, stamps in zip(self._sides, self.state.stamps, strict=True)))
        try:
            wrote = await self._files()
            wrote = await self._rest() or wrote
            wrote = self._say() or wrote
            has_any = self.state.id or self.state.etags or self.state.index or self.state.journals
            if has_any and self.state != before and not self.dry_run:
                await self._note({})
        except _Overtaken:
            self.read = False
            return True
        return wrote

    def told(self) -> Synced:
        """What was done, and what is left."""
        steps = [*self.done.values(), *self.left]
        return Synced(tuple(sorted(steps, key=lambda step: (step.path, step.side))), tuple(self.notes))

    @property
    def _sides(self) -> tuple[Side, Side]:
        return self.here, self.there

    async def _files(self) -> bool:
        was = dict(self.state.etags)
        fates = self._fates(was)
        moves = renames(was, self.here.etags, self.there.etags, self._unseen(was)), self._renamed_there(was)
        if not (fates or any(moves) or self._lacks_journals()):
            return False
        if self.state.id and not await self._is_marked():
            self.notes[MADE_ANEW] = None
            self.state, was, moves = State(), {}, ({}, {})
            fates = self._fates(was)
        elif not self.state.id:
            await self._is_marked()  # for what each has forgotten
        self._check_deletions({path: each for path, each in fates.items() if not any(path in names for names in moves)}, was)
        changed = await self._rename(moves, was)
        fates = self._fates(was)
        changed = await self._make(fates, was) or changed
        self.state = replace(self.state, etags=was)
        return changed

    def _fates(self, was: Mapping[str, str]) -> dict[str, Fate]:
        """What becomes of each file of which something is known on both sides."""
        faults = {path: why for side in self._sides for path, why in side.faults.items()}
        unseen = self._unseen(was.keys() | self.here.etags.keys() | self.there.etags.keys())
        faults |= dict.fromkeys(unseen, "it could not be looked at")
        held, fates = self._held, dict[str, Fate]()
        for path in sorted(was.keys() | self.here.etags.keys() | self.there.etags.keys() | faults.keys()):
            found = fate(was.get(path), self.here.etags.get(path), self.there.etags.get(path))
            if found is not None and path in held:
                self._leave(Step(path, "left", found.side, FORGOTTEN))
            elif path in faults:
                self._leave(Step(path, "left", "there" if path in self.here.folder.files else "here", faults[path]))
            elif found is not None:
                fates[path] = found
        return fates

    @property
    def _held(self) -> dict[str, str]:
        """What is still as it was when it was kept away from the side that had deleted it."""
        sides = (self.here.etags, self.there.etags)
        return {path: etag for path, etag in self.state.held.items() if {side.get(path) for side in sides} == {None, etag}}

    def _unseen(self, paths: Iterable[str]) -> set[str]:
        if not (self.here.folder.skipped or self.there.folder.skipped):
            return set()
        return {path for path in paths for side in self._sides if side.is_unseen(path)}

    def _renamed_there(self, was: Mapping[str, str]) -> dict[str, str]:
        return renames(was, self.there.etags, self.here.etags, self._unseen(was))

    def _lacks_journals(self) -> bool:
        """Whether a conversation that was there is not any more, which may be because all is gone."""
        now = self.there.folder.catalog.journals
        return any(there and path not in now for path, (_, there) in self.state.journals.items())

    async def _is_marked(self) -> bool:
        """Whether the other folder is the one that was synced with; learns in the same trip what each side has forgotten."""
        found = await asyncio.gather(self.here.read([TOMBSTONES]), self.there.read([TOMBSTONES, self.state.marker]))
        for side, each in zip(self._sides, found, strict=True):
            side.take_forgotten(each)
        return isinstance(found[1][self.state.marker], File)

    async def _rename(self, moves: tuple[Mapping[str, str], Mapping[str, str]], was: dict[str, str]) -> bool:
        """Follow with renames, and call the files by their new names from here on."""
        changed = False
        for old, new in moved(was, self.here.etags, self.there.etags).items():
            was[new] = was.pop(old)
        for side, names, where in ((self.there, moves[0], "there"), (self.here, moves[1], "here")):
            groups = [(old, [Rename(old, new)]) for old, new in names.items() if old in was]
            failed = {} if self.dry_run else await apply_all(side, groups, f"sync with {side.name}")
            for old, new in names.items():
                if old in was and old not in failed:
                    was[new], side.etags[new] = was.pop(old), side.etags.pop(old)
                    if self.dry_run:
                        side.still[new] = old
                    self._did(Step(new, "rename", "there" if where == "there" else "here", f"was {old}"))
                    changed = True
        return changed

    def _check_deletions(self, fates: Mapping[str, Fate], was: Mapping[str, str]) -> None:
        count = {where: sum(each == Fate("delete", where) for each in fates.values()) for where in ("here", "there")}
        total, limit = sum(count.values()), max(MAX_DELETED, MAX_DELETED_SHARE * len(was))
        if self.max_deletions is not None:
            limit = self.max_deletions
        empty = next(
            (where for where, other in (("here", self.there), ("there", self.here)) if count[where] and not other.etags), ""
        )
        if total > limit or (empty and self.max_deletions is None):
            why = " One of the two folders is empty: look whether it is the right one, and mounted." if empty else ""
            raise PermissionDenied(
                f"{total} of {len(was)} files would be deleted.{why} Nothing was done. "
                f"If they are to go, allow it with --max-deletions {total}."
            )

    async def _make(self, fates: Mapping[str, Fate], was: dict[str, str]) -> bool:
        maker = Maker(self.here, self.there, was, first=not self.state.is_whole)
        changed = False

        def size(path: str) -> int:
            return max((known.size for side in self._sides if (known := side.known(path))), default=0)

        for some in parted(fates, size):
            made, left = apart(await maker.make({path: fates[path] for path in some}))
            changed = changed or len(made) + len(left) < len(some)
            for step in (*left, *(each.step for each in made if each.step)):
                if step.action == "left":
                    self._leave(step)
                if step.reason == FORGOTTEN:
                    etag = self.here.etags.get(step.path) or self.there.etags[step.path]
                    self.state = replace(self.state, held={**self.state.held, step.path: etag})
            made = [each for each in made if each.step is None or each.step.action != "left"]
            if self.diff:
                made = await with_diffs(self.there, await with_diffs(self.here, made, "here"), "there")
            changed = await self._apply(made, was) or changed
        return changed

    async def _apply(self, made: Sequence[Made], was: dict[str, str]) -> bool:
        """Make some changes on both sides, and note what both then have."""
        failed: dict[str, str] = {}
        if not self.dry_run:
            for side in self._sides:
                groups = [(_name(each), each.here if side is self.here else each.there) for each in made]
                todo = [group for group in groups if group[0] not in failed]
                failed |= await apply_all(side, todo, f"sync with {side.name}")
        contents: list[bytes] = []
        changed = not all(failed.values())  # else it would fail again
        for each in made:
            if (why := failed.get(_name(each))) is not None:
                if why and each.step is not None:
                    self._leave(Step(each.step.path, "left", each.step.side, why))
                continue
            was.update({path: etag for path, etag in each.after.items() if etag is not None})
            for path in (path for path, etag in each.after.items() if etag is None):
                was.pop(path, None)
            contents += each.kept
            if each.step is not None:
                self._did(each.step)
                changed = True
        is_news, self.state = self.state.etags != was, replace(self.state, etags=dict(was))
        if is_news and not self.dry_run:
            await self._note(history.objects(contents))
        return changed

    async def _rest(self) -> bool:
        """The index, then the conversations."""
        lines = await index.bring_together(self.here, self.there, self.state.index, dry_run=self.dry_run)
        pairs, steps = await journals.bring_together(self.here, self.there, self.state.journals, dry_run=self.dry_run)
        for step in (*lines.steps, *steps):
            (self._leave if step.action == "left" else self._did)(step)
        self.state = replace(
            self.state,
            is_whole=True,
            held=self._held,
            index=lines.own,
            journals=pairs,
            stamps=(dict(self.here.stamps), dict(self.there.stamps)),
        )
        return lines.is_again or any(step.action != "left" for step in (*lines.steps, *steps))

    def _say(self) -> bool:
        """Tell once what is not kept in step."""
        now = frozenset(self.here.others()), frozenset(self.there.others())
        for where, paths, known in zip(("here", "there"), now, self.state.said, strict=True):
            if new := sorted(paths - known):
                more = f" and {len(new) - 3} more" if len(new) > 3 else ""
                names = f"{', '.join(new[:3])}{more} ({where})"
                self.notes[f"Not kept in step, as only Markdown files with plain names are, and no links: {names}."] = None
        self.state = replace(self.state, said=now)
        return False

    def _did(self, step: Step) -> None:
        self.done[step.path, step.action, step.side] = step

    def _leave(self, step: Step) -> None:
        if step not in self.left:
            self.left.append(step)

    async def _note(self, contents: Mapping[str, bytes]) -> None:
        """Write the state, with contents from which later merges begin, on the condition that no other sync has."""
        if not self.state.id:
            self.state = replace(self.state, id=uuid.uuid4().hex)
            await self.there.folder.backend.commit(uuid.uuid4().hex, [Put(self.state.marker, b"")])
        data = self.state.as_bytes()
        objects: list[Op] = [Put(path, each, ABSENT, required=False) for path, each in contents.items()]
        try:
            etags = await self.here.folder.backend.commit(uuid.uuid4().hex, [*objects, Put(self.place, data, self.etag or ABSENT)])
        except Conflict:
            raise _Overtaken from None
        self.etag = etags[self.place]


class _Overtaken(Exception):
    """Another sync of the same pair was first."""


def _name(made: Made) -> str:
    return made.step.path if made.step is not None else next(iter(made.after))
