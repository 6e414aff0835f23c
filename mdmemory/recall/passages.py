"""The passages of a file and the words that count for each: its own, some of its neighbours', the question it answers. Floor 2.

A turn of a conversation often says only half of what it is about: the question before it holds the other half. So short passages
borrow words from their neighbours, and a reply has the words of the question. Plain notes have no speakers and long paragraphs,
so that for them all of this switches itself off.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
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
        text: the terms in order, with repetitions, parted by spaces.
        size: how many there are.
        asked: those of its questions.
        words: its length as people count.
    """

    line: int
    end_line: int
    speaker: str | None
    text: str
    size: int
    asked: str
    words: int


Places = Sequence[tuple[int, float]]
"""Where a term stands: the number of the passage, and how often or how much it counts there."""


class Counts:
    """The sizes of a file's passages, and where the terms of a query stand in them.

    Args:
        lengths: the sum of the weights of each passage.
        asking: the share of question words in each passage, 0 to 1.
    """

    def __init__(self, passages: Sequence[Passage]) -> None:
        self._texts = [passage.text for passage in passages]
        given = [_given(passages, place) for place in range(len(passages))]
        self._given = given if any(given) else []
        self.asking = [_size(passage.asked) / max(1, passage.size) for passage in passages]
        self._scales = [max(0.0, 1 - passage.words / BORROWING_ENDS_AT_WORDS) for passage in passages]
        self._borrows = any(self._scales)
        self._neighbours = [(side * n, share) for n, share in enumerate(BORROWED, 1) for side in (-1, 1)] if self._borrows else []
        own, asked = ((place, float(passage.size)) for place, passage in enumerate(passages)), enumerate(map(_size, self._given))
        self.lengths = self._spread(list(own), list(asked))

    def own(self, terms: AbstractSet[str]) -> Mapping[str, Places]:
        """The passages that hold each of the terms, and how often."""
        return _places(self._texts, terms)

    def weights(self, own: Mapping[str, Places]) -> Mapping[str, Places]:
        """The passages that have each of these terms, their own or not, with its weight."""
        if not (self._borrows or self._given):
            return own
        given = _places(self._given, own.keys())
        spread = {term: self._spread(places, given.get(term, ())) for term, places in own.items()}
        return {term: [(place, weight) for place, weight in enumerate(found) if weight > 0] for term, found in spread.items()}

    def _spread(self, own: Places, asked: Places) -> list[float]:
        """What each passage gets of what the passages have and ask."""
        scales = self._scales
        found, size = [0.0] * len(scales), len(scales)
        for place, times in own:
            found[place] += times
            for distance, share in self._neighbours:
                if 0 <= (other := place + distance) < size:
                    found[other] += share * scales[other] * times
        for place, times in asked:
            found[place] -= (1 - ASKED_FOR_SELF) * times
            if times:  # the reply has it whole, and need not borrow it
                found[place + 1] += (ASKED_FOR_REPLY - (BORROWED[0] * self._scales[place + 1] if BORROWED else 0)) * times
        return found


def _places(texts: Sequence[str], terms: AbstractSet[str]) -> Mapping[str, Places]:
    found: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for place, text in enumerate(texts):
        for term in terms:
            if term in text:  # perhaps as a part of another: to look is quicker than to split every text
                held = text.split(" ")
                for each in terms & set(held):
                    found[each].append((place, held.count(each)))
                break
    return found


def _size(text: str) -> int:
    return text.count(" ") + 1 if text else 0


def passages_of(text: str, languages: tuple[str, ...] = ENGLISH, *, before: int = 0) -> tuple[Passage, ...]:
    """The passages of a text.

    Args:
        before: how many lines of the file stand before the text.
    """
    found = []
    for unit in cut(text):
        singles = single_characters(unit.text)
        asked = _questions(unit.text, languages) if unit.speaker else ""
        terms = (*tokens(unit.text, languages), *singles)
        words = len(unit.text.split()) + len(singles) // 2
        text = " ".join(terms)
        found.append(Passage(before + unit.line, before + unit.end_line, unit.speaker, text, len(terms), asked, words))
    return tuple(found)


def _questions(text: str, languages: tuple[str, ...]) -> str:
    if "?" not in text and "？" not in text:
        return ""
    sentences = _SENTENCE_END.split(text)
    asking = (sentence for sentence in sentences if sentence.rstrip().endswith(("?", "？")))
    return " ".join(term for sentence in asking for term in tokens(sentence, languages))


def _given(passages: Sequence[Passage], place: int) -> str:
    """The question words that the next passage, of another speaker, takes over."""
    if place + 1 == len(passages) or passages[place + 1].speaker in (None, passages[place].speaker):
        return ""
    return passages[place].asked
