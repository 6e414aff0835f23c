"""BM25 over postings, with rank-bm25's formula and parameters, and an inverse document frequency that is never negative. Floor 2.

The library itself brings numpy, which takes longer to import than a search takes; a test holds both to the same scores.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

K1: Final = 1.5
B: Final = 0.75

Postings = Mapping[str, Sequence[tuple[int, float]]]


def bm25_scores(postings: Postings, lengths: Sequence[float], idf: Mapping[str, float], query: Iterable[str]) -> list[float]:
    """The score of every document, 0 where no term is shared; only documents that hold a term are visited.

    Args:
        postings: term to (document, how often it stands there); may hold the query's terms alone.
        lengths: of every document, in terms.
        idf: the weight of each term in the whole collection, >= 0.
    """
    scores = [0.0] * len(lengths)
    average = sum(lengths) / (len(lengths) or 1) or 1.0
    floor, slope = K1 * (1 - B), K1 * B / average
    for term in query:
        gain = idf.get(term, 0.0) * (K1 + 1)
        for document, count in postings.get(term, ()):
            scores[document] += gain * count / (count + floor + slope * lengths[document])
    return scores


def inverse_frequency(documents: int, holding: float) -> float:
    """The weight of what `holding` of the documents have: log(1 + (N − n + ½) / (n + ½)), as in Lucene, never negative."""
    return math.log(1 + (documents - holding + 0.5) / (holding + 0.5))
