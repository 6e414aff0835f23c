"""What was drawn from conversations and waits for a person: seen as if it were saved, and added to. Floor 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from mdmemory.errors import Conflict, InvalidMemoryFile
from mdmemory.folder.any_folder import Folder, parts_of
from mdmemory.folder.proposals.proposal import MAX_WAITING, Proposal, Texts, extractor_of, id_of, kind_of, line_of
from mdmemory.folder.proposals.queue import MAX_BYTES, Place, Queue, full
from mdmemory.folder.settle import Settled
from mdmemory.recall.tokens import tokens

MAX_REASON_CHARS: Final = 500


@dataclass(frozen=True, slots=True)
class Waiting:
    """What waits in the home; nothing where what is drawn is saved at once.

    Args:
        proposals: those from conversations that can be accepted.
        entries: of journals, from which proposals were drawn; those that are out of date included.
    """

    proposals: tuple[Proposal, ...] = ()
    entries: frozenset[str] = frozenset()

    @property
    def files(self) -> Mapping[str, bytes]:
        """What files are to hold once all of it is accepted."""
        return {path: text.encode() for each in self.proposals for path, (_, text) in each.texts.items() if text is not None}

    def nearest(self, text: str, limit: int) -> list[str]:
        """The files that are not there yet and share most words with a text."""
        words = set(tokens(text))
        new = {path for each in self.proposals for path, (before, _) in each.texts.items() if before is None}
        shared = {path: len(words.intersection(tokens(data.decode()))) for path, data in self.files.items() if path in new}
        return sorted((path for path in shared if shared[path]), key=lambda path: -shared[path])[:limit]


NOTHING: Final = Waiting()


async def read_waiting(folder: Folder, room: int = 0) -> Waiting:
    """What waits, as of the last look at the files.

    Args:
        room: for how many more proposals there must be room.

    Raises:
        InvalidArguments: there is no such room; people must decide first.
        Unavailable, UnsafeFile: it can't be read.
    """
    if folder.config.extract != "propose":
        return NOTHING
    queue, _ = await _place(folder).read()
    if len(queue.waiting) + room > MAX_WAITING:
        raise full(queue)
    return Waiting(tuple(_open(queue)), frozenset(entry for each in queue.waiting for entry in each.entries))


def _place(folder: Folder) -> Place:
    return Place("", parts_of(folder)[""])


def _open(queue: Queue) -> list[Proposal]:
    return [each for each in queue.waiting if each.sessions and not each.stale]


class Proposing:
    """What is to wait from now on: what touches the same files is one proposal, with what waited before, under a new id.

    So a person who says yes or no to an id has seen all that it says.

    Args:
        folder: the home.
        session: the conversation from which it is drawn.
        known: what waits, as it was read.
    """

    def __init__(self, folder: Folder, session: str, known: Waiting) -> None:
        self._folder, self._session, self._known = folder, session, known
        self._all = list(known.proposals)

    @property
    def made(self) -> list[Proposal]:
        """The proposals that are new or read otherwise now."""
        return [each for each in self._all if each not in self._known.proposals]

    async def add(self, files: Mapping[str, bytes], before: Mapping[str, bytes], entries: Sequence[str], reason: str) -> None:
        """Add what files are to hold.

        Args:
            before: what they hold now, where they are there and nothing waits for them.
            entries: that say it.

        Raises:
            InvalidPath, InvalidMemoryFile, PermissionDenied: it could not be accepted, so it is not added.
            Conflict: a file has just changed.
        """
        joined = [each for each in self._all if each.texts.keys() & files.keys()]
        texts = {path: pair for each in joined for path, pair in each.texts.items()}
        texts |= {path: (_before(path, texts, before), data.decode()) for path, data in files.items()}
        reasons = [*(each.reason for each in joined), " ".join(reason.encode(errors="replace").decode().split())]
        sessions = [name for each in joined for name in each.sessions if name != self._session]
        proposal = Proposal(
            id_of(kind_of(texts), texts),
            kind_of(texts),
            "; ".join(dict.fromkeys(reasons))[:MAX_REASON_CHARS],
            texts,
            at=min((each.at for each in joined), default=datetime.now(UTC)),
            is_edited=any(each.is_edited for each in joined),
            sessions=tuple(dict.fromkeys([*sessions, self._session])),
            entries=tuple(dict.fromkeys([*(entry for each in joined for entry in each.entries), *entries])),
        )
        if len(line_of(proposal, "")) > MAX_BYTES // 2:
            raise InvalidMemoryFile(next(iter(files)), "with it, the file is too large to wait for a person; save it by hand")
        await self._folder.apply(proposal.changes, extractor_of(self._session), "", dry_run=True)
        self._all = [*(each for each in self._all if each not in joined), proposal]

    def id_of(self, path: str) -> str:
        """The id of the proposal that touches a file; "" for none."""
        return next((each.id for each in self.made if path in each.texts), "")

    @property
    def settled(self) -> list[Settled]:
        """What accepting them would change."""
        texts = {path: pair for each in self.made for path, pair in each.texts.items()}
        return [Settled(path, _bytes(before), _bytes(after)) for path, (before, after) in texts.items()]

    async def keep(self) -> None:
        """Have all of it wait, with one commit.

        Raises:
            Conflict: what waited was accepted, rejected or edited at the same time; nothing was added.
            InvalidArguments: too much waits already.
            PermissionDenied, Unavailable, UnsafeFile
        """
        if self.made:
            await _place(self._folder).change(self._added)

    def _added(self, queue: Queue) -> Queue:
        paths = {path for each in self.made for path in each.texts}
        now, known = (
            {each.id: each.texts for each in proposals if each.texts.keys() & paths}
            for proposals in (_open(queue), self._known.proposals)
        )
        if now != known:
            told = "What waits for a person was decided or changed at this moment. Nothing was added to it."
            raise Conflict(min(paths), None, reason=told)
        gone = {*known, *(each.id for each in self.made)}
        gone |= {each.id for each in queue.waiting if each.sessions and _place(self._folder).is_in_place(each)}
        return Queue((*(each for each in queue.waiting if each.id not in gone), *self.made), queue.settled)


def _before(path: str, texts: Texts, before: Mapping[str, bytes]) -> str | None:
    if path in texts:
        return texts[path][0]
    return before[path].decode() if path in before else None


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode()
