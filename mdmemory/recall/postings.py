"""The candidate stage: which files hold the words of a query. In memory; a table on disk can take its place. Floor 2."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

MAX_CANDIDATES = 200
RARE_TERMS = 16
RARE_SHARE = 0.2


class Postings:
    """Terms to the files that hold them."""

    def __init__(self) -> None:
        self._paths: defaultdict[str, set[str]] = defaultdict(set)
        self._files = 0

    def put(self, path: str, terms: Iterable[str]) -> None:
        """Add a file that is not there yet."""
        self._files += 1
        for term in terms:
            self._paths[term].add(path)

    def remove(self, path: str, terms: Iterable[str]) -> None:
        """Forget a file that was put with these terms."""
        self._files -= 1
        for term in terms:
            paths = self._paths[term]
            paths.discard(path)
            if not paths:
                del self._paths[term]

    def holding(self, term: str) -> int:
        """How many files hold a term."""
        return len(self._paths.get(term, ()))

    def find(self, weights: Mapping[str, float], limit: int, allowed: AbstractSet[str] | None = None) -> list[str]:
        """The files that cover most of a query's weight, at most `MAX_CANDIDATES`: by rare terms, by common ones while too few.

        Args:
            limit: how many are wanted at least.
            allowed: only these; None for all.
        """
        known = sorted((term for term in weights if term in self._paths), key=self.holding)
        common = max(MAX_CANDIDATES, RARE_SHARE * self._files)
        rare = [term for term in known if self.holding(term) <= common][:RARE_TERMS]
        covered: defaultdict[str, float] = defaultdict(float)
        self._cover(covered, rare, weights, allowed)
        if len(covered) < limit:
            self._cover(covered, known[len(rare) :], weights, allowed)
        if len(covered) <= MAX_CANDIDATES:
            return sorted(covered)
        return heapq.nsmallest(MAX_CANDIDATES, covered, key=lambda path: (-covered[path], path))

    def _cover(
        self,
        covered: defaultdict[str, float],
        terms: Sequence[str],
        weights: Mapping[str, float],
        allowed: AbstractSet[str] | None,
    ) -> None:
        for term in terms:
            weight, paths = weights[term], self._paths[term]
            for path in paths if allowed is None else paths & allowed:
                covered[path] += weight
