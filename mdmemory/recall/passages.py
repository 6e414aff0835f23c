"""The passages of a file and the words that count for each: its own, some of its neighbours', the question it answers. Floor 2.

A turn of a conversation often says only half of what it is about: the question before it holds the other half. So short passages
borrow words from their neighbours, and a reply has the words of the question. Plain notes have no speakers and long paragraphs,
so that for them all of this switches itself off.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mdmemory.recall.tokens import ENGLISH, single_characters, tokens
from mdmemory.recall.units import cut

BORROWED = (0.3, 0.2, 0.1)
"""What a neighbour's word counts at distance 1, 2 and 3."""
BORROWING_ENDS_AT_WORDS = 100
ASKED_FOR_REPLY, ASKED_FOR_SELF = 1.0, 0.5
"""What a question's word counts for the reply of another speaker, and for the turn that asks."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n")


@dataclass(frozen=True, slots=True)
class Passage:
    """A unit as terms.

    Args:
        line, end_line: within the file.
        speaker: None outside of conversations.
        terms: in order, with repetitions.
        asked: those of its questions.
        words: its length as people count.
    """

    line: int
    end_line: int
    speaker: str | None
    terms: tuple[str, ...]
    asked: tuple[str, ...]
    words: int


@dataclass(frozen=True, slots=True)
class Counts:
    """Where each term of a file counts, and how much.

    Args:
        postings: term to (passage, weight).
        lengths: the sum of the weights of each passage.
        asking: share of question words in each passage, 0 to 1.
    """

    postings: Mapping[str, Sequence[tuple[int, float]]]
    lengths: Sequence[float]
    asking: Sequence[float]


def passages_of(text: str, languages: tuple[str, ...] = ENGLISH, *, before: int = 0) -> tuple[Passage, ...]:
    """The passages of a text.

    Args:
        before: how many lines of the file stand before the text.
    """
    found = []
    for unit in cut(text):
        singles = single_characters(unit.text)
        asked = _questions(unit.text, languages) if unit.speaker else ()
        terms = (*tokens(unit.text, languages), *singles)
        words = len(unit.text.split()) + len(singles) // 2
        found.append(Passage(before + unit.line, before + unit.end_line, unit.speaker, terms, asked, words))
    return tuple(found)


def _questions(text: str, languages: tuple[str, ...]) -> tuple[str, ...]:
    if "?" not in text and "？" not in text:
        return ()
    sentences = _SENTENCE_END.split(text)
    return tuple(term for sentence in sentences if sentence.rstrip().endswith(("?", "？")) for term in tokens(sentence, languages))


def count(passages: Sequence[Passage]) -> Counts:
    """The weight of every term in every passage of one file."""
    own = [Counter(passage.terms) for passage in passages]
    given = [_given(passages, place) for place in range(len(passages))]
    postings: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    lengths = []
    for place, passage in enumerate(passages):
        weights: defaultdict[str, float] = defaultdict(float, own[place])
        for term, times in given[place].items():
            weights[term] -= (1 - ASKED_FOR_SELF) * times
        asked_before = given[place - 1] if place else Counter[str]()
        scale = max(0.0, 1 - passage.words / BORROWING_ENDS_AT_WORDS)
        for distance, share in enumerate(BORROWED if scale else (), 1):
            for other in (place - distance, place + distance):
                if 0 <= other < len(passages):
                    for term, times in own[other].items():
                        weights[term] += share * scale * (times - asked_before[term] if other == place - 1 else times)
        for term, times in asked_before.items():
            weights[term] += ASKED_FOR_REPLY * times
        for term, weight in weights.items():
            postings[term].append((place, weight))
        lengths.append(sum(weights.values()))
    asking = [len(passage.asked) / max(1, len(passage.terms)) for passage in passages]
    return Counts(dict(postings), lengths, asking)


def _given(passages: Sequence[Passage], place: int) -> Counter[str]:
    """The question words that the next passage, of another speaker, takes over."""
    if place + 1 == len(passages) or passages[place + 1].speaker in (None, passages[place].speaker):
        return Counter()
    return Counter(passages[place].asked)
