"""MemoryFolder: memory files, index and history on one backend, and the only writer. Floor 3.

Everyone proposes changes; `apply` alone writes. One commit holds, in this order: the history's objects, the log's line of
intent, the files, the index, the log's `done`. A kill between any two of them is healed by the next `recover` from the objects.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

from mdmemory.backends.paths import check
from mdmemory.backends.protocol import ABSENT, LOG, TAIL_BYTES, Backend, File, FileProblem, Put, Range, problem_error, shielded
from mdmemory.config import Config
from mdmemory.errors import Conflict, InvalidMemoryFile, Unavailable
from mdmemory.files import history, index
from mdmemory.files.changes import Change, Rename
from mdmemory.files.memory_file import DEFAULT_TYPES, decode
from mdmemory.folder.catalog import INDEX, Catalog, Known
from mdmemory.folder.commit import Commit, IndexChange, Plan, heal
from mdmemory.folder.permissions import Confirm, Policy, allow_all, permit, read_only
from mdmemory.folder.search import Search
from mdmemory.folder.settle import Rules, Settled, check_change, settle
from mdmemory.recall.filters import Filters
from mdmemory.recall.ranking import Match, RankedPassage

logger = logging.getLogger("mdmemory")
MAX_OUTSIDE_KEPT = 20  # of more changes than this, as from a git checkout, the history keeps the hashes only
GIVE_UP_S = 60.0  # how long an apply keeps trying while other writers get in first


@dataclass(frozen=True, slots=True)
class Applied:
    """What an `apply` did, or would do.

    Args:
        commit_id: None for a dry run, or when nothing had to be written.
        files: each file's bytes before and after.
        index: the index's figures after it; None when the index could not be kept, `warnings` then says why.
        warnings: what the one who proposed the change should know.
    """

    commit_id: str | None
    files: tuple[Settled, ...]
    index: index.Updated | None
    warnings: tuple[str, ...] = ()


class MemoryFolder:
    """A folder of memory files.

    Args:
        backend: where the bytes are.
        config: limits and types.
        policy: says for each change whether it is allowed, a person is asked, or it is denied.
        confirm: asks the person.
    """

    def __init__(
        self, backend: Backend, config: Config | None = None, policy: Policy = allow_all, confirm: Confirm | None = None
    ) -> None:
        self.backend = backend
        self.config = config or Config()
        self.types: Mapping[str, str] = {**DEFAULT_TYPES, **self.config.extra_types}
        self.limits = index.Limits(self.config.index_max_lines, self.config.index_max_bytes)
        self._policy, self._confirm = policy, confirm
        self._catalog = Catalog(self.config.languages)
        self._search = Search(backend, self._catalog, self.config)
        self._lock = asyncio.Lock()
        self._outside: dict[str, tuple[Known | None, Known | None]] = {}
        self._changes: dict[str, int] = {}
        self._log_seen: int | None = None

    @property
    def is_read_only(self) -> bool:
        """Whether the policy is `read_only`, so that agents need no instructions for writing."""
        return self._policy is read_only

    @property
    def files(self) -> Mapping[str, Known]:
        """Every memory file as of the last `refresh`, by path."""
        return self._catalog.files

    @property
    def skipped(self) -> Mapping[str, str]:
        """What the last `refresh` did not follow or could not read, with the reason."""
        return self._catalog.skipped

    @property
    def listed(self) -> Mapping[str, index.Listed]:
        """What the index says of each file."""
        return self._catalog.listed

    def _mark_changed(self, paths: Iterable[str]) -> None:
        """Note that files changed now, for `changes_since`."""
        for path in paths:
            self._changes.pop(path, None)
            self._changes[path] = self.change_mark + 1

    @property
    def change_mark(self) -> int:
        """A number that grows with every change that is noticed or made."""
        return next(reversed(self._changes.values()), 0)

    def changes_since(self, mark: int) -> list[str]:
        """The paths that changed after `change_mark` was `mark`, the latest first."""
        return list(itertools.takewhile(lambda path: self._changes[path] > mark, reversed(self._changes)))

    async def refresh(self) -> frozenset[str]:
        """Look at the folder and read what changed since the last look.

        Returns:
            The memory files that came, changed or went.

        Raises:
            Unavailable: could not look; what was known stays.
        """
        async with self._lock:
            return await self._refresh()

    async def _refresh(self) -> frozenset[str]:
        first = not self._catalog.scanned
        changed = await self._catalog.refresh(self.backend)
        self._mark_changed(changed)
        if not first:
            for path, (before, now) in changed.items():
                self._outside[path] = (self._outside.get(path, (before, now))[0], now)
        return frozenset(changed)

    async def read(self, path: str) -> bytes:
        """The bytes of one file.

        Raises:
            InvalidPath, NotThere, Unavailable, UnsafeFile
        """
        found = await self.read_many([path])
        file = found[path]
        if isinstance(file, FileProblem):
            raise problem_error(path, file)
        return file.data

    async def read_many(self, paths: Sequence[str]) -> Mapping[str, File | FileProblem]:
        """Several files in one round trip.

        Raises:
            InvalidPath
        """
        return await self.backend.read({check(path): None for path in paths})

    async def search(self, query: str, *, limit: int = 10, **filters: Unpack[Filters]) -> list[Match]:
        """Memory files that share words with the query, best first, as of the last `refresh`.

        Raises:
            InvalidArguments: a filter that there is not.
        """
        return await self._search.files(query, limit, filters)

    async def search_passages(self, query: str, *, limit: int = 10, **filters: Unpack[Filters]) -> list[RankedPassage]:
        """Paragraphs, list items and turns that share words with the query, best first, as of the last `refresh`.

        Raises:
            InvalidArguments: a filter that there is not.
        """
        return await self._search.passages(query, limit, filters)

    async def prompt_index(self) -> index.Updated:
        """The index as an agent sees it: rendered from the headers and people's own lines, within the limits."""
        return index.render(await self.index_file(), self.listed, self.limits)

    async def index_file(self) -> str | None:
        """The text of MEMORY.md; None when there is none, or none that can be read as text."""
        data = self._catalog.index_data
        if data is None:
            found = (await self.read_many([INDEX]))[INDEX]
            if isinstance(found, FileProblem):
                if found.kind != "absent":
                    logger.warning("%s is not used: %s", INDEX, found.reason)
                return None
            data = found.data
        try:
            return decode(INDEX, data)
        except InvalidMemoryFile as error:
            logger.warning("the index is not used: %s", error)
            return None

    async def apply(self, changes: Sequence[Change], author: str, reason: str, *, dry_run: bool = False) -> Applied:
        """Validate, ask permission, merge with what happened meanwhile, and write: all of the changes or none.

        Args:
            author: who proposes, such as `agent:session-1` or `person`; what an `agent:` creates must be a typed memory file.
            reason: why, in a few words; it goes into the history.
            dry_run: only say what would be written.

        Raises:
            Conflict: with the current text; nothing was written.
            InvalidPath, InvalidMemoryFile, PermissionDenied, Unavailable, UnsafeFile: nothing was written.
        """
        for change in changes:
            check_change(change)
        await permit(changes, author, self._policy, self._confirm)
        async with self._lock:
            return await shielded(self._apply(changes, author, reason, dry_run))

    async def _apply(self, changes: Sequence[Change], author: str, reason: str, dry_run: bool) -> Applied:
        if not self._catalog.scanned:
            await self._refresh()
        commit_id = uuid.uuid4().hex
        rules = Rules(self.types, author.startswith("agent:"), self._catalog.lookalike)
        renames = [change for change in changes if isinstance(change, Rename)]
        give_up = time.monotonic() + GIVE_UP_S
        while True:
            moves = self._moves(renames)
            touched = [*(change.path for change in changes if not isinstance(change, Rename)), *moves, *moves.values()]
            found = await self._current(touched)
            current = {path: _bytes(path, found[path]) for path in touched}
            settled = settle(changes, current, moves, rules)
            commit = Commit(commit_id, author, reason, settled, renames)
            plan = commit.plan(self._catalog, found[INDEX], self._outside, self._outside_data(found), self.limits)
            if dry_run or not any(item.before != item.after for item in settled):
                return Applied(None, tuple(settled), plan.index, plan.warnings)
            try:
                etags = await self.backend.commit(commit_id, plan.ops)
            except Conflict:
                if time.monotonic() > give_up:
                    raise
                await asyncio.sleep(random.uniform(0, 0.01))  # another writer was first: merge with what it wrote
                continue
            return await self._applied(commit, plan, index_written=plan.index_data is None or INDEX in etags)

    def _moves(self, renames: Sequence[Rename]) -> dict[str, str]:
        """Each memory file that the renames move, and where to."""
        moves: dict[str, str] = {}
        for rename in renames:
            inside = {path: rename.new_path + path.removeprefix(rename.path) for path in self._catalog.below(rename.path)}
            moves |= inside or {rename.path: rename.new_path}
        return moves

    async def _current(self, paths: Sequence[str]) -> Mapping[str, File | FileProblem]:
        """The files, the index and what was edited outside, in one round trip with the new part of the log, maybe healed."""
        while True:
            news = Range(-TAIL_BYTES, TAIL_BYTES) if self._log_seen is None else Range(self._log_seen, TAIL_BYTES)
            outside = list(self._outside)[:MAX_OUTSIDE_KEPT]
            found = await self.backend.read({**dict.fromkeys([*paths, *outside, INDEX]), LOG: news})
            if not await self._read_log(found[LOG]):
                return found

    async def _read_log(self, log: File | FileProblem) -> bool:
        """Take in what other processes committed; returns whether a cut-short commit was finished, so that files have changed."""
        if isinstance(log, FileProblem):
            return False
        tail = history.read_log(log.data)
        for intent in tail.intents:
            for change in intent.files:
                _, known = self._outside.get(change.path, (None, None))
                if (known and known.etag) == change.after:
                    self._outside.pop(change.path, None)  # a cooperating process did it, not a person
        self._log_seen = max(0, log.size)
        if not tail.unfinished:
            return False
        healed = await heal(self.backend, tail.unfinished)
        before = dict(self.listed)
        await self._refresh()
        await self._write_index({path: (before.get(path), self.listed.get(path)) for path in healed if path != INDEX}, {})
        return True

    def _outside_data(self, found: Mapping[str, File | FileProblem]) -> Mapping[str, bytes]:
        """The bytes that people left, where they are still what the scan saw."""
        files = {path: (found.get(path), known) for path, (_, known) in self._outside.items()}
        return {
            path: file.data for path, (file, known) in files.items() if known and isinstance(file, File) and file.etag == known.etag
        }

    async def _applied(self, commit: Commit, plan: Plan, *, index_written: bool) -> Applied:
        now_ns = time.time_ns()
        changed: dict[str, IndexChange] = {}
        for item in commit.settled:
            old = self.listed.get(item.moved_from or item.path)
            if item.after is None:
                self._catalog.forget(item.path)
            elif item.before != item.after and item.path != INDEX:
                self._catalog.wrote(item.path, item.after, now_ns)
            if item.path != INDEX:
                changed[item.path] = (old, self.listed.get(item.path))
        self._mark_changed(changed)
        self._outside.clear()
        updated = plan.index
        if not index_written:
            updated = await self._write_index(changed, {item.moved_from: item.path for item in commit.settled if item.moved_from})
        elif plan.index_data is not None:
            self._catalog.wrote(INDEX, plan.index_data, now_ns)
        return Applied(commit.id, tuple(commit.settled), updated, plan.warnings)

    async def _write_index(self, changed: Mapping[str, IndexChange], renamed: Mapping[str, str]) -> index.Updated | None:
        """Bring lines of the index up to date by a commit of their own: another writer changed it between our read and write."""
        while True:
            found = (await self.backend.read({INDEX: None}))[INDEX]
            if isinstance(found, FileProblem) and found.kind != "absent":
                return None
            data = found.data if isinstance(found, File) else b""
            updated = index.update(decode(INDEX, data), changed, self.listed, self.limits, renamed)
            if updated.text.encode() == data:
                return updated
            etag = found.etag if isinstance(found, File) and found.etag else ABSENT
            try:
                await self.backend.commit(uuid.uuid4().hex, [Put(INDEX, updated.text.encode(), etag)])
            except Conflict:
                await asyncio.sleep(random.uniform(0, 0.01))
                continue
            self._catalog.wrote(INDEX, updated.text.encode(), time.time_ns())
            return updated

    async def recover(self) -> None:
        """Finish a commit that was cut short, if the log's end shows one; a folder that can't be written is left as it is."""
        async with self._lock:
            try:
                await shielded(self._current([]))
            except Unavailable as error:
                logger.warning("a cut-short commit could not be looked for or finished: %s", error)

    async def close(self) -> None:
        """Close the backend, after a running apply."""
        async with self._lock:
            await self.backend.close()


def _bytes(path: str, found: File | FileProblem) -> bytes | None:
    if isinstance(found, File):
        return found.data
    if found.kind == "absent":
        return None
    raise problem_error(path, found)
