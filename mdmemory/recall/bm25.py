"""rank-bm25 over postings, with weights instead of counts and an inverse document frequency that is never negative. Floor 2.

Apart from `ranking` because rank-bm25 brings numpy, which takes longer to import than a search takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from rank_bm25 import BM25Okapi

Postings = Mapping[str, Sequence[tuple[int, float]]]


class PostingsBM25(BM25Okapi):  # type: ignore[misc]  # the library has no types
    """The library's formula and parameters; only documents that hold a term are visited.

    Args:
        postings: term to (document, how often it stands there); may hold the query's terms alone.
        lengths: of every document, in terms.
        idf: the weight of each term in the whole collection, >= 0.
    """

    def __init__(self, postings: Postings, lengths: Sequence[float], idf: Mapping[str, float]) -> None:
        self.collection_idf = idf
        self.lengths = lengths
        super().__init__(postings)

    def _initialize(self, postings: Postings) -> Mapping[str, int]:
        self.postings, self.doc_len, self.corpus_size = postings, self.lengths, len(self.lengths)
        self.avgdl = sum(self.lengths) / (self.corpus_size or 1) or 1.0
        return {}

    def _calc_idf(self, nd: Mapping[str, int]) -> None:
        self.idf = self.collection_idf

    def get_scores(self, query: Iterable[str]) -> list[float]:
        """The score of every document; 0 where no term is shared."""
        scores = [0.0] * self.corpus_size
        k1, floor, slope = self.k1, self.k1 * (1 - self.b), self.k1 * self.b / self.avgdl
        for term in query:
            gain = self.idf.get(term, 0.0) * (k1 + 1)
            for document, count in self.postings.get(term, ()):
                scores[document] += gain * count / (count + floor + slope * self.doc_len[document])
        return scores


def inverse_frequency(documents: int, holding: float) -> float:
    """The weight of what `holding` of the documents have: log(1 + (N − n + ½) / (n + ½)), as in Lucene, never negative."""
    return math.log(1 + (documents - holding + 0.5) / (holding + 0.5))
