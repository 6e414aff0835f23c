"""Lexical recall over whole files: which share the query's rare words, and why. Floor 2.

Order: BM25, divided by its maximum, times time decay. Score, 0 to 1: the share of the query's inverse document frequency that
the file covers, times decay. Without a shared term nothing returns. Updated file by file; unchanged files cost nothing.
"""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from mdmemory.recall.tokens import document_tokens, terms_with_words

MAX_CANDIDATES = 200
RARE_TERMS = 16
RARE_SHARE = 0.2
LEAST_FILES = 100  # a word in the only file of a folder is as rare as in one of a hundred: few files say little about words
_DAY_NS = 86_400 * 10**9


@dataclass(frozen=True, slots=True)
class Match:
    """A memory file that answers a query.

    Args:
        score: 0 to 1, the share of the query that the file covers, less with age.
        modified: UTC.
        explain: the factors: `coverage`, `decay`, `bm25` (0 to 1), and `terms`, the
            shared words with their weight, the rarest first.
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
    """A path with its score and the factors behind it."""

    path: str
    score: float
    explain: Mapping[str, object]


class LexicalIndex:
    """Postings of every memory file, in memory."""

    def __init__(self) -> None:
        self._terms: dict[str, list[str]] = {}
        self._postings: defaultdict[str, set[str]] = defaultdict(set)
        self._mtimes_ns: dict[str, int] = {}

    def put(self, path: str, text: str, mtime_ns: int) -> None:
        """Add a file, or replace what was known of it."""
        self.remove(path)
        found = document_tokens(text)
        self._terms[path], self._mtimes_ns[path] = found, mtime_ns
        for term in set(found):
            self._postings[term].add(path)

    def remove(self, path: str) -> None:
        """Forget a file, known or not."""
        for term in set(self._terms.pop(path, ())):
            self._postings[term].discard(path)
            if not self._postings[term]:
                del self._postings[term]
        self._mtimes_ns.pop(path, None)

    def rank(self, query: str, *, limit: int, now_ns: int, half_life_days: float) -> list[Ranked]:
        """The files that share a term with the query, best first."""
        words = terms_with_words(query)
        idf = {term: self._idf(term) for term in words}
        mass = sum(idf.values())
        covered = self._candidates(idf, limit)
        if not covered or limit <= 0:
            return []
        from mdmemory.recall.bm25 import bm25_scores

        paths = heapq.nsmallest(MAX_CANDIDATES, covered, key=lambda path: (-covered[path], path))
        known = [term for term in idf if term in self._postings]
        scores = bm25_scores([self._terms[path] for path in paths], known, idf)
        best = max(scores) or 1.0
        ranked = []
        for path, score in zip(paths, scores, strict=True):
            decay = self._decay(path, now_ns, half_life_days)
            shared = {term: idf[term] for term in known if path in self._postings[term]}
            terms = {words[term]: round(weight, 3) for term, weight in sorted(shared.items(), key=lambda item: -item[1])}
            coverage = sum(shared.values()) / mass
            explain = {"coverage": round(coverage, 4), "decay": round(decay, 4), "bm25": round(score / best, 4), "terms": terms}
            ranked.append((score / best * decay, Ranked(path, coverage * decay, explain)))
        ranked.sort(key=lambda item: (-item[0], item[1].path))
        return [item for _, item in ranked[:limit]]

    def _idf(self, term: str) -> float:
        count = len(self._postings.get(term, ()))
        return math.log(1 + (max(len(self._terms), LEAST_FILES) - count + 0.5) / (count + 0.5))

    def _candidates(self, idf: Mapping[str, float], limit: int) -> Mapping[str, float]:
        """Paths by the weight of the query they cover: by rare terms, and by common ones while there are too few."""
        known = sorted((term for term in idf if term in self._postings), key=lambda term: len(self._postings[term]))
        rare = [term for term in known if len(self._postings[term]) <= max(MAX_CANDIDATES, RARE_SHARE * len(self._terms))][
            :RARE_TERMS
        ]
        covered: defaultdict[str, float] = defaultdict(float)
        self._cover(covered, rare, idf)
        if len(covered) < limit:
            self._cover(covered, (term for term in known if term not in rare), idf)
        return covered

    def _cover(self, covered: defaultdict[str, float], terms: Iterable[str], idf: Mapping[str, float]) -> None:
        for term in terms:
            weight = idf[term]
            for path in self._postings[term]:
                covered[path] += weight

    def _decay(self, path: str, now_ns: int, half_life_days: float) -> float:
        """0.5 + 0.5·2^(−age/half_life): old files sink, but never below half."""
        age_days = max(0, now_ns - self._mtimes_ns[path]) / _DAY_NS
        return 0.5 + 0.5 * 2 ** (-age_days / half_life_days)
