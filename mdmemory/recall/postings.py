"""The candidate stage: which files hold the words of a query, by a full-text table (SQLite FTS5) over our own tokens. Floor 2.

FTS5 tells where a word stands; BM25 is counted here, first without the files' lengths, and with them for the best alone: FTS5's
own ranking asks for the length of every file that holds a word, which takes twice as long.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

from mdmemory.recall.entries import Words

CANDIDATES, MAX_CANDIDATES = 12, 200  # more of them make the order no better in folders of 70 to 10,000 files: see docs/recall.md
RARE_TERMS = 16
RARE_SHARE = 0.2
KEPT_TERMS = 100_000
K1, B = 1.2, 0.75  # as in FTS5 and in Lucene
WEIGHED = 3
"""Of how many times the wanted files the length is asked."""
_HOLDING = "SELECT term, doc FROM holding WHERE term IN (SELECT value FROM json_each(?))"
_STANDS = """
    SELECT group_concat(CASE col
        WHEN 'body' THEN doc
        WHEN 'about' THEN doc || ' ' || doc
        ELSE doc || ' ' || doc || ' ' || doc || ' ' || doc
    END, ' ') FROM stands WHERE term = ?
"""  # each file as often as the word counts, in one row: a row each takes twice as long
_FILES = "SELECT id, path, length FROM file WHERE id IN (SELECT value FROM json_each(?))"


class Postings:
    """Terms to the files that hold them.

    Args:
        db: with the tables of `Cache`.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._holding: dict[str, int] = {}

    def put(self, files: Iterable[tuple[int, Words]]) -> None:
        """Add files that are not there yet, each with its id."""
        rows = [(number, words.name, words.about, words.body) for number, words in files]
        for _, *texts in rows if self._holding else ():
            self._count(texts, 1)
        self._db.executemany("INSERT INTO terms(rowid, name, about, body) VALUES (?, ?, ?, ?)", rows)

    def remove(self, number: int) -> None:
        """Forget a file."""
        if self._holding:
            self._count(self._db.execute("SELECT name, about, body FROM terms WHERE rowid = ?", (number,)).fetchone(), -1)
        self._db.execute("DELETE FROM terms WHERE rowid = ?", (number,))

    def _count(self, texts: Iterable[str], sign: int) -> None:
        for term in self._holding.keys() & set(" ".join(texts).split()):
            self._holding[term] += sign

    def changed(self) -> None:
        """Take note that another process put or removed files."""
        self._holding.clear()

    def holding(self, terms: Collection[str]) -> dict[str, int]:
        """How many files hold each term."""
        known = self._holding
        if len(known) > KEPT_TERMS:
            known.clear()
        if new := [term for term in terms if term not in known]:
            known |= dict.fromkeys(new, 0) | dict(self._db.execute(_HOLDING, (json.dumps(new),)))
        return {term: known[term] for term in terms}

    def find(self, weights: Mapping[str, float], files: int, limit: int, allowed: AbstractSet[str] | None = None) -> list[str]:
        """The best files by BM25: by rare terms first, by common ones while too few.

        Args:
            weights: the terms of the query with their inverse document frequency.
            files: how many there are.
            limit: how many are wanted; `CANDIDATES` are found where they are fewer, and `MAX_CANDIDATES` where they are more.
            allowed: only these; None for all.

        Returns:
            Paths in their own order.
        """
        wanted = how_many(limit)
        found = candidates(self.holding(weights), weights, files, limit, lambda some: self.match(some, wanted, allowed))
        return sorted(found[:wanted])

    def match(self, weights: Mapping[str, float], limit: int, allowed: AbstractSet[str] | None = None) -> list[str]:
        """The paths of the best files by BM25 that hold any of the terms, best first.

        Args:
            weights: the rarest first: once they have found enough files, the others find no more, and count in these alone.
        """
        enough = max(MAX_CANDIDATES, WEIGHED * limit) if allowed is None else sys.maxsize
        stands = [(weight, self._times(term)) for term, weight in weights.items()]
        scores: dict[str, float] = {}
        for weight, times in stands:
            once = weight / (1 + K1)
            for number in times if len(scores) < enough else scores.keys() & times.keys():
                count = times[number]
                scores[number] = scores.get(number, 0.0) + (once if count == 1 else weight * count / (count + K1))
        highest = sorted(scores.values(), reverse=True)[: WEIGHED * limit]
        least = highest[-1] if highest else 0.0
        best = self._files([number for number, score in scores.items() if score >= least], allowed)
        if len(best) < limit:
            best += self._files([number for number, score in scores.items() if score < least], allowed)
        slope = K1 * B * len(best) / (sum(length for _, _, length in best) or 1)
        ranked = []
        for row, path, length in best:
            score, extra, number = 0.0, K1 * (1 - B) + slope * length, str(row)
            for weight, times in stands:
                if number in times:
                    score += weight * times[number] / (times[number] + extra)
            ranked.append((-score, path))
        return [path for _, path in sorted(ranked)[:limit]]

    def _files(self, numbers: Sequence[str], allowed: AbstractSet[str] | None) -> list[tuple[int, str, int]]:
        """Number, path and length of those that are allowed."""
        found = self._db.execute(_FILES, (f"[{','.join(numbers)}]",)) if numbers else ()
        return [row for row in found if allowed is None or row[1] in allowed]

    def _times(self, term: str) -> Counter[str]:
        """The number of each file that holds a term, and how often that counts."""
        (numbers,) = self._db.execute(_STANDS, (term,)).fetchone()
        return Counter(numbers.split(" ") if numbers else ())


def how_many(limit: int) -> int:
    """How many candidates there are when so many files are wanted."""
    return min(max(limit, CANDIDATES), MAX_CANDIDATES)


def candidates(
    holding: Mapping[str, int],
    weights: Mapping[str, float],
    files: int,
    limit: int,
    match: Callable[[Mapping[str, float]], Sequence[str]],
) -> list[str]:
    """What the rare terms find, and while that is less than `limit`, also what the common ones find.

    Args:
        holding: how many files hold each of the terms.
    """
    known = sorted((term for term, count in holding.items() if count), key=holding.__getitem__)
    common = max(MAX_CANDIDATES, RARE_SHARE * files)
    rare = [term for term in known if holding[term] <= common][:RARE_TERMS]
    found = list(match({term: weights[term] for term in rare}))
    if len(found) < limit:
        found = list(dict.fromkeys([*found, *match({term: weights[term] for term in known[len(rare) :]})]))
    return found
