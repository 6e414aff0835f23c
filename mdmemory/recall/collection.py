"""What recall knows of every file: its passages, and how common each word, speaker and date is in all of them. Floor 2."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property

from mdmemory.recall.dates import Part, parts_of
from mdmemory.recall.passages import Counts, Passage, passages_of
from mdmemory.recall.postings import Postings
from mdmemory.recall.tokens import ENGLISH, single_characters, tokens


@dataclass(frozen=True, slots=True)
class Document:
    """What of a file is searched.

    Args:
        head: its path, name, description, tags and date.
        day: the date that it states.
        before: lines of the file before the text.
    """

    text: str
    head: str = ""
    day: date | None = None
    before: int = 0


@dataclass(frozen=True)  # without slots: what is computed once is kept in the instance
class Entry:
    """One file.

    Args:
        head: of a conversation, the terms of its path, name, description, tags and date; those of a note are its first passage.
        day: the date that it states, else that of its last change; UTC.
        names: speaker to the terms of their name.
    """

    mtime_ns: int
    day: date
    head: tuple[str, ...]
    passages: tuple[Passage, ...]
    names: Mapping[str, tuple[str, ...]]

    @cached_property
    def counts(self) -> Counts:
        """The weights of terms in passages; counted when the file is first a candidate."""
        return Counts(self.passages)

    @cached_property
    def words(self) -> Mapping[str, int]:
        """How often each term stands in the file, the labels of the turns included."""
        found = Counter(self.head)
        for passage in self.passages:
            found.update(passage.terms)
        for speaker, turns in self.turns.items():
            for term in self.names[speaker]:
                found[term] += turns
        return found

    @cached_property
    def length(self) -> int:
        """The sum of `words`."""
        return sum(self.words.values())

    @cached_property
    def turns(self) -> Mapping[str, int]:
        """How many turns each speaker has."""
        return Counter(passage.speaker for passage in self.passages if passage.speaker)

    def distinct(self) -> set[str]:
        """Every term of the file once."""
        terms = set(self.head)
        for passage in self.passages:
            terms.update(passage.terms)
        return terms.union(*self.names.values())


@dataclass(slots=True)
class Said:
    """A speaker's files, their turns, and all turns in those files."""

    files: int = 0
    turns: int = 0
    of_turns: int = 0


class Collection:
    """Every file, kept up to date one by one."""

    def __init__(self, languages: tuple[str, ...] = ENGLISH) -> None:
        self.languages = languages
        self.entries: dict[str, Entry] = {}
        self.postings = Postings()
        self.passages = 0
        self.passages_holding: Counter[str] = Counter()
        self.dates: Counter[Part] = Counter()
        self.said: dict[tuple[str, ...], Said] = {}
        """Speakers by the terms of their names."""
        self.named: defaultdict[str, set[tuple[str, ...]]] = defaultdict(set)
        """Speakers by each term of their names."""

    def put(self, path: str, document: Document, mtime_ns: int) -> None:
        """Add a file, or replace what was known of it."""
        self.remove(path)
        passages = passages_of(document.text, self.languages, before=document.before)
        names = {
            passage.speaker: tuple(dict.fromkeys(tokens(passage.speaker, self.languages)))
            for passage in passages
            if passage.speaker
        }
        terms = (*tokens(document.head, self.languages), *single_characters(document.head))
        if terms and not names:  # of a note, what it says that it is about is a passage like another
            passages = (Passage(1, max(1, document.before), None, terms, (), len(document.head.split())), *passages)
            terms = ()
        day = document.day or datetime.fromtimestamp(mtime_ns // 10**9, UTC).date()
        entry = self.entries[path] = Entry(mtime_ns, day, terms, passages, names)
        self.postings.put(path, entry.distinct())
        self._tally(entry, 1)

    def remove(self, path: str) -> None:
        """Forget a file, known or not."""
        entry = self.entries.pop(path, None)
        if entry is not None:
            self.postings.remove(path, entry.distinct())
            self._tally(entry, -1)

    def _tally(self, entry: Entry, sign: int) -> None:
        self.passages += sign * len(entry.passages)
        holding = self.passages_holding
        for passage in entry.passages:
            if sign > 0:
                holding.update(set(passage.terms))
            else:
                holding.subtract(gone := set(passage.terms))
                for term in gone:
                    if not holding[term]:
                        del holding[term]
        for part in parts_of(entry.day):
            self.dates[part] += sign
        for speaker, turns in entry.turns.items() if entry.names else ():
            self._tally_speaker(entry.names[speaker], turns, len(entry.passages), sign)

    def _tally_speaker(self, name: tuple[str, ...], turns: int, of_turns: int, sign: int) -> None:
        said = self.said.setdefault(name, Said())
        said.files += sign
        said.turns += sign * turns
        said.of_turns += sign * of_turns
        for term in name:
            self.named[term].add(name)
        if not said.files:
            del self.said[name]
            for term in name:
                self.named[term].discard(name)
