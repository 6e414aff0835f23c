"""MemoryFolder: memory files, index and history on one backend, and the only writer. Floor 3.

Everyone proposes changes; `apply` alone writes. One commit holds, in this order: the history's objects, the log's line of
intent, the files, the index, the log's `done`. A kill between any two of them is healed by the next `recover` from the objects.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
import uuid
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from typing import Unpack

from mdmemory.backends.paths import check
from mdmemory.backends.protocol import Backend, File, FileProblem, Scan, problem_error, shielded
from mdmemory.config import Config
from mdmemory.errors import BackendError, Conflict, InvalidMemoryFile, InvalidPath, UnsafeFile
from mdmemory.files import index
from mdmemory.files.changes import Append, Change, Delete, Rename, Replace
from mdmemory.files.memory_file import DEFAULT_TYPES, decode
from mdmemory.folder.appending import append
from mdmemory.folder.commit import Commit, Plan, bytes_of, index_text, is_news, listed_outside, overtaken, with_index
from mdmemory.folder.journals import Journals
from mdmemory.folder.known import INDEX, Known
from mdmemory.folder.permissions import Confirm, Place, Policy, allow_all, nobody, permit, read_only
from mdmemory.folder.retention import Retention
from mdmemory.folder.search import Search, despite_damage
from mdmemory.folder.settle import Applied, Rules, check_change, moves_of, settle
from mdmemory.folder.view import GIVE_UP_S, View
from mdmemory.folder.watch import Watcher
from mdmemory.recall.cache import Cache
from mdmemory.recall.filters import Filters
from mdmemory.recall.ranking import Match, RankedPassage

logger = logging.getLogger("mdmemory")


class MemoryFolder:
    """A folder of memory files.

    Args:
        backend: where the bytes are.
        config: limits and types.
        policy: says for each change whether it is allowed, a person is asked, or it is denied.
        confirm: asks the person.
        cache: what processes before this one knew; None for nothing.
    """

    away: str | None = None  # with `places`, what only a memory with mounts has to tell
    places: tuple[Place, ...] = ()

    def __init__(
        self,
        backend: Backend,
        config: Config | None = None,
        policy: Policy = allow_all,
        confirm: Confirm | None = None,
        cache: Cache | None = None,
    ) -> None:
        self.backend = backend
        self.config = config or Config()
        self.types: Mapping[str, str] = {**DEFAULT_TYPES, **self.config.extra_types}
        self.limits = index.Limits(self.config.index_max_lines, self.config.index_max_bytes)
        self._policy, self._confirm = policy, confirm
        root = getattr(backend, "watchable_root", None) if self.config.watch and not self.is_read_only else None
        self.watcher, retention = Watcher(root) if root else None, Retention(backend, self.config)
        self._view = View(backend, self.limits, self.config.languages, self.watcher, cache, retention)
        self.catalog = self._view.catalog
        self._search = Search(partial(_read, backend), self.catalog, self.config)
        self.journals = Journals(backend, self.catalog, self.config.languages)
        self._lock = asyncio.Lock()
        self.index_problem: str | None = None

    @property
    def is_read_only(self) -> bool:
        """Whether the policy is `read_only`, so that agents need no instructions for writing."""
        return self._policy is read_only

    @property
    def has_news(self) -> bool:
        """Whether a look may find something: False only when changes are told of, and none was since the last look."""
        return self.watcher.has_news if self.watcher else bool(getattr(self.backend, "has_news", True))

    @property
    def scanned(self) -> bool:
        """Whether the folder has been looked at: before, no files does not mean that there are none."""
        return self.catalog.scanned

    @property
    def files(self) -> Mapping[str, Known]:
        """Every memory file as of the last `refresh`, by path."""
        return self.catalog.files

    @property
    def skipped(self) -> Mapping[str, str]:
        """What the last `refresh` did not follow or could not read, with the reason."""
        return self.catalog.skipped

    @property
    def listed(self) -> Mapping[str, index.Listed]:
        """What the index says of each file that could be read, now or before it broke."""
        return self.catalog.headers.listed

    @property
    def outdated(self) -> Set[str]:
        """The files that today have expired or are superseded: agents are not shown them unasked."""
        return self._search.outdated

    @property
    def change_mark(self) -> int:
        """A number that grows with every change that is noticed or made."""
        return self._view.change_mark

    def changes_since(self, mark: int) -> list[str]:
        """The paths that changed after `change_mark` was `mark`, the latest first."""
        return self._view.changes_since(mark)

    async def refresh(self) -> frozenset[str]:
        """Look at the folder, or ask its watcher, and read what changed since the last look.

        Returns:
            The memory files that came, changed or went.

        Raises:
            Unavailable: could not look; what was known stays.
        """
        async with self._lock:
            return frozenset(await self._view.refresh())

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
        """Several files in one round trip; `InvalidPath` for a path that no memory may have."""
        return await self.backend.read({check(path): None for path in paths})

    async def scan(self) -> Scan:
        """Look at every visible file, memory file or not."""
        if not self.scanned:
            await self.refresh()
        return await self.backend.scan(self.catalog.versions)

    async def search(self, query: str, *, limit: int = 10, **filters: Unpack[Filters]) -> list[Match]:
        """Memory files that share words with the query, best first, as of the last `refresh`.

        Raises:
            InvalidArguments: a filter that there is not.
        """
        return await despite_damage(self.catalog, self.refresh, lambda: self._search.files(query, limit, filters))

    async def search_passages(self, query: str, *, limit: int = 10, **filters: Unpack[Filters]) -> list[RankedPassage]:
        """Paragraphs, list items and turns that share words with the query, best first; else as `search`."""
        return await despite_damage(self.catalog, self.refresh, lambda: self._search.passages(query, limit, filters))

    async def prompt_index(self, *, rest: bool = True) -> index.Updated:
        """The index as an agent sees it: headers of what is valid today and people's own lines, within the limits.

        Args:
            rest: whether a last line says what is left out.
        """
        text, outside = await self.index_file(), self._view.outside
        if text and outside.changes:
            text = index.update(text, listed_outside(outside), self.listed, self.limits, outside.moved()).text
        every, hidden = {**self.listed, **self.catalog.headers.unreadable}, self.outdated
        shown = {path: listed for path, listed in every.items() if path not in hidden} if hidden else every
        return index.render(text, shown, self.limits, rest=rest)

    async def index_file(self) -> str | None:
        """The text of MEMORY.md; None when there is none, or none that can be read: `index_problem` then says why."""
        self.index_problem = None
        data = self.catalog.index_data
        try:
            if data is None:
                found = (await self.read_many([INDEX]))[INDEX]
                return None if isinstance(found, FileProblem) and found.kind == "absent" else index_text(found)
            return decode(INDEX, data)
        except (BackendError, InvalidMemoryFile) as error:
            self.index_problem = f"people's lines of the index are not shown: {error}"
            logger.warning("%s", self.index_problem)
            return None

    async def apply(
        self, changes: Sequence[Change], author: str, reason: str, *, dry_run: bool = False, plain: bool = False
    ) -> Applied:
        """Validate, ask permission, merge with what happened meanwhile, and write: all of the changes or none.

        Args:
            author: who proposes, such as `agent:session-1` or `person`; what an `agent:` creates must be a typed memory file.
            reason: why, in a few words; it goes into the history.
            dry_run: only say what would be written; nobody is asked for consent.
            plain: agents may make files without frontmatter too, and text files that are no Markdown; no memory files, but kept.

        Raises:
            Conflict: with the current text; nothing was written.
            InvalidPath, InvalidMemoryFile, NotThere, PermissionDenied, Unavailable, UnsafeFile: nothing was written.
        """
        for change in changes:
            check_change(change, plain)
        await permit(changes, author, self._policy, nobody if dry_run else self._confirm)
        async with self._lock:
            return await shielded(self._apply(changes, author, reason, dry_run, plain))

    async def _apply(self, changes: Sequence[Change], author: str, reason: str, dry_run: bool, plain: bool) -> Applied:
        renames = [change for change in changes if isinstance(change, Rename)]
        named_anew = plain and not all(isinstance(change, Replace | Delete) for change in changes)
        if renames or named_anew or not self.catalog.scanned:
            await self._view.refresh(scan=named_anew)
        if any(isinstance(change, Append) for change in changes):
            return Applied(*await append(self.backend, self._view, changes, author, reason, dry_run), None)
        commit_id, give_up = uuid.uuid4().hex, time.monotonic() + GIVE_UP_S
        names = self.catalog if plain else self.catalog.headers
        rules = Rules(self.types, author.startswith("agent:"), names.lookalike, plain)
        assumed = self._view.assumed(changes)
        while True:
            moves = moves_of(renames, self.catalog.versions if plain else self.files, plain)
            named = [path for change in changes for path in ((change.new_path,) if isinstance(change, Rename) else (change.path,))]
            touched = [*named, *moves, *moves.values()]
            found = assumed or await self._view.current(touched)
            settled = settle(changes, {path: bytes_of(path, found[path]) for path in touched}, moves, rules)
            commit = Commit(commit_id, author, reason, settled, renames)
            plan = commit.plan(self.catalog, found[INDEX], self._view.outside, self._view.outside_data(found), self.limits)
            if dry_run or not any(item.before != item.after for item in settled):
                return Applied(None, tuple(settled), plan.index, plan.warnings)
            try:
                etags = await self.backend.commit(commit_id, [with_index(op) for op in plan.ops] if assumed else plan.ops)
            except (Conflict, InvalidPath, UnsafeFile) as error:
                if assumed:
                    assumed = None  # not as it was when last looked at
                elif not isinstance(error, Conflict) or time.monotonic() > give_up or not is_news(error, found):
                    raise
                else:
                    await asyncio.sleep(random.uniform(0, 0.01))  # another writer was first: merge with what it wrote
                continue
            if overtaken(plan, etags):  # finished by another process, around an edit that was made meanwhile: merge with that
                commit_id, assumed = uuid.uuid4().hex, None
                continue
            return await self._applied(commit, plan, index_written=plan.index_data is None or INDEX in etags)

    async def _applied(self, commit: Commit, plan: Plan, *, index_written: bool) -> Applied:
        now_ns = time.time_ns()
        for item in commit.settled:
            if item.after is None:
                self.catalog.forget(item.path)
            elif item.path != INDEX and item.before != item.after:
                self.catalog.wrote(item.path, item.after, now_ns)
        outside = self._view.committed(plan.listed)
        if not index_written:
            renamed = {item.moved_from: item.path for item in commit.settled if item.moved_from}
            found = await self._view.write_index({**listed_outside(outside), **plan.listed}, {**outside.moved(), **renamed})
            return Applied(commit.id, tuple(commit.settled), *found)
        if plan.index_data is not None:
            self.catalog.wrote(INDEX, plan.index_data, now_ns)
        files = (replace(item, after=plan.index_data or item.before) if item.path == INDEX else item for item in commit.settled)
        return Applied(commit.id, tuple(files), plan.index, plan.warnings)

    async def unlink(self, path: str, author: str) -> None:
        """Remove a symbolic link, and nothing that it leads to; there is nothing in it for the history to keep."""
        await permit([Delete(check(path))], author, self._policy, self._confirm)
        async with self._lock:
            await self._view.unlink(path)

    async def recover(self) -> None:
        """Finish a commit that was cut short, if the log's end shows one; a folder that can't be written is left as it is."""
        if self.is_read_only or (getattr(self.backend, "is_atomic", False) and not self.scanned):
            return
        async with self._lock:
            try:
                await shielded(self._view.recover())
            except (BackendError, Conflict, InvalidPath) as error:
                logger.warning("a cut-short commit could not be looked for or finished: %s", error)

    async def close(self) -> None:
        """Close the backend, after a running apply."""
        async with self._lock:
            await self._view.close()
            await self.backend.close()


async def _read(backend: Backend, paths: Sequence[str]) -> Mapping[str, File | FileProblem]:
    return await backend.read(dict.fromkeys(paths))  # a method of the folder would keep it, and its watcher, from being forgotten
