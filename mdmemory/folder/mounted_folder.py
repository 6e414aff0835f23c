"""MountedFolder: several memory folders as one. Floor 3.

Each keeps its own files, index, history and lock, so that it is the same folder for everyone who mounts it. A path is the prefix of
its mount and the path inside. A write goes to the mount that its path names; nothing in a file can move it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, TypeVar, Unpack

from mdmemory.backends.paths import check, owner
from mdmemory.backends.protocol import Backend, File, FileProblem, Scan, problem_error
from mdmemory.errors import InvalidArguments, MdmemoryError, PermissionDenied, Unavailable
from mdmemory.files import index
from mdmemory.files.changes import Change, Delete
from mdmemory.folder.catalogs import Catalogs, Joined, joined
from mdmemory.folder.known import Known
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.mounts import Part, called, place_of, within_limits
from mdmemory.folder.permissions import Confirm, Place, Policy, allow_all, check_reading, nobody
from mdmemory.folder.routing import Router, apply_steps
from mdmemory.folder.search import Search, despite_any_damage
from mdmemory.folder.settle import Applied
from mdmemory.recall.filters import Filters, mount_name
from mdmemory.recall.postings import MAX_CANDIDATES
from mdmemory.recall.ranking import Match, RankedPassage

logger = logging.getLogger("mdmemory")
T = TypeVar("T")
WIDE = 200  # how far a search looks for files of other mounts, when one's are limited
EVERY = 2 * MAX_CANDIDATES  # what it looks at of a mount, at most


class MountedFolder:
    """Several memory folders, with what agents and people use of one.

    Args:
        parts: by prefix; that of the home is "".
        policy: is asked about every change, with its whole path.
        confirm: asks the person.
        stage: of the work; mounts that are silent in it are neither searched nor listed.
        home_only: show nothing else, and write nowhere else.
    """

    def __init__(
        self,
        parts: Mapping[str, Part],
        policy: Policy = allow_all,
        confirm: Confirm | None = None,
        stage: str | None = None,
        *,
        home_only: bool = False,
    ) -> None:
        home = parts[""].folder
        self.config, self.types, self.limits, self.journals = home.config, home.types, home.limits, home.journals
        self.away: str | None = None
        """Which mounts the last `refresh` could not look at, and why; None when it saw all."""
        self._parts, self._policy, self._confirm = parts, policy, confirm
        self._shown = {prefix: parts[prefix] for prefix in ([""] if home_only else parts) if parts[prefix].mount.speaks_in(stage)}
        self._marks: list[tuple[int, ...]] = [(0,) * len(self._shown)]
        self._router = Router(parts, home_only=home_only)
        self._limits = {prefix: part.mount for prefix, part in self._shown.items() if part.mount.top_k or part.mount.min_score}
        self.catalog = Catalogs({prefix: part.folder.catalog for prefix, part in self._shown.items()}, parts)
        self._search = Search(partial(_read_many, parts), self.catalog, self.config)

    def in_stage(self, stage: str) -> MountedFolder:
        """The same folders as they are in a stage of the work."""
        return MountedFolder(self._parts, self._policy, self._confirm, stage)

    def home_only(self) -> MountedFolder:
        """The home alone, where nothing is shared; the paths of the mounts stay theirs."""
        return MountedFolder(self._parts, self._policy, self._confirm, home_only=True)

    @property
    def backends(self) -> Mapping[str, Backend]:
        """That of the home first, and those of the mounts where files may be deleted, by prefix."""
        every = {prefix: part for prefix, part in self._parts.items() if not prefix or {"read", "write"} <= part.mount.rights}
        return {prefix: part.folder.backend for prefix, part in every.items()}

    @property
    def parts(self) -> Mapping[str, MemoryFolder]:
        """Each folder that may be read, by prefix."""
        return {prefix: part.folder for prefix, part in self._shown.items()}

    @property
    def places(self) -> Sequence[Place]:
        """What an agent is told of the mounts."""
        told = (prefix for prefix, part in self._parts.items() if prefix and (prefix in self._shown or not part.mount.can_read))
        return [place_of(prefix, self._parts[prefix].mount) for prefix in told]

    @property
    def is_read_only(self) -> bool:
        """Whether nothing can be written anywhere."""
        return all(part.folder.is_read_only for part in self._parts.values())

    @property
    def scanned(self) -> bool:
        """Whether any of the folders has been looked at."""
        return any(folder.scanned for folder in self.parts.values())

    @property
    def files(self) -> Mapping[str, Known]:
        """Every memory file as of the last `refresh`, by path."""
        return self.catalog.files

    @property
    def outdated(self) -> AbstractSet[str]:
        """The files that today have expired or are superseded: agents are not shown them unasked."""
        return self._search.outdated

    @property
    def listed(self) -> Mapping[str, index.Listed]:
        """What the index says of each file that could be read, now or before it broke."""
        return Joined({prefix: folder.listed for prefix, folder in self.parts.items()}, self._parts)

    @property
    def skipped(self) -> Mapping[str, str]:
        """What the last `refresh` did not follow or could not read, with the reason."""
        return {prefix + path: reason for prefix, folder in self.parts.items() for path, reason in folder.skipped.items()}

    @property
    def hidden(self) -> Mapping[str, str]:
        """Files of one folder in whose place another is mounted, with the reason."""
        over = {(prefix, path): owner(prefix + path, self._parts) for prefix, folder in self.parts.items() for path in folder.files}
        return {own + path: f"the mount {by} hides this file of {called(own)}" for (own, path), by in over.items() if by != own}

    @property
    def index_problem(self) -> str | None:
        """Why people's lines of an index are not shown; None when all are."""
        return next((folder.index_problem for folder in self.parts.values() if folder.index_problem), None)

    @property
    def change_mark(self) -> int:
        """A number that grows with every change that is noticed or made."""
        marks = tuple(folder.change_mark for folder in self.parts.values())
        if marks != self._marks[-1]:
            self._marks.append(marks)
        return len(self._marks) - 1

    def changes_since(self, mark: int) -> list[str]:
        """The paths that changed after `change_mark` was `mark`, of each mount the latest first."""
        since = zip(self.parts.items(), self._marks[mark], strict=True)
        changed = [(prefix, prefix + path) for (prefix, folder), then in since for path in folder.changes_since(then)]
        return [path for prefix, path in changed if owner(path, self._parts) == prefix]

    async def refresh(self) -> frozenset[str]:
        """Look at all folders at once. Of one that can't be looked at, what was known stays, and `away` says so.

        Returns:
            The memory files that came, changed or went.

        Raises:
            Unavailable: none of them could be looked at.
        """
        answers = await asyncio.gather(*(folder.refresh() for folder in self.parts.values()), return_exceptions=True)
        changed, away = set[str](), list[str]()
        for prefix, answer in zip(self.parts, answers, strict=True):
            if isinstance(answer, MdmemoryError):
                away.append(f"{called(prefix)} could not be looked at: {answer}")
            elif isinstance(answer, BaseException):
                raise answer
            else:
                changed |= {path for path in (prefix + inner for inner in answer) if owner(path, self._parts) == prefix}
        self.away = "; ".join(away) or None
        if self.away:
            logger.warning("%s", self.away)
            if len(away) == len(self.parts):
                raise Unavailable(self.away)
        return frozenset(changed)

    async def read(self, path: str) -> bytes:
        """As `MemoryFolder.read`; `PermissionDenied` where a mount may not be read."""
        prefix = owner(check(path), self._parts)
        check_reading(path, self._parts[prefix].mount.rights, called(prefix))
        file = (await self.read_many([path]))[path]
        if isinstance(file, FileProblem):
            raise problem_error(path, file)
        return file.data

    async def read_many(self, paths: Sequence[str]) -> Mapping[str, File | FileProblem]:
        """Several files, in one round trip to each mount; else as `MemoryFolder.read_many`."""
        return await _read_many(self._parts, paths)

    async def scan(self) -> Scan:
        """As `MemoryFolder.scan`, of every mount that may be read."""
        return joined({prefix: await folder.scan() for prefix, folder in self.parts.items()}, self._parts)

    async def search(self, query: str, *, limit: int = 10, **filters: Unpack[Filters]) -> list[Match]:
        """Memory files of all mounts that share words with the query, in one ranking, as of the last `refresh`.

        Raises:
            InvalidArguments: a filter or a mount that there is not.
        """
        if not self._limits or limit <= 0:
            return await self._found(lambda search: search.files(query, limit, filters), filters)
        found = list[Match]()
        for most in (max(limit, WIDE), limit + EVERY * len(self._shown)):  # one mount's files may be all of the first
            matches = await self._found(partial(Search.files, query=query, limit=most, filters=filters), filters)
            found = within_limits(matches, self._limits, self._parts)
            if len(found) >= limit or len(matches) < most:
                break
        return found[:limit]

    async def search_passages(self, query: str, *, limit: int = 10, **filters: Unpack[Filters]) -> list[RankedPassage]:
        """Passages of the files that `search` finds, best first.

        Raises:
            InvalidArguments: a filter or a mount that there is not.
        """
        if not self._limits:
            return await self._found(lambda search: search.passages(query, limit, filters), filters)
        allowed = {match.path for match in await self.search(query, limit=WIDE, **filters)}
        return await self._found(lambda search: search.passages(query, limit, filters, allowed), filters)

    async def _found(self, ask: Callable[[Search], Awaitable[list[T]]], filters: Filters) -> list[T]:
        names = [mount_name(prefix) for prefix in self._shown]
        asked = filters.get("mount", ())
        for mount in (asked,) if isinstance(asked, str) else asked:
            if mount_name(mount) not in names:
                raise InvalidArguments(f"there is no mount {mount!r} to search; there are {', '.join(names)}")
        if not self._shown:
            return []
        catalogs = [folder.catalog for folder in self.parts.values()]
        return await despite_any_damage(catalogs, self.refresh, lambda: ask(self._search))

    async def prompt_index(self) -> index.Updated:
        """The index as an agent sees it: those of all mounts, each under its prefix, within the limits of one."""
        parts, everything = list[tuple[str, str, Any]](), dict[str, index.Listed]()
        for prefix, folder in self.parts.items():
            known, hidden = {**folder.listed, **folder.catalog.headers.unreadable}, folder.outdated
            own = (path for path in known if path not in hidden and owner(prefix + path, self._parts) == prefix)
            known = {path: known[path] for path in own}
            parts.append((prefix, (await folder.prompt_index(rest=False)).text, known))
            everything |= {prefix + path: listed for path, listed in known.items()}
        return index.render(index.together(parts), everything, self.limits)

    async def index_file(self) -> str | None:
        """The text of the home's MEMORY.md; None when there is none, or none that can be read."""
        return await self._parts[""].folder.index_file()

    async def apply(
        self, changes: Sequence[Change], author: str, reason: str, *, dry_run: bool = False, plain: bool = False
    ) -> Applied:
        """As `MemoryFolder.apply`, with one commit for each mount that the changes name, in their order.

        A move from one mount to another is a copy, and then a deletion.

        Raises:
            Conflict, InvalidPath, InvalidMemoryFile, NotThere, PermissionDenied, Unavailable, UnsafeFile: nothing was written.
            MdmemoryError: a later commit failed; says which files the earlier ones wrote.
        """
        confirm = nobody if dry_run else self._confirm
        steps = await self._router.steps(changes, author, self._policy, confirm, plain=plain)
        return await apply_steps(steps, author, reason, dry_run=dry_run, plain=plain)

    async def unlink(self, path: str, author: str) -> None:
        """As `MemoryFolder.unlink`, in the mount that the path names."""
        (step,) = await self._router.steps([Delete(path)], author, self._policy, self._confirm, plain=True)
        await step.part.folder.unlink(path.removeprefix(step.prefix), author)

    async def recover(self) -> None:
        """Finish commits that were cut short, as `MemoryFolder.recover` does."""
        await asyncio.gather(*(part.folder.recover() for part in self._parts.values()))

    async def close(self) -> None:
        """Close every folder."""
        closed = await asyncio.gather(*(part.folder.close() for part in self._parts.values()), return_exceptions=True)
        if errors := [answer for answer in closed if isinstance(answer, BaseException)]:
            raise errors[0]


async def _read_many(parts: Mapping[str, Part], paths: Sequence[str]) -> Mapping[str, File | FileProblem]:
    wanted: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        wanted[owner(check(path), parts)].append(path)
    answers = await asyncio.gather(*(_read(prefix, parts[prefix], inner) for prefix, inner in wanted.items()))
    return {path: file for answer in answers for path, file in answer.items()}


async def _read(prefix: str, part: Part, paths: Sequence[str]) -> Mapping[str, File | FileProblem]:
    try:
        for path in paths:
            check_reading(path, part.mount.rights, called(prefix))
        found = await part.folder.read_many([path.removeprefix(prefix) for path in paths])
    except (Unavailable, PermissionDenied) as error:
        return dict.fromkeys(paths, FileProblem("unavailable", str(error)))
    return {prefix + path: file for path, file in found.items()}
