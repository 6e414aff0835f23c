"""BM25 over postings gives the scores of the library rank-bm25."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from mdmemory.recall.bm25 import PostingsBM25, inverse_frequency

TERMS = st.sampled_from("abcdef")
TEXTS = st.lists(st.lists(TERMS, min_size=1, max_size=9), min_size=1, max_size=6)


@given(TEXTS, st.lists(TERMS, max_size=4))
def test_scores_are_those_of_the_library(texts: list[list[str]], query: list[str]) -> None:
    """S5: the same formula with the same parameters, for terms weighted alike, whether a query says a term once or twice."""
    library = BM25Okapi(texts)
    library.idf = {term: inverse_frequency(len(texts), sum(term in text for text in texts)) for term in "abcdef"}
    postings = {term: [(n, float(Counter(text)[term])) for n, text in enumerate(texts) if term in text] for term in "abcdef"}
    scores = PostingsBM25(postings, [float(len(text)) for text in texts], library.idf).get_scores(query)
    assert scores == pytest.approx(list(library.get_scores(query)))


def test_nothing_to_score() -> None:
    """Without documents or shared terms there are no scores above 0, and no division by zero."""
    assert PostingsBM25({}, [], {}).get_scores(["a"]) == []
    assert PostingsBM25({}, [0.0, 0.0], {"a": 1.0}).get_scores(["a"]) == [0.0, 0.0]
