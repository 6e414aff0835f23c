"""A query against the candidates: BM25 of files and passages, the person and the date that it names, and their fusion. Floor 2."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection as Sized
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise, zip_longest

from mdmemory.recall.dates import Part, asked_parts, parts_of
from mdmemory.recall.entries import Entry
from mdmemory.recall.passages import Found
from mdmemory.recall.source import Source
from mdmemory.recall.tokens import terms_with_words, tokens

LEAST_FILES = 100  # a word in the only file of a folder is as rare as in one of a hundred: few files say little about words
MAX_TERMS = 64  # of a pasted page, the rarest words decide
ADJACENT = 0.25
"""What a pair of words counts that stands side by side in query and passage, beside the words themselves."""
ONLY_ASKS = 0.7
"""What is left of the score of a turn that only asks."""
BEST_PASSAGES = 3
FACTORS = ("file", "passage", "passages")
"""What makes the order of files."""
Similar = Mapping[str, Sequence[float]]
"""Path to the cosine of each of its passages."""


class Asked:
    """A query, and how rare what it asks for is."""

    def __init__(self, query: str, collection: Source) -> None:
        from mdmemory.recall.bm25 import inverse_frequency

        self.totals = totals = collection.totals()
        self.words = terms_with_words(query, collection.languages)
        self.holding = collection.holding(tuple(self.words))
        self.idf = {term: inverse_frequency(max(LEAST_FILES, totals.files), count) for term, count in self.holding.items()}
        self.rarest_first = sorted(self.idf, key=lambda term: -self.idf[term])
        self.mass = sum(self.idf.values())
        known = [term for term, count in self.holding.items() if count]
        if len(known) > MAX_TERMS:
            known = [term for term in self.rarest_first if self.holding[term]][:MAX_TERMS]
        self.speakers = self._speakers(known)
        names = {term for name in self.speakers for term in name}
        self.terms, self.wanted = known, frozenset(known)
        self.names = names if any(term not in names for term in known) else set()
        rest = [term for term in tokens(query, collection.languages) if term not in self.names]
        self.pairs = list(dict.fromkeys(pairwise(rest))) if len(rest) <= MAX_TERMS else []
        self.dates: Mapping[Part, float] = {
            part: inverse_frequency(totals.files, count) for part in asked_parts(query) if (count := totals.dates[part])
        }
        self.file_idf = {term: inverse_frequency(totals.files, self.holding[term]) for term in known}

    def _speakers(self, known: Sequence[str]) -> dict[tuple[str, ...], tuple[float, float]]:
        """Each speaker whom the query names, with what being one of theirs is worth to a file and, beyond that, to a turn."""
        from mdmemory.recall.bm25 import inverse_frequency

        found, totals = {}, self.totals
        for name in {name for term in known for name in totals.named.get(term, ())}:
            if name[0] in known:
                said = totals.said[name]
                file = inverse_frequency(totals.files, said.files)
                found[name] = file, file + inverse_frequency(said.of_turns, said.turns)
        return found

    def passage_idf(self, found: Sequence[Found], holding: Mapping[str, int]) -> dict[str, float]:
        """The weight of each term among the passages of all files, judged from those of the candidates.

        Of a rare term these are all the files that hold it, so its weight is exact.

        Args:
            holding: how many of the candidates' passages hold each term.
        """
        from mdmemory.recall.bm25 import inverse_frequency

        weights, most = {}, self.totals.passages
        for term in self.terms:
            files = sum(term in held for held in found)
            share = self.holding[term] / files if files else 0.0
            weights[term] = inverse_frequency(most, min(most, share * holding.get(term, 0)))
        return weights


@dataclass(frozen=True, slots=True)
class Scores:
    """The candidates with their scores.

    Args:
        fused: the sum of `factors`, each 0 to 1.
        passages: the score, 0 to 1, of every passage of every candidate, one after the other; `spans` says whose.
        terms: those of the query that each candidate holds.
        dated: what matching the query's date was worth.
        cosines: of the best passage of each; empty without vectors.
    """

    paths: Sequence[str]
    entries: Sequence[Entry]
    fused: Sequence[float]
    factors: Mapping[str, Sequence[float]]
    passages: Sequence[float]
    spans: Sequence[tuple[int, int]]
    terms: Sequence[AbstractSet[str]]
    dated: Sequence[float]
    cosines: Sequence[float]

    def cosine(self, place: int) -> float:
        """That of a file's best passage; 0 without vectors."""
        return self.cosines[place] if self.cosines else 0.0


def score(asked: Asked, collection: Source, paths: Sequence[str], similar: Similar | None = None) -> Scores:
    """Score the candidates."""
    entries = collection.entries(paths)
    found = [entry.counts.find(asked.terms) for entry in entries]
    dated = [sum(asked.dates.get(part, 0.0) for part in parts_of(entry.day)) if asked.dates else 0.0 for entry in entries]
    present = [[name for name in entry.names.values() if name in asked.speakers] if asked.speakers else [] for entry in entries]
    said = [sum(asked.speakers[name][0] for name in set(names)) for names in present]
    files = [sum(parts) for parts in zip(_file_scores(asked, entries, found), dated, said, strict=True)]
    spans, each = _passage_scores(asked, entries, found, present)
    _add_circumstances(asked, entries, spans, each, dated)
    best = [max(each[start:end], default=0.0) for start, end in spans]
    three = [sum(sorted(each[start:end])[-BEST_PASSAGES:]) for start, end in spans]
    parts = {"file": files, "passage": best, "passages": three}
    factors = {name: _normalised(parts[name]) for name in FACTORS}
    passages, cosines = _normalised(each), list[float]()
    if similar:
        near = [similar.get(path) or [0.0] * (end - start) for path, (start, end) in zip(paths, spans, strict=True)]
        cosines = [max(values, default=0.0) for values in near]
        factors["similar"] = _normalised(cosines)
        flat = _normalised([value for values in near for value in values])
        passages = [(own + meant) / 2 for own, meant in zip(passages, flat, strict=True)]
    fused = [sum(values) for values in zip(*factors.values(), strict=True)]
    terms = [held.keys() | (asked.wanted & {*entry.head, *entry.labels}) for entry, held in zip(entries, found, strict=True)]
    return Scores(paths, entries, fused, factors, passages, spans, terms, dated, cosines)


def _file_scores(asked: Asked, entries: Sequence[Entry], found: Sequence[Found]) -> list[float]:
    from mdmemory.recall.bm25 import PostingsBM25

    postings: dict[str, list[tuple[int, float]]] = {term: [] for term in asked.terms}
    for number, (entry, held) in enumerate(zip(entries, found, strict=True)):
        if not (entry.head or entry.labels):
            for term, each in held.items():
                postings[term].append((number, len(each)))
            continue
        for term in asked.terms:
            if times := len(held.get(term, ())) + entry.head.count(term) + entry.labels.get(term, 0):
                postings[term].append((number, times))
    return PostingsBM25(postings, [entry.length for entry in entries], asked.file_idf).get_scores(asked.terms)


def _passage_scores(
    asked: Asked, entries: Sequence[Entry], found: Sequence[Found], present: Sequence[Sized[tuple[str, ...]]]
) -> tuple[list[tuple[int, int]], list[float]]:
    """BM25 of every passage, turns that only ask discounted; where the person named speaks, a mere mention counts nothing."""
    from mdmemory.recall.bm25 import PostingsBM25, inverse_frequency

    postings: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    pairs: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    spans, lengths, asking, holding = list[tuple[int, int]](), list[float](), dict[int, float](), Counter[str]()
    for entry, held, speakers in zip(entries, found, present, strict=True):
        start, counts = len(lengths), entry.counts
        own = counts.own(held)
        for term, weights in counts.weights(own).items():
            holding[term] += len(own[term])
            if not (speakers and term in asked.names):
                postings[term].extend([(start + place, weight) for place, weight in weights])
        for one, other in [pair for pair in asked.pairs if pair[0] in held and pair[1] in held]:
            for place, times in counts.side_by_side(held, one, other):
                pairs[f"{one} {other}"].append((start + place, times))
        lengths += entry.passages.lengths
        asking.update(enumerate(counts.asking, start))
        spans.append((start, len(lengths)))
    idf = {pair: ADJACENT * inverse_frequency(len(lengths), len(each)) for pair, each in pairs.items()}
    bm25 = PostingsBM25(postings | pairs, lengths, asked.passage_idf(found, holding) | idf)
    each = bm25.get_scores([*asked.terms, *pairs])
    for place, share in asking.items():
        each[place] *= 1 - (1 - ONLY_ASKS) * share
    return spans, each


def _add_circumstances(
    asked: Asked, entries: Sequence[Entry], spans: Sequence[tuple[int, int]], each: list[float], dated: Sequence[float]
) -> None:
    """Add to the passages that say something what their speaker and their file's date are worth."""
    for entry, (start, end), day in zip(entries, spans, dated, strict=True):
        if not day and not (entry.names and asked.speakers):
            continue
        worth = {speaker: asked.speakers.get(name, (0.0, 0.0))[1] for speaker, name in entry.names.items()}
        for place, speaker in zip_longest(range(start, end), entry.passages.speakers):
            if each[place] > 0:
                each[place] += day + (worth[speaker] if speaker else 0.0)


def _normalised(values: Sequence[float]) -> list[float]:
    best = max(values, default=0.0) or 1.0
    return [value / best for value in values]
