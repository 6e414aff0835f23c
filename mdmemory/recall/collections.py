"""Several collections as one: what is counted is counted over all of them, so that their files can be ranked together. Floor 2."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from mdmemory.backends.paths import owner
from mdmemory.recall.collection import Collection, Entry, Totals
from mdmemory.recall.postings import candidates, how_many


class Collections:
    """Answers what a `Collection` answers.

    Args:
        parts: by the prefix of their paths, at least one.
        prefixes: all that there are: a path belongs to the longest that it begins with, be that one of the parts or not.
    """

    def __init__(self, parts: Mapping[str, Collection], prefixes: Iterable[str]) -> None:
        self._parts, self._prefixes = parts, tuple(prefixes)
        self.languages = next(iter(parts.values())).languages

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

    def find(self, terms: Iterable[str], files: int, limit: int, allowed: AbstractSet[str] | None = None) -> list[str]:
        """The candidates of all parts: which terms are rare is judged over all files."""
        inside = None if allowed is None else self._by_part(allowed)

        def match(some: Sequence[str]) -> list[str]:
            found = []
            for prefix, part in self._parts.items():
                only = None if inside is None else frozenset(inside[prefix])
                there = [prefix + path for path in part.postings.match(some, how_many(limit), only)]
                found += [path for path in there if owner(path, self._prefixes) == prefix]
            return found

        return sorted(candidates(self.holding(tuple(terms)), files, limit, match))

    def entries(self, paths: Sequence[str]) -> list[Entry]:
        """What is known of each of these files."""
        found: dict[str, Entry] = {}
        for prefix, inside in self._by_part(paths).items():
            found |= {prefix + path: entry for path, entry in zip(inside, self._parts[prefix].entries(inside), strict=True)}
        return [found[path] for path in paths]

    def _by_part(self, paths: Iterable[str]) -> defaultdict[str, list[str]]:
        inside: defaultdict[str, list[str]] = defaultdict(list)
        for path in paths:
            prefix = owner(path, self._prefixes)
            inside[prefix].append(path.removeprefix(prefix))
        return inside

    def __contains__(self, path: str) -> bool:
        prefix = owner(path, self._prefixes)
        return prefix in self._parts and path.removeprefix(prefix) in self._parts[prefix]
