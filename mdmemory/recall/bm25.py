"""rank-bm25 with the inverse document frequency of a larger collection, never negative. Floor 2.

Apart from `ranking` because rank-bm25 brings numpy, which takes longer to import than a search takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rank_bm25 import BM25Okapi


class CollectionBM25(BM25Okapi):  # type: ignore[misc]  # the library has no types
    """BM25 over a few candidates, with term weights taken from all files.

    Args:
        corpus: the terms of each candidate.
        idf: the weight of each query term in the whole collection, >= 0.
    """

    def __init__(self, corpus: Sequence[Sequence[str]], idf: Mapping[str, float]) -> None:
        self.collection_idf = idf
        super().__init__(corpus)

    def _calc_idf(self, nd: Mapping[str, int]) -> None:
        self.idf = dict(self.collection_idf)


def bm25_scores(corpus: Sequence[Sequence[str]], query: Sequence[str], idf: Mapping[str, float]) -> list[float]:
    """BM25 of each candidate for the query; 0 where no term is shared."""
    return [float(score) for score in CollectionBM25(corpus, idf).get_scores(query)]
