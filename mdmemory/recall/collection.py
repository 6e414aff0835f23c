"""What recall knows of every file: its passages, and how common each word, speaker and date is in all of them. Floor 2."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, date, datetime

from mdmemory.recall.cache import Cache
from mdmemory.recall.dates import Part, parts_of
from mdmemory.recall.passages import Counts, Passages, passages_of
from mdmemory.recall.postings import Postings
from mdmemory.recall.tokens import ENGLISH, single_characters, tokens

KEPT_TERMS = 2_000_000  # of candidates, for the next search: some 30 MB
_ENTRIES = """
    SELECT path, day, mtime_ns, speakers, units, c0, c1, c2 FROM file JOIN terms_content AS text ON text.id = file.id
    WHERE path IN (SELECT value FROM json_each(?))
"""  # FTS5's own table of the columns (https://sqlite.org/fts5.html#fts5_data_structures): by way of `terms` it takes twice as long


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


class Entry:
    """One file.

    Args:
        head: of a conversation, the terms of its name and of what it is about; those of a note are its first passage.
        day: the date that it states, else that of its last change; UTC.
        names: speaker to the terms of their name.

    Attributes:
        counts: its passages, measured.
        labels: how often each term of a speaker's name stands before a turn.
        length: in terms, the labels of the turns included.
    """

    __slots__ = ("counts", "day", "head", "labels", "length", "mtime_ns", "names", "passages")

    def __init__(
        self, mtime_ns: int, day: date, head: tuple[str, ...], passages: Passages, names: Mapping[str, tuple[str, ...]]
    ) -> None:
        self.mtime_ns, self.day, self.head, self.passages, self.names = mtime_ns, day, head, passages, names
        self.counts = Counts(passages)
        self.labels: dict[str, int] = {}
        for speaker in passages.speakers:
            for term in names[speaker] if speaker else ():
                self.labels[term] = self.labels.get(term, 0) + 1
        self.length = len(head) + sum(passages.sizes) + sum(self.labels.values())


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
        self._kept = 0

    def put(self, path: str, document: Document, mtime_ns: int) -> None:
        """Add a file, or replace what was known of it."""
        name, about = self._head(document.name), self._head(document.about)
        head, words = (*name, *about), len(f"{document.name} {document.about}".split())
        passages = passages_of(document.text, self.languages, before=document.before, head=head, head_words=words)
        turns, count = Counter(speaker for speaker in passages.speakers if speaker), len(passages.lines)
        day = document.day or datetime.fromtimestamp(mtime_ns // 10**9, UTC).date()
        speakers = json.dumps(turns) if turns else None
        columns = passages.lines, passages.end_lines, passages.words, passages.sizes, passages.lengths
        units = json.dumps([*columns, passages.speakers, passages.asked] if turns else columns)
        body = passages.text.removeprefix("\n" + " ".join(head)) if head and not turns else passages.text
        values = (day.toordinal(), mtime_ns, count, speakers, units, path)
        with self.cache.changing():
            number = self._cleared(path)
            if number is None:
                into = "INSERT INTO file(day, mtime_ns, passages, speakers, units, path) VALUES (?, ?, ?, ?, ?, ?)"
                number = int(self.cache.db.execute(into, values).lastrowid or 0)
            else:
                changed = "UPDATE file SET day = ?, mtime_ns = ?, passages = ?, speakers = ?, units = ? WHERE path = ?"
                self.cache.db.execute(changed, values)
            self._count(day.toordinal(), count, speakers, 1)
            labels = [term for speaker in turns for term in tokens(speaker, self.languages)]
            self.postings.put(number, name, about, " ".join(labels) + body)

    def touch(self, path: str, document: Document, mtime_ns: int) -> bool:
        """Note that a file has another time and the same words; False when it is not known."""
        found = self.cache.db.execute("SELECT day FROM file WHERE path = ? AND day IS NOT NULL", (path,)).fetchone()
        if found is None:
            return False
        day = (document.day or datetime.fromtimestamp(mtime_ns // 10**9, UTC).date()).toordinal()
        if self._totals is not None:
            self._totals.add(found[0], -1, 0)
            self._totals.add(day, 1, 0)
        self._drop(path)
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
        self._drop(path)
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

    def holding(self, terms: Sequence[str]) -> dict[str, int]:
        """How many files hold each term."""
        return self.postings.holding(terms)

    def find(self, terms: Iterable[str], files: int, limit: int, allowed: AbstractSet[str] | None = None) -> list[str]:
        """The candidates, as `Postings.find` has them."""
        return self.postings.find(terms, files, limit, allowed)

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
                totals.add_speaker(self._name(speaker), 1, count, passages)
        return totals

    def entries(self, paths: Sequence[str]) -> list[Entry]:
        """What is known of each of these files."""
        kept = self._entries
        if missing := [path for path in paths if path not in kept]:
            for path, *values in self.cache.db.execute(_ENTRIES, (json.dumps(missing),)):
                kept[path] = entry = self._entry(*values)
                self._kept += entry.length
        found = [kept[path] for path in paths]
        while self._kept > KEPT_TERMS and kept:
            self._drop(next(iter(kept)))
        return found

    def _drop(self, path: str) -> None:
        if entry := self._entries.pop(path, None):
            self._kept -= entry.length

    def _entry(self, day: int, mtime_ns: int, speakers: str | None, units: str, name: str, about: str, body: str) -> Entry:
        lines, end_lines, words, sizes, lengths, *spoken = json.loads(units)
        names = {speaker: self._name(speaker) for speaker in json.loads(speakers)} if speakers else {}
        text, head = body[body.index("\n") :], f"{name} {about}".strip()
        if head and not names:
            text, head = f"\n{head}{text}", ""
        passages = Passages(text, lines, end_lines, words, sizes, lengths, *spoken)
        return Entry(mtime_ns, date.fromordinal(day), tuple(head.split()), passages, names)
