"""What a person does with a proposal: accept, reject, or say it in words of their own. Floor 3."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from mdmemory.errors import BackendError, Conflict, InvalidArguments, InvalidMemoryFile, MdmemoryError, NotThere, PermissionDenied
from mdmemory.files.memory_file import encode, parse
from mdmemory.folder.any_folder import Folder
from mdmemory.folder.proposals.proposal import Proposal
from mdmemory.folder.proposals.queue import Place, Queue, find_proposal, places
from mdmemory.folder.settle import Applied
from mdmemory.folder.tombstones import rejected

logger = logging.getLogger("mdmemory")
NOTHING: Final = Applied(None, (), None)


async def accept(folder: Folder, proposal: Proposal | str, *, force: bool = False) -> Applied:
    """Do what a proposal says, with one commit, which one undo takes back.

    Args:
        proposal: or its id.
        force: also when it removes much, or something else speaks against it (`Proposal.guard`).

    Returns:
        What was written; nothing, when somebody else accepted it at the same time.

    Raises:
        NotThere: it was accepted or rejected before, or there is none with this id.
        Conflict: a source has changed since; nothing was written.
        PermissionDenied: the guard, the policy or the person asked said no; nothing was written.
        Unavailable, UnsafeFile
    """
    place, proposal = await _waiting(folder, proposal)
    if proposal.stale:
        raise _stale(proposal)
    if proposal.guard and not force:
        raise PermissionDenied(f"Proposal {proposal.id} needs an explicit yes: {proposal.guard}. Nothing was written.")
    what = f"extracted, proposal {proposal.id}" if proposal.sessions else f"{proposal.kind} {proposal.id}"
    told = f"{what}{', edited' * proposal.is_edited}: {proposal.reason}"
    try:
        applied = await folder.apply(proposal.changes, proposal.author, " ".join(told.split())[:500])
    except MdmemoryError as error:
        if not isinstance(error, (Conflict, NotThere)):
            raise
        await folder.refresh()
        if not place.is_in_place(proposal):
            raise
        applied = NOTHING
    try:
        await place.change(lambda queue: queue.accepted(proposal))
    except (BackendError, InvalidArguments) as error:  # the files are as it wants them, so it counts as accepted
        logger.warning("it could not be noted that proposal %s was accepted: %s", proposal.id, error)
    return applied


async def reject(folder: Folder, proposal: Proposal | str) -> None:
    """Leave everything as it is; the same is not proposed again until one of the sources changes.

    What was drawn from a conversation is never drawn again from the same entries.

    Raises:
        NotThere: it was accepted or rejected before, or there is none with this id.
        Conflict: it was edited at the same time; nothing was changed.
        PermissionDenied, Unavailable, UnsafeFile
    """
    place, proposal = await _waiting(folder, proposal)
    marks = [rejected(proposal.id, datetime.now(UTC), proposal.entries)] if proposal.entries else []

    def rejected_in(queue: Queue) -> Queue:
        queue.require(proposal)
        return queue.without(proposal, *proposal.when_rejected)

    await place.change(rejected_in, marks)


async def edit(folder: Folder, proposal: Proposal | str, texts: Mapping[str, str]) -> Proposal:
    """Put a person's own words in place of what a proposal makes; it still waits to be accepted.

    Args:
        texts: by path, the whole text of files that the proposal makes or changes.

    Returns:
        The proposal as it is now, under the same id, with what it loses counted anew.

    Raises:
        NotThere: it was accepted or rejected before, or there is none with this id.
        InvalidArguments: a path that the proposal does not write.
        InvalidMemoryFile: a text that could not be saved when it is accepted; nothing was changed.
        Conflict: a source has changed since, or it was edited at the same time; nothing was changed.
        PermissionDenied, Unavailable, UnsafeFile
    """
    place, proposal = await _waiting(folder, proposal)
    if proposal.stale:
        raise _stale(proposal)
    if unknown := [path for path in texts if path not in proposal.results]:
        raise InvalidArguments(f"Proposal {proposal.id} does not write {unknown[0]}, but {', '.join(proposal.results)}.")
    for path, text in texts.items():
        if not text.strip():
            raise InvalidMemoryFile(path, "there is no text in it; reject the proposal if it is not wanted")
        parse(path, encode(path, text))
    new = {path: (before, texts.get(path, after)) for path, (before, after) in proposal.texts.items()}
    edited = replace(proposal, texts=new, is_edited=True, run="")  # who has edited it has looked at it
    await folder.apply(edited.changes, edited.author, "", dry_run=True)

    def edited_in(queue: Queue) -> Queue:
        queue.require(proposal)
        return queue.with_edited(edited)

    await place.change(edited_in)
    return edited


async def _waiting(folder: Folder, proposal: Proposal | str) -> tuple[Place, Proposal]:
    """A proposal as it waits now, and where."""
    found = await find_proposal(folder, proposal if isinstance(proposal, str) else proposal.id)
    if isinstance(proposal, Proposal) and proposal.texts != found.texts:
        raise Conflict(found.title, None, reason=f"Proposal {found.id} was edited meanwhile. Look at it again.")
    path = next(iter(found.texts))
    return max((each for each in places(folder) if path.startswith(each.prefix)), key=lambda each: len(each.prefix)), found


def _stale(proposal: Proposal) -> Conflict:
    told = f"Proposal {proposal.id} is out of date: {proposal.stale}. Nothing was changed: {proposal.way_on}."
    return Conflict(next(iter(proposal.texts)), None, reason=told)
