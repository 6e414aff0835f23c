"""Several collections as one: what is counted is counted over all of them, so that their files can be ranked together. Floor 2."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection as Paths
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from mdmemory.backends.paths import owner
from mdmemory.recall.entries import Entry
from mdmemory.recall.postings import candidates, how_many
from mdmemory.recall.source import Part, PartSource
from mdmemory.recall.totals import Totals


class Collections:
    """Answers what a `Collection` answers.

    Args:
        parts: by the prefix of their paths, at least one.
        prefixes: all that there are: a path belongs to the longest that it begins with, be that one of the parts or not.
    """

    def __init__(self, parts: Mapping[str, PartSource], prefixes: Iterable[str]) -> None:
        self._parts, self._prefixes = parts, tuple(prefixes)
        self.languages = next(iter(parts.values())).languages

    @classmethod
    async def prepared(
        cls,
        parts: Mapping[str, Part],
        prefixes: Iterable[str],
        query: str,
        limit: int,
        allowed: AbstractSet[str] | None = None,
        also: Paths[str] = (),
    ) -> Collections:
        """What a query is asked of, each part prepared for it."""
        prefixes = tuple(prefixes)
        inside, others = by_part(allowed or (), prefixes), by_part(also, prefixes)

        async def prepare(prefix: str, part: Part) -> PartSource:
            only = None if allowed is None else frozenset(inside[prefix])
            return await part.prepared(query, limit, only, others[prefix])

        ready = await asyncio.gather(*(prepare(prefix, part) for prefix, part in parts.items()))
        return cls(dict(zip(parts, ready, strict=True)), prefixes)

    def totals(self) -> Totals:
        """What is counted over all files."""
        totals = Totals()
        for part in self._parts.values():
            totals.include(part.totals())
        return totals

    def holding(self, terms: Sequence[str]) -> dict[str, int]:
        """How many files hold each term."""
        each = [part.holding(terms) for part in self._parts.values()]
        return {term: sum(holding[term] for holding in each) for term in terms}

    def find(self, weights: Mapping[str, float], files: int, limit: int, allowed: AbstractSet[str] | None = None) -> list[str]:
        """The candidates of all parts: which terms are rare is judged over all files."""
        inside = None if allowed is None else by_part(allowed, self._prefixes)

        def match(some: Mapping[str, float]) -> list[str]:
            found = []
            for prefix, part in self._parts.items():
                only = None if inside is None else frozenset(inside[prefix])
                there = [prefix + path for path in part.match(some, how_many(limit), only)]
                found += [path for path in there if owner(path, self._prefixes) == prefix]
            return found

        return sorted(candidates(self.holding(tuple(weights)), weights, files, limit, match))

    def entries(self, paths: Sequence[str]) -> list[Entry]:
        """What is known of each of these files."""
        found: dict[str, Entry] = {}
        for prefix, inside in by_part(paths, self._prefixes).items():
            found |= {prefix + path: entry for path, entry in zip(inside, self._parts[prefix].entries(inside), strict=True)}
        return [found[path] for path in paths]

    def __contains__(self, path: str) -> bool:
        prefix = owner(path, self._prefixes)
        return prefix in self._parts and path.removeprefix(prefix) in self._parts[prefix]


def by_part(paths: Iterable[str], prefixes: Sequence[str]) -> defaultdict[str, list[str]]:
    """Paths by the prefix that they belong to, without it."""
    inside: defaultdict[str, list[str]] = defaultdict(list)
    for path in paths:
        prefix = owner(path, prefixes)
        inside[prefix].append(path.removeprefix(prefix))
    return inside
