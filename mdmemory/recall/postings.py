"""The candidate stage: which files hold the words of a query, by a full-text table (SQLite FTS5) over our own tokens. Floor 2."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import TypeVar

CANDIDATES, MAX_CANDIDATES = 32, 200
Found = TypeVar("Found")
RARE_TERMS = 16
RARE_SHARE = 0.2
_FOUND = "SELECT rowid FROM terms WHERE terms MATCH ?{} ORDER BY rank LIMIT ?"


class Postings:
    """Terms to the files that hold them.

    Args:
        db: with the tables of `Cache`.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._holding: dict[str, int] = {}

    def put(self, number: int, name: Iterable[str], about: Iterable[str], body: str) -> None:
        """Add a file that is not there yet.

        Args:
            number: the file's id.
            body: its terms, parted by spaces.
        """
        values = (number, " ".join(name), " ".join(about), body)
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

    def holding(self, term: str) -> int:
        """How many files hold a term."""
        count = self._holding.get(term)
        if count is None:
            found = self._db.execute("SELECT doc FROM holding WHERE term = ?", (term,)).fetchone()
            count = self._holding[term] = found[0] if found else 0
        return count

    def find(self, terms: Iterable[str], files: int, limit: int, allowed: AbstractSet[str] | None = None) -> list[str]:
        """The best files by FTS5's BM25: by rare terms first, by common ones while too few.

        Args:
            files: how many there are.
            limit: how many are wanted; `CANDIDATES` are found where they are fewer, and `MAX_CANDIDATES` where they are more.
            allowed: only these; None for all.

        Returns:
            Paths in their own order.
        """
        numbers = None if allowed is None else self._numbers(allowed)
        wanted = how_many(limit)
        found = candidates(terms, files, limit, self.holding, lambda some: self._match(some, numbers, wanted))[:wanted]
        return sorted(self._paths(found))

    def match(self, terms: Sequence[str], limit: int, allowed: AbstractSet[str] | None = None) -> list[str]:
        """The paths of the best files by FTS5's BM25 that hold any of the terms."""
        return self._paths(self._match(terms, None if allowed is None else self._numbers(allowed), limit))

    def _paths(self, numbers: Sequence[int]) -> list[str]:
        chosen = "SELECT path FROM file WHERE id IN (SELECT value FROM json_each(?))"
        return [path for (path,) in self._db.execute(chosen, (json.dumps(numbers),))]

    def _numbers(self, paths: Collection[str]) -> list[int]:
        chosen = "SELECT id FROM file WHERE path IN (SELECT value FROM json_each(?))"
        return [number for (number,) in self._db.execute(chosen, (json.dumps(list(paths)),))]

    def _match(self, terms: Sequence[str], numbers: Collection[int] | None, limit: int) -> list[int]:
        if not terms:
            return []
        query = " OR ".join(f'"{term}"' for term in terms)
        if numbers is None:
            found = self._db.execute(_FOUND.format(""), (query, limit))
        else:
            only = " AND rowid IN (SELECT value FROM json_each(?))"
            found = self._db.execute(_FOUND.format(only), (query, json.dumps(list(numbers)), limit))
        return [number for (number,) in found]


def how_many(limit: int) -> int:
    """How many candidates there are when so many files are wanted."""
    return min(max(limit, CANDIDATES), MAX_CANDIDATES)


def candidates(
    terms: Iterable[str], files: int, limit: int, holding: Callable[[str], int], match: Callable[[Sequence[str]], Sequence[Found]]
) -> list[Found]:
    """What the rare terms find, and while that is less than `limit`, also what the common ones find."""
    known = sorted((term for term in terms if holding(term)), key=holding)
    common = max(MAX_CANDIDATES, RARE_SHARE * files)
    rare = [term for term in known if holding(term) <= common][:RARE_TERMS]
    found = list(match(rare))
    if len(found) < limit:
        found = list(dict.fromkeys(found + list(match(known[len(rare) :]))))
    return found
