"""Recall for a backend that keeps the words of the files itself: one round trip a query. Floor 2."""

from __future__ import annotations

import json
import time
from collections.abc import Collection as Paths
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Final

from mdmemory.backends.term_tables import Kept, Lookup, Noted, NotKept, TermTables
from mdmemory.recall.entries import Document, Entry, Words, entry_of, terms_of_name, words_of
from mdmemory.recall.postings import how_many
from mdmemory.recall.ranking import Ranking
from mdmemory.recall.tokens import terms_with_words
from mdmemory.recall.totals import Said, Totals

FORM: Final = 1  # of what is kept: another number when terms or passages are made another way
KEPT_TERMS: Final = 200_000  # of candidates, for the next query: some 3 MB
NOTED_AT_ONCE: Final = 100


def form_of(languages: Iterable[str]) -> str:
    """What tells terms from those that were made another way."""
    return " ".join((str(FORM), *languages))


class RemoteIndex:
    """Every memory file, kept by the backend.

    Args:
        tables: made for `form_of(languages)`.
    """

    def __init__(self, languages: tuple[str, ...], tables: TermTables) -> None:
        self.languages = languages
        self._tables = tables
        self._read: dict[str, Noted] = {}
        self._entries: dict[str, tuple[int, Entry]] = {}
        self._kept = 0
        self._can_note = True
        self._counted: int | None = None

    def put(self, path: str, document: Document, mtime_ns: int, etag: str | None, size: int, header: str) -> None:
        """Take in a file that was read; the backend is told before the next query.

        Args:
            mtime_ns: as the backend told it, though its clock be ahead: with the size it says which bytes were read.
            header: what `Scan.notes` is to bring back.
        """
        self._drop(path)
        words = words_of(document, min(mtime_ns, time.time_ns()), self.languages)
        self._read[path] = Noted(path, etag, size, mtime_ns, header, *words)

    def remove(self, path: str) -> None:
        """Forget a file, known or not: the backend does so by itself."""
        self._read.pop(path, None)
        self._drop(path)

    async def note(self, *, fewest: int = 1) -> None:
        """Tell the backend what was read, if that is at least so many files, and it keeps anything."""
        while self._can_note and len(self._read) >= fewest:
            some = list(self._read.values())[:NOTED_AT_ONCE]
            try:
                await self._tables.note(some)
            except NotKept:
                self._can_note = False
            else:
                self._noted(some)

    def is_emptied(self, files: int) -> bool:
        """Whether of so many files less than half were kept at the last query, so that they must be read again."""
        return self._counted is not None and self._counted * 2 < files

    async def prepared(self, query: str, limit: int, allowed: AbstractSet[str] | None = None, also: Paths[str] = ()) -> LookedUp:
        """What a query is asked of, brought by one round trip."""
        await self.note(fewest=NOTED_AT_ONCE)
        held = dict(self._entries)  # another query may drop some meanwhile
        have = {path: seq for path, (seq, _) in held.items()}
        terms = tuple(terms_with_words(query, self.languages))
        read = list(self._read.values())
        find = partial(self._tables.find, terms, how_many(limit), allowed, also=also, have=have)
        try:
            lookup = await find(noting=read if self._can_note else ())
        except NotKept:
            self._can_note = False
            lookup = await find()
        if self._can_note:
            self._noted(read)
        else:
            lookup = with_others(lookup, read, allowed, also)
        self._counted = sum(files for files, _ in lookup.days.values())
        entries = {each.path: self._entry(each) or held[each.path][1] for each in (*lookup.found, *lookup.also)}
        while self._kept > KEPT_TERMS and self._entries:
            self._drop(next(iter(self._entries)))
        return LookedUp(self.languages, lookup, entries)

    async def for_query(self, query: str, limit: int, allowed: AbstractSet[str] | None = None, also: Paths[str] = ()) -> Ranking:
        """What ranks the files for a query."""
        return Ranking(await self.prepared(query, limit, allowed, also))

    def _noted(self, files: Iterable[Noted]) -> None:
        for file in files:
            if self._read.get(file.path) is file:
                del self._read[file.path]

    def _entry(self, kept: Kept) -> Entry | None:
        """What was sent of a file; None where it was not, as it is here."""
        if kept.units is None:
            return None
        words = Words(kept.day, 0, kept.speakers, kept.units, kept.name or "", kept.about or "", kept.body or "")
        entry = entry_of(words, kept.mtime_ns, self.languages)
        self._drop(kept.path)
        self._entries[kept.path] = kept.seq, entry
        self._kept += entry.length
        return entry

    def _drop(self, path: str) -> None:
        if found := self._entries.pop(path, None):
            self._kept -= found[1].length


def with_others(lookup: Lookup, files: Iterable[Noted], allowed: AbstractSet[str] | None, also: Paths[str]) -> Lookup:
    """What the backend told, and the same of files that it can't keep, as it may only be read."""
    days, speakers, holding = dict(lookup.days), dict(lookup.speakers), dict(lookup.holding)
    found, others = ({each.path: each for each in kept} for kept in (lookup.found, lookup.also))
    for file in files:
        for kept in (found, others):
            kept.pop(file.path, None)  # of bytes that are not there any more
        count, passages = days.get(file.day, (0, 0))
        days[file.day] = count + 1, passages + file.passages
        for speaker, turns in json.loads(file.speakers or "{}").items():
            said = speakers.get(speaker, (0, 0, 0))
            speakers[speaker] = said[0] + 1, said[1] + turns, said[2] + file.passages
        words = {*file.name.split(), *file.about.split(), *file.body.split()}
        held = [term for term in holding if term in words]
        holding |= {term: holding[term] + 1 for term in held}
        each = Kept(file.path, 0, file.day, file.mtime_ns, file.speakers, file.units, file.name, file.about, file.body)
        if held and (allowed is None or file.path in allowed):
            found[file.path] = each
        elif file.path in also:
            others[file.path] = each
    return Lookup(days, speakers, holding, list(found.values()), list(others.values()))


class LookedUp:
    """What the backend told for one query: a `PartSource`."""

    def __init__(self, languages: tuple[str, ...], lookup: Lookup, entries: Mapping[str, Entry]) -> None:
        self.languages = languages
        self._lookup, self._entries = lookup, entries

    def totals(self) -> Totals:
        """What is counted over all files."""
        totals = Totals()
        for day, (files, passages) in self._lookup.days.items():
            totals.add(day, files, passages)
        for speaker, (files, turns, of_turns) in self._lookup.speakers.items():
            totals.add_speaker(terms_of_name(speaker, self.languages), Said(files, turns, of_turns))
        return totals

    def holding(self, terms: Sequence[str]) -> dict[str, int]:
        """How many files hold each term of the query."""
        return {term: self._lookup.holding.get(term, 0) for term in terms}

    def find(self, weights: Mapping[str, float], files: int, limit: int, allowed: AbstractSet[str] | None = None) -> list[str]:
        """The candidates, which the backend chose."""
        return [kept.path for kept in self._lookup.found]

    def match(self, weights: Mapping[str, float], limit: int, allowed: AbstractSet[str] | None = None) -> list[str]:
        """The candidates that hold any of the terms."""
        wanted = frozenset(weights)
        return [path for path in self.find(weights, 0, limit) if self._holds(self._entries[path], wanted)][:limit]

    def entries(self, paths: Sequence[str]) -> list[Entry]:
        """What is known of each of these files."""
        return [self._entries[path] for path in paths]

    def __contains__(self, path: str) -> bool:
        return path in self._entries

    @staticmethod
    def _holds(entry: Entry, terms: AbstractSet[str]) -> bool:
        return bool(entry.counts.find(tuple(terms)) or terms & {*entry.head, *entry.labels})
