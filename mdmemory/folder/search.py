"""Search in a folder: filters, then recall, then what a user injected. Floor 3."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import date
from typing import TypeVar

from mdmemory.backends.protocol import File, FileProblem
from mdmemory.config import Candidate, Config
from mdmemory.errors import Unavailable
from mdmemory.files.memory_file import Header
from mdmemory.folder.catalog import Catalog
from mdmemory.folder.catalogs import Catalogs
from mdmemory.folder.known import Known
from mdmemory.recall.cache import CACHE_ERRORS
from mdmemory.recall.filters import Filed, Filters, narrow, outdated
from mdmemory.recall.ranking import Match, Ranked, RankedPassage
from mdmemory.recall.remote import RemoteIndex
from mdmemory.recall.similarity import Vectors
from mdmemory.render import moment

logger = logging.getLogger("mdmemory")
SCORED = 50  # files that an injected scorer sees
NEAREST = 100  # files whose vectors are nearest
Answer = TypeVar("Answer")
Read = Callable[[Sequence[str]], Awaitable[Mapping[str, File | FileProblem]]]
"""Reads files in one round trip."""


class Search:
    """Finds files and passages among what the catalog knows."""

    def __init__(self, read: Read, catalog: Catalog | Catalogs, config: Config) -> None:
        self._read, self._catalog, self._config = read, catalog, config
        self._vectors = Vectors(config.embed) if config.embed else None
        self._current: tuple[int, date, AbstractSet[str], AbstractSet[str] | None] | None = None

    async def files(self, query: str, limit: int, filters: Filters) -> list[Match]:
        """The files that answer, best first."""
        allowed = self._allowed(filters)
        scorer, half_life = self._config.scorer, self._config.half_life_days
        most = max(limit, SCORED) if scorer and limit > 0 else limit
        similar = await self._similar(query, allowed)
        recall = await self._catalog.for_query(query, most, allowed, similar or ())
        ranked = recall.rank(query, limit=most, now_ns=time.time_ns(), half_life_days=half_life, allowed=allowed, similar=similar)
        ranked = [item for item in ranked if item.path in self._catalog.files]  # others may know of more, through the cache
        if scorer and ranked:
            scores = await _given(scorer(query, await self._candidates(ranked)), "scorer")
            if scores is not None and len(scores) == len(ranked):
                given = [
                    replace(item, score=float(score), explain={**item.explain, "scorer": round(float(score), 4)})
                    for item, score in zip(ranked, scores, strict=True)
                ]
                ranked = sorted(given, key=lambda item: -item.score)
        return [self._match(item) for item in ranked[: max(0, limit)]]

    async def passages(self, query: str, limit: int, filters: Filters, only: AbstractSet[str] | None = None) -> list[RankedPassage]:
        """The passages that answer, best first.

        Args:
            only: of these files; None for all.
        """
        allowed = self._allowed(filters)
        if only is not None:
            allowed = only if allowed is None else allowed & only
        similar = await self._similar(query, allowed)
        recall = await self._catalog.for_query(query, limit, allowed, similar or ())
        found = recall.rank_passages(query, limit=limit, allowed=allowed, similar=similar)
        return [passage for passage in found if passage.path in self._catalog.files]

    def _allowed(self, filters: Filters) -> AbstractSet[str] | None:
        """The paths that pass; None for all."""
        if filters:
            return narrow(filed(self._catalog.files, self._catalog.mount_of), filters)
        return self._today()[1]

    @property
    def outdated(self) -> AbstractSet[str]:
        """The paths of the files that today have expired or are superseded."""
        return self._today()[0]

    def _today(self) -> tuple[AbstractSet[str], AbstractSet[str] | None]:
        """What is outdated today, and the other paths, None for all."""
        catalog, today = self._catalog, date.today()
        if self._current is None or self._current[:2] != (catalog.generation, today):
            hidden = outdated(filed(catalog.files, catalog.mount_of)) if catalog.is_bounded else set()
            self._current = catalog.generation, today, hidden, catalog.files.keys() - hidden if hidden else None
        return self._current[2:]

    async def _similar(self, query: str, allowed: AbstractSet[str] | None) -> dict[str, list[float]] | None:
        """The cosine of the passages of the files that are nearest in meaning; None without `embed`, or when it fails."""
        vectors = self._vectors
        if vectors is None or not query.strip():
            return None
        keys = {path: known.etag or f"{path}:{known.mtime_ns}:{known.size}" for path, known in self._catalog.files.items()}
        missing = vectors.missing(keys)
        if missing:
            texts = await self._passage_texts(missing)
            await _given(vectors.add({keys[path]: passages for path, passages in texts.items()}), "embed")
        wanted = keys if allowed is None else {path: keys[path] for path in allowed}
        return await _given(vectors.similar(query, wanted, NEAREST), "embed")

    async def _passage_texts(self, paths: Sequence[str]) -> dict[str, list[str]]:
        found = await self._read(paths)
        recall = await self._catalog.for_query("", 0, None, paths)
        texts = {}
        for path, file in found.items():
            if isinstance(file, File):
                lines = file.data.decode("utf-8", "replace").split("\n")
                texts[path] = ["\n".join(lines[first - 1 : last]) for first, last in recall.lines(path)]
        return texts

    async def _candidates(self, ranked: Sequence[Ranked]) -> list[Candidate]:
        """Of each file, its name, its description and its best passage."""
        found = await self._read([item.path for item in ranked])
        candidates = []
        for item in ranked:
            file, header = found[item.path], header_of(item.path, self._catalog.files[item.path])
            lines = file.data.decode("utf-8", "replace").split("\n") if isinstance(file, File) else []
            span = item.explain.get("lines")
            first, last = span if isinstance(span, tuple) else (1, len(lines))
            text = "\n".join((header.name, header.description, *lines[first - 1 : last]))
            candidates.append(Candidate(item.path, text, moment(self._catalog.files[item.path].mtime_ns), item.score))
        return candidates

    def _match(self, item: Ranked) -> Match:
        known = self._catalog.files[item.path]
        header = header_of(item.path, known)
        return Match(item.path, header.name, header.description, header.type, item.score, moment(known.mtime_ns), item.explain)


async def despite_damage(
    catalog: Catalog, refresh: Callable[[], Awaitable[object]], search: Callable[[], Awaitable[Answer]]
) -> Answer:
    """What a search finds; a damaged cache is made anew, and one that can't be written is then in memory."""
    for _ in range(0 if catalog.is_remote else 2):
        try:
            if not catalog.is_lost:
                return await search()
        except CACHE_ERRORS as error:
            catalog.lose(error)
        await refresh()
    found = await search()
    if lose_what_was_emptied([catalog]):
        await refresh()
        return await search()
    return found


async def despite_any_damage(
    catalogs: Sequence[Catalog], refresh: Callable[[], Awaitable[object]], search: Callable[[], Awaitable[Answer]]
) -> Answer:
    """What a search of several folders finds; where a cache is damaged, whosever it is, all is read anew."""
    try:
        found = await search()
        if not lose_what_was_emptied(catalogs):
            return found
    except CACHE_ERRORS as error:
        for catalog in catalogs:
            catalog.lose(error)
    await refresh()
    return await search()


def lose_what_was_emptied(catalogs: Iterable[Catalog]) -> bool:
    """Whether the words of a folder are not kept by its backend any more; the next look then reads its files again."""
    lost = [each for each in catalogs if isinstance(each.recall, RemoteIndex) and each.recall.is_emptied(len(each.files))]
    for catalog in lost:
        catalog.lose(Unavailable("what its backend kept of the files is gone"))
    return bool(lost)


def filed(files: Mapping[str, Known], mount_of: Callable[[str], str]) -> list[Filed]:
    """Every file as filters see it."""
    return [Filed(path, header_of(path, known), known.day, mount_of(path)) for path, known in files.items()]


def header_of(path: str, known: Known) -> Header:
    """A file's header; of a broken one the last good, or what is wrong with it."""
    return known.header or known.last_good or Header(path, str(known.problem))


async def _given(answer: Awaitable[Answer], what: str) -> Answer | None:
    """What an injected callable answers; None when it fails, for words alone find something too."""
    try:
        return await answer
    except Exception as error:  # any callable can be injected, and none of its errors may break a search
        logger.warning("the injected %s failed, recall by words is used: %r", what, error)
        return None
