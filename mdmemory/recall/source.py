"""What a query is asked of: files whose words are here, or were brought here for this query. Floor 2."""

from __future__ import annotations

from collections.abc import Collection as Paths
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Protocol

from mdmemory.recall.entries import Entry
from mdmemory.recall.totals import Totals


class Source(Protocol):
    """Counts over all files, the candidates, and what is known of each of these."""

    @property
    def languages(self) -> tuple[str, ...]:
        """Whose endings the terms lack."""
        ...

    def totals(self) -> Totals:
        """What is counted over all files."""
        ...

    def holding(self, terms: Sequence[str]) -> dict[str, int]:
        """How many files hold each term."""
        ...

    def find(self, weights: Mapping[str, float], files: int, limit: int, allowed: AbstractSet[str] | None = None) -> list[str]:
        """The candidates: what the rare terms find, and while that is too little, what the common ones find.

        Args:
            weights: the terms with their inverse document frequency.
        """
        ...

    def entries(self, paths: Sequence[str]) -> list[Entry]:
        """What is known of each of these files."""
        ...

    def __contains__(self, path: str) -> bool: ...


class PartSource(Source, Protocol):
    """One of several sources that are asked as one: which terms are rare is judged over all of them."""

    def match(self, weights: Mapping[str, float], limit: int, allowed: AbstractSet[str] | None = None) -> list[str]:
        """The best files that hold any of the terms."""
        ...


class Part(Protocol):
    """Files that a query can be asked of, once what it needs of them is here."""

    async def prepared(self, query: str, limit: int, allowed: AbstractSet[str] | None = None, also: Paths[str] = ()) -> PartSource:
        """What a query is asked of.

        Args:
            limit: how many files are wanted.
            allowed: only these paths as candidates; None for all.
            also: paths of which everything is needed in any case.
        """
        ...
