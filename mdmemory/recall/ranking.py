"""Lexical recall: which files and passages share the query's rare words, and why. Floor 2.

Order: the file's BM25, its best passage's and the sum of its three best, each divided by its maximum, times time decay. Score,
0 to 1: the share of the query's inverse document frequency that the file covers, times decay. Without a shared term nothing
returns. Updated file by file; unchanged files cost nothing.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection as Paths
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, datetime

from mdmemory.recall.cache import Cache
from mdmemory.recall.collection import Collection
from mdmemory.recall.entries import Entry
from mdmemory.recall.scoring import Asked, Scores, Similar, score
from mdmemory.recall.source import Source
from mdmemory.recall.tokens import ENGLISH

_DAY_NS = 86_400 * 10**9


@dataclass(frozen=True, slots=True)
class Match:
    """A memory file that answers a query.

    Args:
        score: 0 to 1, the share of the query that the file covers, less with age.
        modified: UTC.
        explain: the factors, as in `Ranked`.
    """

    path: str
    name: str
    description: str
    type: str | None
    score: float
    modified: datetime
    explain: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A path with its score and the factors behind it.

    Args:
        explain: `coverage` and `decay`, which make the score; `file`, `passage`, `passages`, and with `embed` also `similar`,
            each 0 to 1, which make the order; `terms`, the shared words with their weight, the rarest first; `lines` of the best
            passage; `speaker` and `date` where the query asked for them.
    """

    path: str
    score: float
    explain: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A passage: some lines of a file.

    Args:
        line, end_line: counted from 1, both included.
        score: 0 to 1, compared with the best passage of the best file.
    """

    path: str
    line: int
    end_line: int
    score: float


class Ranking:
    """Finds files, and passages of them."""

    def __init__(self, collection: Source) -> None:
        self._collection = collection

    def lines(self, path: str) -> list[tuple[int, int]]:
        """The first and last line of each passage of a file."""
        (entry,) = self._collection.entries([path])
        return list(zip(entry.passages.lines, entry.passages.end_lines, strict=True))

    def rank(
        self,
        query: str,
        *,
        limit: int,
        now_ns: int,
        half_life_days: float,
        allowed: AbstractSet[str] | None = None,
        similar: Similar | None = None,
    ) -> list[Ranked]:
        """The files that share a term with the query, best first.

        Args:
            allowed: only these paths; None for all.
            similar: files that are near in meaning, with the cosine of each passage; they need not share a term.
        """
        asked, scores = self._scored(query, limit, allowed, similar)
        order = []
        for place, path in enumerate(scores.paths):
            decay = _decay(scores.entries[place].mtime_ns, now_ns, half_life_days)
            order.append((-scores.fused[place] * decay, path, place, decay))
        return [self._explained(asked, scores, place, decay) for _, _, place, decay in heapq.nsmallest(max(0, limit), order)]

    def rank_passages(
        self, query: str, *, limit: int, allowed: AbstractSet[str] | None = None, similar: Similar | None = None
    ) -> list[RankedPassage]:
        """The passages that share a term with the query, best first: each one's own score and that of its file count alike."""
        _, scores = self._scored(query, limit, allowed, similar)
        best = max(scores.fused, default=0.0) or 1.0
        found = []
        for path, entry, fused, (start, end) in zip(scores.paths, scores.entries, scores.fused, scores.spans, strict=True):
            lines = zip(entry.passages.lines, entry.passages.end_lines, scores.passages[start:end], strict=True)
            found += [RankedPassage(path, first, last, (own + fused / best) / 2) for first, last, own in lines if own > 0]
        return heapq.nsmallest(max(0, limit), found, key=lambda item: (-item.score, item.path, item.line))

    def _scored(self, query: str, limit: int, allowed: AbstractSet[str] | None, similar: Similar | None) -> tuple[Asked, Scores]:
        asked, collection = Asked(query, self._collection), self._collection
        paths = collection.find(asked.idf, asked.totals.files, limit, allowed) if limit > 0 else []
        if similar:
            paths = sorted({*paths, *(path for path in similar if path in collection)})
        return asked, score(asked, collection, paths, similar)

    def _explained(self, asked: Asked, scores: Scores, place: int, decay: float) -> Ranked:
        path, entry = scores.paths[place], scores.entries[place]
        held = scores.terms[place]
        shared = [term for term in asked.rarest_first if term in held]
        terms = {asked.words[term]: round(asked.idf[term], 3) for term in shared}
        coverage = sum(asked.idf[term] for term in shared) / (asked.mass or 1.0)
        explain: dict[str, object] = {"coverage": round(coverage, 4), "decay": round(decay, 4)}
        explain |= {name: round(values[place], 4) for name, values in scores.factors.items()}
        explain["terms"] = terms
        explain |= _circumstances(asked, scores, place, entry)
        return Ranked(path, min(1.0, max(coverage, scores.cosine(place)) * decay), explain)


class LexicalIndex(Ranking):
    """Every memory file as passages.

    Args:
        cache: where the words are; None for memory.
    """

    def __init__(self, languages: tuple[str, ...] = ENGLISH, cache: Cache | None = None) -> None:
        self.collection = collection = Collection(languages, cache)
        super().__init__(collection)
        self.put, self.add, self.write, self.touch = collection.put, collection.add, collection.write, collection.touch
        self.remove, self.prepared = collection.remove, collection.prepared

    async def for_query(self, query: str, limit: int, allowed: AbstractSet[str] | None = None, also: Paths[str] = ()) -> Ranking:
        """What ranks the files for a query; itself, as their words are here."""
        return self


def _circumstances(asked: Asked, scores: Scores, place: int, entry: Entry) -> dict[str, object]:
    found: dict[str, object] = {}
    start, end = scores.spans[place]
    own: Sequence[float] = scores.passages[start:end]
    if own and max(own) > 0:
        passages, best = entry.passages, own.index(max(own))
        found["lines"] = (passages.lines[best], passages.end_lines[best])
        speaker = passages.speakers[best] if passages.speakers else None
        if speaker and entry.names[speaker] in asked.speakers:
            found["speaker"] = speaker
    if scores.dated[place]:
        day: date = entry.day
        found["date"] = day.isoformat()
    return found


def _decay(mtime_ns: int, now_ns: int, half_life_days: float) -> float:
    """0.5 + 0.5·2^(−age/half_life): old files sink, but never below half."""
    age_days = max(0, now_ns - mtime_ns) / _DAY_NS
    return 0.5 + 0.5 * 2 ** (-age_days / half_life_days)
