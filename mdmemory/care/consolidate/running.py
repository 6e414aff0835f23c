"""One run: clusters of similar files, what a model makes of each, and what of it waits or is done. Floor 4."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from mdmemory.care.consolidate.clusters import Cluster, Ground, survey
from mdmemory.care.consolidate.drafting import draft
from mdmemory.care.consolidate.reply import SCHEMA, Suggestion, read_suggestions
from mdmemory.care.progress import Progress, unseen
from mdmemory.errors import Conflict, InvalidReply, ModelUnavailable, NotThere, PermissionDenied
from mdmemory.files.memory_file import parse
from mdmemory.folder.any_folder import Folder
from mdmemory.folder.proposals.proposal import Proposal, Settled
from mdmemory.folder.proposals.queue import Place, Queue, places
from mdmemory.folder.proposals.reviewing import accept
from mdmemory.models import Model, Reply
from mdmemory.render import render

logger = logging.getLogger("mdmemory")
MAX_CLUSTERS: Final = 20
MAX_DROPPED, MAX_DROPPED_SHARE, MOST_DROPPED = 5, 0.1, 20
"""So many files may always go in a run, beyond that this share of all, but never more than the last."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a run found and did.

    Args:
        clusters: files that say much the same.
        proposals: what waits for a person now because of this run.
        applied: what was done at once, as the settings allow; each has an event in the history.
        problems: what a model proposed that can't be done, and replies that were none.
    """

    clusters: tuple[Cluster, ...]
    proposals: tuple[Proposal, ...] = ()
    applied: tuple[Proposal, ...] = ()
    problems: tuple[str, ...] = ()


async def consolidate(
    folder: Folder,
    model: Model | None = None,
    *,
    limit: int = MAX_CLUSTERS,
    dry_run: bool = False,
    looked: Progress = unseen,
    asked: Progress = unseen,
) -> Report:
    """Have a model propose what becomes of files that say much the same; what it proposes waits for a person.

    What comes of a cluster is kept before the next one is looked at.

    Args:
        model: None only lists the clusters.
        limit: how many clusters to take.
        dry_run: only list what would be shown to the model.
        looked, asked: are told how many files were read, and how many clusters the model has seen.

    Raises:
        PermissionDenied: nothing may be changed here.
        ModelUnavailable, InvalidArguments, Unavailable: what was proposed until then waits.
    """
    await folder.refresh()
    where = [place for place in places(folder) if not place.part.is_read_only]
    if not where:
        raise PermissionDenied("Nothing can be consolidated in a folder that may only be read.")
    is_asking = model is not None and not dry_run
    queues = {place.prefix: await _settled(place, keep=is_asking) for place in where}
    ground = await survey(folder, queues, limit, looked)
    if model is None or not is_asking:
        return Report(tuple(ground.clusters))
    run = _Run(folder, model, ground)
    asked(0, len(ground.clusters))
    for number, cluster in enumerate(ground.clusters, 1):
        await run.take(cluster)
        asked(number, len(ground.clusters))
    return Report(tuple(ground.clusters), tuple(run.proposals), tuple(run.applied), tuple(run.problems))


async def _settled(place: Place, *, keep: bool) -> Queue:
    """A queue without proposals that are out of date, and with those noted as accepted whose files are in place."""
    queue, _ = await place.read()

    def tidied(queue: Queue) -> Queue:
        for each in queue.waiting:
            if place.is_in_place(each):
                queue = queue.without(each, *each.when_accepted)
            elif each.stale and not each.sessions:  # what was drawn from a conversation is drawn only once
                sources = set(each.sources.values())  # which may be asked about again, also where another file is in the way
                asked_anew = tuple(one for one in queue.settled if one.status != "asked" or not one.etags & sources)
                queue = Queue(queue.without(each).waiting, asked_anew)
        there = {known.etag for known in place.part.files.values()}
        return replace(queue, settled=tuple(each for each in queue.settled if not each.etags.isdisjoint(there)))

    if keep and tidied(queue) != queue:
        await place.change(tidied)
    return tidied(queue)


@dataclass(slots=True)
class _Run:
    folder: Folder
    model: Model
    ground: Ground
    proposals: list[Proposal] = field(default_factory=list)
    applied: list[Proposal] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    _gone: list[tuple[int, int]] = field(default_factory=list)
    _dropped: int = 0

    async def take(self, cluster: Cluster) -> None:
        """Ask about a cluster, and keep what comes of it."""
        try:
            suggestions = read_suggestions(await self._ask(cluster))
        except InvalidReply as error:
            self.problems.append(f"{', '.join(cluster.texts)}: {error}")
            return
        place = cluster.place
        queue, _ = await place.read()
        made = list(self._drafts(cluster, suggestions, queue))
        asked = Settled(uuid.uuid4().hex[:8], "asked", cluster.etags)
        await place.change(lambda queue: Queue((*queue.waiting, *_new_in(queue, made)), (*queue.settled, asked)))
        for proposal in made:
            if self.folder.config.consolidate == "apply" and proposal.is_lossless:
                await self._apply(proposal)
            else:
                self.proposals.append(proposal)

    async def _apply(self, proposal: Proposal) -> None:
        try:
            await accept(self.folder, proposal)
        except (Conflict, NotThere, PermissionDenied) as error:
            logger.info("proposal %s waits: %s", proposal.id, error)
            self.proposals.append(proposal)
        else:
            self.applied.append(proposal)

    async def _ask(self, cluster: Cluster) -> Reply:
        try:
            async with asyncio.timeout(self.folder.config.extract_timeout_s):
                return await self.model([{"role": "user", "content": prompt_of(self.folder, cluster)}], schema=SCHEMA)
        except TimeoutError as error:
            raise ModelUnavailable("the model did not answer in time") from error

    def _drafts(self, cluster: Cluster, suggestions: Sequence[Suggestion], queue: Queue) -> list[Proposal]:
        found, used = list[Proposal](), set[str]()
        for suggestion in suggestions:
            try:
                proposal = draft(self.folder, cluster, suggestion)
            except InvalidReply as error:
                self.problems.append(str(error))
                continue
            etags = frozenset(proposal.sources.values())
            if any(etags <= rejected for rejected in queue.etags("rejected")):
                self.problems.append(f"{proposal.title}: it was rejected before")
            elif used & proposal.texts.keys():
                self.problems.append(f"{proposal.title}: one of its files is in another proposal")
            else:
                used |= proposal.texts.keys()
                found.append(self._counted(proposal))
        return found

    def _counted(self, proposal: Proposal) -> Proposal:
        """The proposal, which needs an explicit yes when this run removes too much of the folder with it."""
        ground = self.ground
        self._gone.append(proposal.losses.gone)
        stays = set() if proposal.kind == "retire" else proposal.results.keys()
        self._dropped += len(proposal.sources.keys() - stays)
        shares = (sum(gone) / whole for gone, whole in zip(zip(*self._gone, strict=True), (ground.size, ground.lines), strict=True))
        if self._dropped > max(MAX_DROPPED, min(MAX_DROPPED_SHARE * ground.files, MOST_DROPPED)):
            return replace(proposal, run=f"with it this run drops {self._dropped} of {ground.files} files")
        if len(self._gone) > 1 and (share := max(shares)) > self.folder.config.max_loss / 2:
            return replace(proposal, run=f"with it this run removes {share:.0%} of all text")
        return proposal


def _new_in(queue: Queue, made: Sequence[Proposal]) -> list[Proposal]:
    """Those that don't wait already: another run may have made them, and a person edited them."""
    ids = {proposal.id for proposal in queue.waiting}
    return [each for each in made if each.id not in ids]


def prompt_of(folder: Folder, cluster: Cluster) -> str:
    """What a model is asked about a cluster."""
    files = []
    for path, text in cluster.texts.items():
        file = parse(path, text.encode())
        day = cluster.place.part.files[path.removeprefix(cluster.place.prefix)].day
        about = {"type": file.header.type, "name": file.header.name, "description": file.header.description}
        files.append({"path": path, **about, "day": day.isoformat(), "text": file.body.strip()})
    today = datetime.now(UTC).date().isoformat()
    return render("consolidate", folder.config.prompts_dir, today=today, files=files)
