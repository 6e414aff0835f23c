"""The passages of a file and the words that count for each: its own, some of its neighbours', the question it answers. Floor 2.

A turn of a conversation often says only half of what it is about: the question before it holds the other half. So short passages
borrow words from their neighbours, and a reply has the words of the question. Plain notes have no speakers and long paragraphs,
so that for them all of this switches itself off.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from mdmemory.recall.tokens import ENGLISH, single_characters, tokens
from mdmemory.recall.units import cut

BORROWED = (0.3, 0.2, 0.1)
"""What a neighbour's word counts at distance 1, 2 and 3."""
BORROWING_ENDS_AT_WORDS = 100
ASKED_FOR_REPLY, ASKED_FOR_SELF = 1.0, 0.5
"""What a question's word counts for the reply of another speaker, and for the turn that asks."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n")


class Passages(NamedTuple):
    """The units of a file as terms, column by column: a search makes those of every candidate.

    Args:
        text: the terms in order, with repetitions, parted by spaces; a line end before, between and after the passages.
        lines, end_lines: within the file.
        words: the length of each as people count.
        sizes: how many terms each has.
        lengths: what the terms that count for it weigh, its own or not.
        speakers: None for what nobody says; empty when all of it is.
        asked: the terms of the questions of each; empty when nobody speaks.
    """

    text: str
    lines: Sequence[int]
    end_lines: Sequence[int]
    words: Sequence[int]
    sizes: Sequence[int]
    lengths: Sequence[float]
    speakers: Sequence[str | None] = ()
    asked: Sequence[str] = ()


Places = Sequence[tuple[int, float]]
"""Where a term stands: the number of the passage, and how often or how much it counts there."""
Found = Mapping[str, Sequence[int]]
"""Where each term that is there begins in the text of all passages."""


class Counts:
    """Where the terms of a query stand in passages, and what they count there.

    Args:
        asking: the share of question words in each passage, 0 to 1; empty when nobody asks.
    """

    def __init__(self, passages: Passages) -> None:
        self._text, self._words = passages.text, passages.words
        self._starts = list(accumulate(map(len, self._text[1:-1].split("\n")), lambda at, size: at + size + 1, initial=1))
        self._shares: dict[int, Places] = {}
        self._given: Sequence[str] = ()
        self.asking: Sequence[float] = ()
        if any(passages.asked):
            self._given = _given(passages.speakers, passages.asked)
            self.asking = [_size(asked) / max(1, size) for asked, size in zip(passages.asked, passages.sizes, strict=True)]

    def find(self, terms: Iterable[str]) -> Found:
        """Where the terms stand."""
        text, found = self._text, dict[str, list[int]]()
        for term in terms:
            at, size = text.find(term), len(term)
            while at >= 0:
                if text[at - 1] in " \n" and text[at + size] in " \n":  # else it is a part of another
                    found.setdefault(term, []).append(at)
                at = text.find(term, at + size)
        return found

    def own(self, found: Found) -> Mapping[str, Places]:
        """The passages that hold each of the terms, and how often."""
        return {term: self._places(each) for term, each in found.items()}

    def side_by_side(self, found: Found, one: str, other: str) -> Places:
        """The passages that hold one term right before another, both of them found, and how often."""
        following, size = frozenset(found[other]), len(one)
        return self._places([at for at in found[one] if at + size + 1 in following and self._text[at + size] == " "])

    def _places(self, found: Sequence[int]) -> Places:
        if len(found) == 1:
            return ((bisect(self._starts, found[0]) - 1, 1.0),)
        times: dict[int, float] = {}
        for at in found:
            place = bisect(self._starts, at) - 1
            times[place] = times.get(place, 0.0) + 1.0
        return tuple(times.items())

    def weights(self, own: Mapping[str, Places]) -> Mapping[str, Places]:
        """The passages that have each of these terms, their own or not, with its weight."""
        given = [(place, asked.split(" ")) for place, asked in enumerate(self._given) if asked]
        return {
            term: self._spread(places, [(place, asked.count(term)) for place, asked in given if term in asked])
            for term, places in own.items()
        }

    def _spread(self, own: Places, asked: Places) -> Places:
        """What each passage gets of what the passages have and ask."""
        if len(own) == 1 and own[0][1] == 1 and not asked:
            return self._from(own[0][0])
        found: dict[int, float] = {}
        for place, times in own:
            for other, share in self._from(place):
                found[other] = found.get(other, 0.0) + share * times
        for place, times in asked:
            for other, share in _of_question(place, self._words):
                found[other] = found.get(other, 0.0) + share * times
        return [(place, weight) for place, weight in found.items() if weight > 0]

    def _from(self, place: int) -> Places:
        """What each passage gets of one word in this one."""
        shares = self._shares.get(place)
        if shares is None:
            shares = self._shares[place] = [(place, 1.0), *_borrowers(place, self._words)]
        return shares


def _borrowers(place: int, words: Sequence[int]) -> Iterator[tuple[int, float]]:
    """The neighbours of a passage that borrow from it, and the share that each gets."""
    for distance, share in enumerate(BORROWED, 1):
        for other in (place - distance, place + distance):
            if 0 <= other < len(words) and words[other] < BORROWING_ENDS_AT_WORDS:
                yield other, share * (1 - words[other] / BORROWING_ENDS_AT_WORDS)


def _of_question(place: int, words: Sequence[int]) -> Iterator[tuple[int, float]]:
    """What a question's words count less where it is asked, and more in the reply: it has them whole, and need not borrow them."""
    borrowed = BORROWED[0] * max(0.0, 1 - words[place + 1] / BORROWING_ENDS_AT_WORDS) if BORROWED else 0.0
    yield from ((place, ASKED_FOR_SELF - 1), (place + 1, ASKED_FOR_REPLY - borrowed))


def _lengths(words: Sequence[int], sizes: Sequence[int], given: Sequence[str]) -> list[float]:
    """What the terms of each passage weigh together, with what is borrowed and given."""
    lent = [0.0] * len(sizes)  # by the neighbours on both sides, to one that borrows all it can
    for distance, share in enumerate(BORROWED, 1):
        for one, other in enumerate(range(distance, len(sizes))):
            lent[one] += share * sizes[other]
            lent[other] += share * sizes[one]
    found = [float(size) for size in sizes]
    for place, length in enumerate(words):
        if length < BORROWING_ENDS_AT_WORDS:
            found[place] += lent[place] * (1 - length / BORROWING_ENDS_AT_WORDS)
    for place, asked in enumerate(given):
        for other, share in _of_question(place, words) if asked else ():
            found[other] += share * _size(asked)
    return [round(length, 3) for length in found]


def _size(text: str) -> int:
    return text.count(" ") + 1 if text else 0


def passages_of(
    text: str, languages: tuple[str, ...] = ENGLISH, *, before: int = 0, head: str = "", head_words: int = 0
) -> Passages:
    """The passages of a text.

    Args:
        before: how many lines of the file stand before the text.
        head: the terms of what a note says that it is about, in these lines: a passage like another, the first.
        head_words: its length as people count.
    """
    units, texts, sizes, words = cut(text), list[str](), list[int](), list[int]()
    for _, _, piece, _ in units:
        singles = single_characters(piece)
        terms = tokens(piece, languages) + singles
        texts.append(" ".join(terms))
        sizes.append(len(terms))
        words.append(len(piece.split()) + len(singles) // 2)
    lines, ends = [before + unit.line for unit in units], [before + unit.end_line for unit in units]
    speakers = [unit.speaker for unit in units]
    if any(speakers):
        asked = [_questions(piece, languages) if speaker else "" for _, _, piece, speaker in units]
        lengths = _lengths(words, sizes, _given(speakers, asked))
        return Passages(_one_text(texts), lines, ends, words, sizes, lengths, speakers, asked)
    if head:
        texts, sizes, words = [head, *texts], [_size(head), *sizes], [head_words, *words]
        lines, ends = [1, *lines], [max(1, before), *ends]
    return Passages(_one_text(texts), lines, ends, words, sizes, _lengths(words, sizes, ()))


def _one_text(texts: Iterable[str]) -> str:
    return "\n".join(["", *texts, ""])


def _questions(text: str, languages: tuple[str, ...]) -> str:
    if "?" not in text and "？" not in text:
        return ""
    sentences = _SENTENCE_END.split(text)
    asking = (sentence for sentence in sentences if sentence.rstrip().endswith(("?", "？")))
    return " ".join(term for sentence in asking for term in tokens(sentence, languages))


def _given(speakers: Sequence[str | None], asked: Sequence[str]) -> list[str]:
    """Of each passage, the question words that the next one, of another speaker, takes over."""
    each = zip(speakers, [*speakers[1:], None], asked, strict=True)
    return [words if following not in (None, speaker) else "" for speaker, following, words in each]
