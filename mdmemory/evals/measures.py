"""Evidence recall: how much of what answers a question is among the first 1, 5 and 10 found. Floor 6."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

DEPTHS = (1, 5, 10)


@dataclass(frozen=True, slots=True)
class Result:
    """How one question did.

    Args:
        ranks: the place of each piece of evidence, from 1; None where it was not found.
    """

    category: str
    ranks: Sequence[int | None]


def result_of(category: str, found: Sequence[str], evidence: Collection[str]) -> Result:
    """The places of the evidence among what was found."""
    places = {item: place for place, item in reversed(list(enumerate(found, 1)))}
    return Result(category, sorted((places.get(item) for item in evidence), key=lambda place: (place is None, place)))


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """The measures over all questions, and by category."""
    by_category: defaultdict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_category[result.category].append(result)
    categories = {name: {"questions": len(group), **_measures(group)} for name, group in sorted(by_category.items())}
    return {**_measures(results), "categories": categories}


def _measures(results: Sequence[Result]) -> dict[str, Any]:
    """`frac`: the mean share of the evidence; `any`, `all`: the share of questions with some or all of it; `mrr`."""
    within = {depth: [[rank is not None and rank <= depth for rank in item.ranks] for item in results] for depth in DEPTHS}
    return {
        "frac": {str(depth): _mean([sum(hits) / len(hits) for hits in rows]) for depth, rows in within.items()},
        "any": {str(depth): _mean([any(hits) for hits in rows]) for depth, rows in within.items()},
        "all": {str(depth): _mean([all(hits) for hits in rows]) for depth, rows in within.items()},
        "mrr": _mean([1 / item.ranks[0] if item.ranks[0] else 0.0 for item in results]),
    }


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 5) if values else 0.0
