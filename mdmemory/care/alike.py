"""Files that say much the same, by the words that they share: suggested, never merged by a number. Floor 4, no input or output.

Two files are alike when what they share weighs most of what the smaller one says, and a fair part of the larger one, each word as
much as it is rare among all files. Only files that share several of their rarest words are compared at all, so that ten thousand
files take seconds.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import combinations

RAREST = 20  # of each file's words are looked at to find others that may be alike
MAX_HOLDING = 60  # a word that more files hold tells nothing about two of them
LEAST_SHARED = 2
LEAST_OF_SMALLER, LEAST_OF_BOTH = 0.6, 0.3
MAX_OF_ONE = 20  # pairs that one file may be part of: a form that was filled in a thousand times is no thousand suggestions


@dataclass(frozen=True, slots=True)
class Pair:
    """Two files that say much the same.

    Args:
        path, other: in the order of their names.
        share: 0 to 1, how much of what the smaller one says the other says too.
    """

    path: str
    other: str
    share: float


def alike(
    terms: Mapping[str, AbstractSet[str]], of_smaller: float = LEAST_OF_SMALLER, of_both: float = LEAST_OF_BOTH
) -> list[Pair]:
    """The pairs of files that say much the same, the most alike first.

    Args:
        terms: by path, the terms of each file, each once.
        of_smaller, of_both: the least share (0-1) of what the smaller one says, and of what both say, that they have in common.
    """
    holding = Counter(term for each in terms.values() for term in each)
    weight = {term: math.log(1 + len(terms) / count) for term, count in holding.items()}
    by_term: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted(terms):
        known = sorted((term for term in terms[path] if 1 < holding[term] <= MAX_HOLDING), key=lambda term: (holding[term], term))
        for term in known[:RAREST]:
            by_term[term].append(path)
    shared = Counter(pair for paths in by_term.values() for pair in combinations(paths, 2))
    mass = {path: sum(weight[term] for term in each) for path, each in terms.items()}
    found = []
    for (path, other), count in shared.items():
        if count < LEAST_SHARED:
            continue
        both = sum(weight[term] for term in terms[path] & terms[other])
        share, share_of_both = both / min(mass[path], mass[other]), both / (mass[path] + mass[other] - both)
        if share >= of_smaller and share_of_both >= of_both:
            found.append(Pair(path, other, share))
    return _bounded(sorted(found, key=lambda pair: (-pair.share, pair.path, pair.other)))


def _bounded(pairs: Iterable[Pair]) -> list[Pair]:
    times: Counter[str] = Counter()
    found = []
    for pair in pairs:
        if max(times[pair.path], times[pair.other]) < MAX_OF_ONE:
            times.update((pair.path, pair.other))
            found.append(pair)
    return found


def clusters(pairs: Collection[Pair], most: int) -> list[tuple[str, ...]]:
    """Files that belong together, the largest clusters first; the weakest ties are left out where a cluster would have too many.

    Args:
        most: how many files a cluster may have.
    """
    belongs: dict[str, set[str]] = {}
    for pair in sorted(pairs, key=lambda pair: (-pair.share, pair.path, pair.other)):
        one, two = belongs.get(pair.path, {pair.path}), belongs.get(pair.other, {pair.other})
        if one is not two and len(one) + len(two) <= most:
            joined = one | two
            belongs.update(dict.fromkeys(joined, joined))
    found = {tuple(sorted(each)) for each in belongs.values()}
    return sorted(found, key=lambda paths: (-len(paths), paths))
