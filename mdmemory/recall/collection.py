"""What recall knows of every file: its passages, and how common each word, speaker and date is in all of them. Floor 2."""

from __future__ import annotations

import json
from collections.abc import Collection as Paths
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import count as count_from

from mdmemory.backends.protocol import Version
from mdmemory.recall.cache import Cache
from mdmemory.recall.entries import Document, Entry, Words, day_of, entry_of, terms_of_name, words_of
from mdmemory.recall.postings import Postings
from mdmemory.recall.tokens import ENGLISH
from mdmemory.recall.totals import Said, Totals

KEPT_TERMS = 2_000_000  # of candidates, for the next search: some 30 MB
_THERE = "SELECT path, id, day, passages, speakers FROM file WHERE path IN (SELECT value FROM json_each(?))"
_GONE = "UPDATE file SET day = NULL, mtime_ns = NULL, passages = NULL, length = NULL, speakers = NULL, units = NULL WHERE id = ?"
_PUT = "REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ENTRIES = """
    SELECT path, mtime_ns, day, passages, speakers, units, c0, c1, c2 FROM file JOIN terms_content AS text ON text.id = file.id
    WHERE path IN (SELECT value FROM json_each(?))
"""  # FTS5's own table of the columns (https://sqlite.org/fts5.html#fts5_data_structures): by way of `terms` it takes twice as long


@dataclass(frozen=True, slots=True)
class Added:
    """A file that is not written yet.

    Args:
        version, header: None where nobody will ask for them.
    """

    words: Words
    mtime_ns: int
    version: Version | None
    header: str | None


class Collection:
    """Every file, kept up to date one by one."""

    def __init__(self, languages: tuple[str, ...] = ENGLISH, cache: Cache | None = None) -> None:
        self.languages = languages
        self.cache = cache or Cache()
        self.postings = Postings(self.cache.db)
        self._totals: Totals | None = None
        self._entries: dict[str, Entry] = {}
        self._kept = 0
        self._added: dict[str, Added] = {}

    def put(self, path: str, document: Document, mtime_ns: int) -> None:
        """Add a file, or replace what was known of it."""
        self.add(path, document, mtime_ns)
        self.write()

    def add(self, path: str, document: Document, mtime_ns: int, version: Version | None = None, header: str | None = None) -> None:
        """Cut a file into passages and terms, to be found once it is written."""
        self._added[path] = Added(words_of(document, mtime_ns, self.languages), mtime_ns, version, header)

    def write(self, *, fewest: int = 1) -> None:
        """Write what was added, if that is at least so many files: together they take half as long, and queries are faster."""
        if len(self._added) < fewest:
            return
        added, self._added = self._added, {}
        with self.cache.changing():
            numbers = self._cleared(added)
            (last,) = self.cache.db.execute("SELECT max(id) FROM file").fetchone()
            numbers = dict(zip((path for path in added if path not in numbers), count_from((last or 0) + 1))) | numbers
            rows, stamps = added.items(), self.cache.stamps(len(added))
            self.cache.db.executemany(
                _PUT, (_row(numbers[path], path, stamp, each) for (path, each), stamp in zip(rows, stamps, strict=True))
            )
            self.postings.put((numbers[path], each.words) for path, each in rows)
            for _, each in rows:
                self._count(each.words.day, each.words.passages, each.words.speakers, 1)

    def touch(self, path: str, document: Document, mtime_ns: int) -> bool:
        """Note that a file has another time and the same words; False when it is not known."""
        found = self.cache.db.execute("SELECT day FROM file WHERE path = ? AND day IS NOT NULL", (path,)).fetchone()
        if found is None:
            return False
        day = day_of(document, mtime_ns)
        if self._totals is not None:
            self._totals.add(found[0], -1, 0)
            self._totals.add(day, 1, 0)
        self._drop(path)
        self.cache.db.execute("UPDATE file SET day = ?, mtime_ns = ? WHERE path = ?", (day, mtime_ns, path))
        return True

    def remove(self, path: str) -> None:
        """Forget a file, known or not."""
        self._added.pop(path, None)
        with self.cache.changing():
            for number in self._cleared([path]).values():
                self.cache.db.execute(_GONE, (number,))

    def _cleared(self, paths: Iterable[str]) -> dict[str, int]:
        """The numbers of the files that were ever there, their words taken out."""
        numbers = {}
        for path, number, day, passages, speakers in self.cache.db.execute(_THERE, (json.dumps(list(paths)),)).fetchall():
            numbers[path] = number
            self._drop(path)
            if day is not None:
                self.postings.remove(number)
                self._count(day, passages, speakers, -1)
        return numbers

    def _count(self, day: int, passages: int, speakers: str | None, sign: int) -> None:
        if self._totals is not None:
            self._totals.add(day, sign, sign * passages)
            for speaker, turns in json.loads(speakers or "{}").items():
                self._totals.add_speaker(terms_of_name(speaker, self.languages), Said(sign, sign * turns, sign * passages))

    def __contains__(self, path: str) -> bool:
        there = "SELECT 1 FROM file WHERE path = ? AND day IS NOT NULL"
        return path in self._entries or self.cache.db.execute(there, (path,)).fetchone() is not None

    def holding(self, terms: Sequence[str]) -> dict[str, int]:
        """How many files hold each term."""
        return self.postings.holding(terms)

    def find(self, weights: Mapping[str, float], files: int, limit: int, allowed: AbstractSet[str] | None = None) -> list[str]:
        """The candidates, as `Postings.find` has them."""
        return self.postings.find(weights, files, limit, allowed)

    def match(self, weights: Mapping[str, float], limit: int, allowed: AbstractSet[str] | None = None) -> list[str]:
        """The best files that hold any of the terms."""
        return self.postings.match(weights, limit, allowed)

    async def prepared(self, query: str, limit: int, allowed: AbstractSet[str] | None = None, also: Paths[str] = ()) -> Collection:
        """What a query is asked of; itself, as all of it is here."""
        return self

    def totals(self) -> Totals:
        """What is counted over all files; anew when another process changed some."""
        if self.cache.is_changed_by_others():
            self._totals = None
            self._entries.clear()
            self._kept = 0
            self.postings.changed()
        if self._totals is None:
            self._totals = self._counted()
        return self._totals

    def _counted(self) -> Totals:
        totals = Totals()
        for ordinal, files, passages in self.cache.db.execute(
            "SELECT day, count(*), sum(passages) FROM file WHERE day IS NOT NULL GROUP BY day"
        ):
            totals.add(ordinal, files, passages)
        for speakers, passages in self.cache.db.execute("SELECT speakers, passages FROM file WHERE speakers IS NOT NULL"):
            for speaker, count in json.loads(speakers).items():
                totals.add_speaker(terms_of_name(speaker, self.languages), Said(1, count, passages))
        return totals

    def entries(self, paths: Sequence[str]) -> list[Entry]:
        """What is known of each of these files."""
        kept = self._entries
        if missing := [path for path in paths if path not in kept]:
            for path, mtime_ns, *values in self.cache.db.execute(_ENTRIES, (json.dumps(missing),)):
                kept[path] = entry = entry_of(Words(*values), mtime_ns, self.languages)
                self._kept += entry.length
        found = [kept[path] for path in paths]
        while self._kept > KEPT_TERMS and kept:
            self._drop(next(iter(kept)))
        return found

    def _drop(self, path: str) -> None:
        if entry := self._entries.pop(path, None):
            self._kept -= entry.length


def _row(number: int, path: str, stamp: tuple[int, int], added: Added) -> tuple[object, ...]:
    """The values of `_PUT`, in the order of the table's columns."""
    words = added.words
    found = words.day, added.mtime_ns, words.passages, words.length, words.speakers, words.units
    return number, path, *stamp, added.version, added.header, *found
