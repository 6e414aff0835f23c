"""The candidate stage: which files hold the words of a query, by a full-text table (SQLite FTS5) over our own tokens. Floor 2."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

CANDIDATES, MAX_CANDIDATES = 16, 200  # more of them make the order no better in folders of 70 to 10,000 files: see docs/recall.md
RARE_TERMS = 16
RARE_SHARE = 0.2
KEPT_TERMS = 100_000
_FOUND = """
    SELECT path FROM terms CROSS JOIN file ON file.id = terms.rowid WHERE terms MATCH ?{} ORDER BY terms.rank LIMIT ?
"""  # CROSS: words first, however few paths are allowed
_HOLDING = "SELECT term, doc FROM holding WHERE term IN (SELECT value FROM json_each(?))"


class Postings:
    """Terms to the files that hold them.

    Args:
        db: with the tables of `Cache`.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._holding: dict[str, int] = {}

    def put(self, number: int, name: str, about: str, body: str) -> None:
        """Add a file that is not there yet.

        Args:
            number: the file's id.
            name, about, body: its terms, parted by spaces.
        """
        values = (number, name, about, body)
        self._count(values[1:], 1)
        self._db.execute("INSERT INTO terms(rowid, name, about, body) VALUES (?, ?, ?, ?)", values)

    def remove(self, number: int) -> None:
        """Forget a file."""
        if self._holding:
            self._count(self._db.execute("SELECT name, about, body FROM terms WHERE rowid = ?", (number,)).fetchone(), -1)
        self._db.execute("DELETE FROM terms WHERE rowid = ?", (number,))

    def _count(self, texts: Iterable[str], sign: int) -> None:
        for term in self._holding.keys() & set(" ".join(texts).split()) if self._holding else ():
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

    def find(self, terms: Iterable[str], files: int, limit: int, allowed: AbstractSet[str] | None = None) -> list[str]:
        """The best files by FTS5's BM25: by rare terms first, by common ones while too few.

        Args:
            files: how many there are.
            limit: how many are wanted; `CANDIDATES` are found where they are fewer, and `MAX_CANDIDATES` where they are more.
            allowed: only these; None for all.

        Returns:
            Paths in their own order.
        """
        wanted, terms = how_many(limit), tuple(terms)
        return sorted(candidates(self.holding(terms), files, limit, lambda some: self.match(some, wanted, allowed))[:wanted])

    def match(self, terms: Sequence[str], limit: int, allowed: AbstractSet[str] | None = None) -> list[str]:
        """The paths of the best files by FTS5's BM25 that hold any of the terms."""
        if not terms:
            return []
        query = " OR ".join(f'"{term}"' for term in terms)
        if allowed is None:
            found = self._db.execute(_FOUND.format(""), (query, limit))
        else:
            only = " AND +path IN (SELECT value FROM json_each(?))"
            found = self._db.execute(_FOUND.format(only), (query, json.dumps(list(allowed)), limit))
        return [path for (path,) in found]


def how_many(limit: int) -> int:
    """How many candidates there are when so many files are wanted."""
    return min(max(limit, CANDIDATES), MAX_CANDIDATES)


def candidates(holding: Mapping[str, int], files: int, limit: int, match: Callable[[Sequence[str]], Sequence[str]]) -> list[str]:
    """What the rare terms find, and while that is less than `limit`, also what the common ones find.

    Args:
        holding: how many files hold each of the terms.
    """
    known = sorted((term for term, count in holding.items() if count), key=holding.__getitem__)
    common = max(MAX_CANDIDATES, RARE_SHARE * files)
    rare = [term for term in known if holding[term] <= common][:RARE_TERMS]
    found = list(match(rare))
    if len(found) < limit:
        found = list(dict.fromkeys(found + list(match(known[len(rare) :]))))
    return found
