"""The queue: proposals wait beside the history of the folder whose files they change, until a person has decided. Floor 3.

One file holds them, `.mdmemory/proposals`, a line each: on every backend it is one read. It is replaced on the condition that it is
as it was read, so that no decision undoes another that was made at the same time.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from mdmemory.backends.protocol import ABSENT, MAX_FILE_BYTES, FileProblem, Op, Put, problem_error
from mdmemory.errors import Conflict, InvalidArguments, NotThere, PermissionDenied, Unavailable
from mdmemory.files.history import PROPOSALS
from mdmemory.folder.any_folder import Folder, parts_of
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.proposals.proposal import MAX_WAITING, Proposal, Settled, line_of, read_lines

MAX_SETTLED: Final = 2_000
MAX_BYTES: Final = MAX_FILE_BYTES - 500_000
TRIES: Final = 20


@dataclass(frozen=True, slots=True)
class Queue:
    """What waits in one folder, with whole paths, and what is settled."""

    waiting: tuple[Proposal, ...] = ()
    settled: tuple[Settled, ...] = ()

    def without(self, proposal: Proposal, *settled: Settled) -> Queue:
        """The same with a proposal out of the way, and how that was settled; what others made of it meanwhile stays."""
        waiting = tuple(each for each in self.waiting if (each.id, each.texts) != (proposal.id, proposal.texts))
        return Queue(waiting, (*self.settled, *settled))

    def accepted(self, proposal: Proposal) -> Queue:
        """The same once a proposal was accepted; what goes on from it does so from there."""
        rest = self.without(proposal, *proposal.when_accepted)
        return replace(rest, waiting=tuple(each.after(proposal) for each in rest.waiting))

    def require(self, proposal: Proposal) -> None:
        """See that a proposal waits as it was read.

        Raises:
            NotThere: it no longer waits.
            Conflict: it says something else by now.
        """
        now = next((each for each in self.waiting if each.id == proposal.id), None)
        if now is None:
            raise NotThere(f"Proposal {proposal.id} was accepted, rejected or added to meanwhile.")
        if now.texts != proposal.texts:
            raise Conflict(proposal.title, None, reason=f"Proposal {proposal.id} was edited meanwhile. Look at it again.")

    def with_edited(self, proposal: Proposal) -> Queue:
        """The same with a proposal as it is now."""
        return Queue(tuple(proposal if each.id == proposal.id else each for each in self.waiting), self.settled)

    def etags(self, *statuses: str) -> list[frozenset[str]]:
        """The files of everything that was settled so."""
        return [each.etags for each in self.settled if each.status in statuses]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a queue is kept: a folder, and the prefix under which it is mounted."""

    prefix: str
    part: MemoryFolder

    async def read(self) -> tuple[Queue, str | None]:
        """The queue, and the etag of its file.

        Raises:
            Unavailable, UnsafeFile: it can't be read.
        """
        found = (await self.part.backend.read({PROPOSALS: None}))[PROPOSALS]
        if isinstance(found, FileProblem):
            if found.kind == "absent":
                return Queue(), None
            raise problem_error("the list of proposals", found)
        waiting, settled = dict[str, Proposal](), list[Settled]()
        for entry in read_lines(found.data, self.prefix):
            if isinstance(entry, Settled):
                settled.append(entry)
            else:
                waiting[entry.id] = self._judged(entry)
        return Queue(tuple(waiting.values()), tuple(settled)), found.etag

    async def change(self, change: Callable[[Queue], Queue], before: Sequence[Op] = ()) -> None:
        """Change the queue as it is now.

        Args:
            before: what else the commit does, and does first.

        Raises:
            PermissionDenied: the folder may only be read.
            InvalidArguments: too much waits already.
            Unavailable, UnsafeFile
        """
        if self.part.is_read_only:
            raise PermissionDenied("This folder can only be read here, so nothing can be proposed or decided.")
        for _ in range(TRIES):
            now, etag = await self.read()
            after = change(now)
            entries: list[Settled | Proposal] = [*after.settled[-MAX_SETTLED:], *after.waiting]
            data = b"".join(line_of(entry, self.prefix) for entry in entries)
            if len(after.waiting) > max(MAX_WAITING, len(now.waiting)) or len(data) > MAX_BYTES:
                raise full(now)
            try:
                await self.part.backend.commit(uuid.uuid4().hex, [*before, Put(PROPOSALS, data, etag or ABSENT)])
            except Conflict:
                continue
            return
        raise Unavailable("The list of proposals changes all the time. Try again.")

    def is_in_place(self, proposal: Proposal) -> bool:
        """Whether the files are as a proposal wants them: it was accepted, and whoever did that could not note it."""
        return all(self._etag(path) == proposal.results.get(path) for path in proposal.texts)

    def _judged(self, proposal: Proposal) -> Proposal:
        """The proposal by the folder's settings, and its files as of the last look."""
        faults = (self._fault(path, proposal.sources.get(path)) for path in proposal.texts)
        config = self.part.config
        return replace(proposal, stale=next(filter(None, faults), ""), limit=config.max_loss, languages=config.languages)

    def _fault(self, path: str, before: str | None) -> str:
        now = self._etag(path)
        if now == before:
            return ""
        return f"{path} is there by now" if before is None else f"{path} is gone" if now is None else f"{path} has changed since"

    def _etag(self, path: str) -> str | None:
        """The etag of a file as of the last look; "" where it has grown so large that it is not known, None when it is absent."""
        known = self.part.files.get(path.removeprefix(self.prefix))
        return None if known is None else known.etag or ""


def full(queue: Queue) -> InvalidArguments:
    """The error that says that too much waits."""
    number = len(queue.waiting)
    if number == 0:
        return InvalidArguments("This is too large to wait for a person. Nothing was proposed.")
    waiting = "1 proposal waits" if number == 1 else f"{number} proposals wait"
    return InvalidArguments(f"{waiting} already. Accept or reject some first.")


def places(folder: Folder) -> list[Place]:
    """Where proposals may wait: the folders in which files may be changed."""
    writable = {"", *(place.prefix for place in folder.places if place.can_write)}
    return [Place(prefix, part) for prefix, part in parts_of(folder).items() if prefix in writable]


async def list_proposals(folder: Folder) -> list[Proposal]:
    """Everything that waits, the oldest first; what can't be accepted any longer says why in `stale`.

    Raises:
        Unavailable: the folder can't be looked at.
    """
    await folder.refresh()
    found = [each for place in places(folder) for each in (await place.read())[0].waiting if not place.is_in_place(each)]
    return sorted(found, key=lambda proposal: proposal.at)


async def find_proposal(folder: Folder, id: str) -> Proposal:
    """The proposal with this id, of which the first characters are enough.

    Raises:
        NotThere: it does not wait, or no longer.
        InvalidArguments: several begin so.
    """
    found = [each for each in await list_proposals(folder) if id and each.id.startswith(id)]
    if len(found) > 1:
        raise InvalidArguments(f"several proposals begin with {id}: {', '.join(each.id for each in found)}")
    if not found:
        raise NotThere(f"No proposal {id} waits, or no longer. `mdmemory review` lists those that do.")
    return found[0]
