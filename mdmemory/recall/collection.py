"""What recall knows of every file: its passages, and how common each word, speaker and date is in all of them. Floor 2."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any

from mdmemory.recall.cache import Cache
from mdmemory.recall.dates import Part, parts_of
from mdmemory.recall.passages import Counts, Passage, passages_of
from mdmemory.recall.postings import Postings
from mdmemory.recall.tokens import ENGLISH, single_characters, tokens

KEPT_ENTRIES = 2_000
_ENTRIES = """
    SELECT path, day, mtime_ns, speakers, units, name, about, body FROM file JOIN terms ON terms.rowid = file.id
    WHERE path IN (SELECT value FROM json_each(?))
"""


@dataclass(frozen=True, slots=True)
class Document:
    """What of a file is searched.

    Args:
        name: its path and name.
        about: its description, tags and date.
        day: the date that it states.
        before: lines of the file before the text.
    """

    text: str
    name: str = ""
    about: str = ""
    day: date | None = None
    before: int = 0


@dataclass(frozen=True)  # without slots: what is computed once is kept in the instance
class Entry:
    """One file.

    Args:
        head: of a conversation, the terms of its name and of what it is about; those of a note are its first passage.
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
        """Its passages, measured when it is first a candidate."""
        return Counts(self.passages)

    @cached_property
    def labels(self) -> Counter[str]:
        """How often each term of a speaker's name stands before a turn."""
        found: Counter[str] = Counter()
        for speaker, turns in _turns(self.passages).items():
            for term in self.names[speaker]:
                found[term] += turns
        return found

    @cached_property
    def length(self) -> int:
        """In terms, the labels of the turns included."""
        return len(self.head) + sum(passage.size for passage in self.passages) + self.labels.total()


@dataclass(slots=True)
class Said:
    """A speaker's files, their turns, and all turns in those files."""

    files: int = 0
    turns: int = 0
    of_turns: int = 0


@dataclass(slots=True)
class Totals:
    """What is counted over all files.

    Args:
        said: speakers by the terms of their names.
        named: speakers by each term of their names.
    """

    files: int = 0
    passages: int = 0
    dates: Counter[Part] = field(default_factory=Counter)
    said: dict[tuple[str, ...], Said] = field(default_factory=dict)
    named: defaultdict[str, set[tuple[str, ...]]] = field(default_factory=lambda: defaultdict(set))

    def add(self, day: int, files: int, passages: int) -> None:
        """Count files of one day; negative numbers take them out."""
        self.files += files
        self.passages += passages
        for part in parts_of(date.fromordinal(day)):
            self.dates[part] += files

    def add_speaker(self, name: tuple[str, ...], sign: int, turns: int, of_turns: int) -> None:
        """Count a speaker in one more file, or one less."""
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

    def include(self, other: Totals) -> None:
        """Count what others counted too."""
        self.files += other.files
        self.passages += other.passages
        self.dates.update(other.dates)
        for name, said in other.said.items():
            mine = self.said.setdefault(name, Said())
            mine.files, mine.turns, mine.of_turns = mine.files + said.files, mine.turns + said.turns, mine.of_turns + said.of_turns
            for term in name:
                self.named[term].add(name)


class Collection:
    """Every file, kept up to date one by one."""

    def __init__(self, languages: tuple[str, ...] = ENGLISH, cache: Cache | None = None) -> None:
        self.languages = languages
        self.cache = cache or Cache()
        self.postings = Postings(self.cache.db)
        self._totals: Totals | None = None
        self._entries: dict[str, Entry] = {}

    def put(self, path: str, document: Document, mtime_ns: int) -> None:
        """Add a file, or replace what was known of it."""
        passages = passages_of(document.text, self.languages, before=document.before)
        name, about = self._head(document.name), self._head(document.about)
        units = [_unit(passage) for passage in passages]
        turns = _turns(passages)
        if (name or about) and not turns:  # of a note, what it says that it is about is a passage like another
            words = len(f"{document.name} {document.about}".split())
            units.insert(0, (1, max(1, document.before), words, len(name) + len(about)))
        day = document.day or datetime.fromtimestamp(mtime_ns // 10**9, UTC).date()
        speakers = json.dumps(turns) if turns else None
        values = (day.toordinal(), mtime_ns, len(units), speakers, json.dumps(units), path)
        with self.cache.changing():
            number = self._cleared(path)
            if number is None:
                into = "INSERT INTO file(day, mtime_ns, passages, speakers, units, path) VALUES (?, ?, ?, ?, ?, ?)"
                number = int(self.cache.db.execute(into, values).lastrowid or 0)
            else:
                changed = "UPDATE file SET day = ?, mtime_ns = ?, passages = ?, speakers = ?, units = ? WHERE path = ?"
                self.cache.db.execute(changed, values)
            self._count(day.toordinal(), len(units), speakers, 1)
            labels = [term for speaker in turns for term in tokens(speaker, self.languages)]
            body = "\n".join([" ".join(labels), *(passage.text for passage in passages)])
            self.postings.put(number, name, about, body)

    def touch(self, path: str, document: Document, mtime_ns: int) -> bool:
        """Note that a file has another time and the same words; False when it is not known."""
        found = self.cache.db.execute("SELECT day FROM file WHERE path = ? AND day IS NOT NULL", (path,)).fetchone()
        if found is None:
            return False
        day = (document.day or datetime.fromtimestamp(mtime_ns // 10**9, UTC).date()).toordinal()
        if self._totals is not None:
            self._totals.add(found[0], -1, 0)
            self._totals.add(day, 1, 0)
        self._entries.pop(path, None)
        self.cache.db.execute("UPDATE file SET day = ?, mtime_ns = ? WHERE path = ?", (day, mtime_ns, path))
        return True

    def remove(self, path: str) -> None:
        """Forget a file, known or not."""
        with self.cache.changing():
            if self._cleared(path) is not None:
                gone = "UPDATE file SET day = NULL, mtime_ns = NULL, passages = NULL, speakers = NULL, units = NULL WHERE path = ?"
                self.cache.db.execute(gone, (path,))

    def _cleared(self, path: str) -> int | None:
        """The number of a file after its words are taken out; None when it never was there."""
        self._entries.pop(path, None)
        there = "SELECT id, day, passages, speakers FROM file WHERE path = ?"
        found = self.cache.db.execute(there, (path,)).fetchone()
        if found is None:
            return None
        number, day, passages, speakers = found
        if day is not None:
            self.postings.remove(number)
            self._count(day, passages, speakers, -1)
        return int(number)

    def _count(self, day: int, passages: int, speakers: str | None, sign: int) -> None:
        if self._totals is not None:
            self._totals.add(day, sign, sign * passages)
            for speaker, turns in json.loads(speakers or "{}").items():
                self._totals.add_speaker(self._name(speaker), sign, turns, passages)

    def _name(self, speaker: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(tokens(speaker, self.languages)))

    def _head(self, text: str) -> tuple[str, ...]:
        return (*tokens(text, self.languages), *single_characters(text))

    def __contains__(self, path: str) -> bool:
        there = "SELECT 1 FROM file WHERE path = ? AND day IS NOT NULL"
        return path in self._entries or self.cache.db.execute(there, (path,)).fetchone() is not None

    def holding(self, term: str) -> int:
        """How many files hold a term."""
        return self.postings.holding(term)

    def find(self, terms: Iterable[str], files: int, limit: int, allowed: AbstractSet[str] | None = None) -> list[str]:
        """The candidates, as `Postings.find` has them."""
        return self.postings.find(terms, files, limit, allowed)

    def totals(self) -> Totals:
        """What is counted over all files; anew when another process changed some."""
        if self.cache.is_changed_by_others():
            self._totals = None
            self._entries.clear()
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
                totals.add_speaker(self._name(speaker), 1, count, passages)
        return totals

    def entries(self, paths: Sequence[str]) -> list[Entry]:
        """What is known of each of these files."""
        kept = self._entries
        missing = [path for path in paths if path not in kept]
        if len(kept) + len(missing) > KEPT_ENTRIES:
            self._entries = kept = {path: kept[path] for path in paths if path in kept}
        if missing:
            for path, *values in self.cache.db.execute(_ENTRIES, (json.dumps(missing),)):
                kept[path] = self._entry(*values)
        return [kept[path] for path in paths]

    def _entry(self, day: int, mtime_ns: int, speakers: str | None, units: str, name: str, about: str, body: str) -> Entry:
        texts = body.split("\n")[1:]
        cut = json.loads(units)
        names = {speaker: self._name(speaker) for speaker in json.loads(speakers or "{}")}
        head = (*name.split(), *about.split())
        passages = [_passage(unit, text) for unit, text in zip(cut[len(cut) - len(texts) :], texts, strict=True)]
        if len(cut) > len(texts):
            passages.insert(0, _passage(cut[0], " ".join(head)))
            head = ()
        return Entry(mtime_ns, date.fromordinal(day), head, tuple(passages), names)


def _turns(passages: Iterable[Passage]) -> dict[str, int]:
    """How many turns each speaker has."""
    return Counter(passage.speaker for passage in passages if passage.speaker)


def _unit(passage: Passage) -> tuple[object, ...]:
    place = (passage.line, passage.end_line, passage.words, passage.size)
    return (*place, passage.speaker, passage.asked) if passage.speaker else place


def _passage(unit: Sequence[Any], text: str) -> Passage:
    line, end_line, words, size, speaker, asked = unit if len(unit) == 6 else (*unit, None, "")
    return Passage(line, end_line, speaker, text, size, asked, words)
