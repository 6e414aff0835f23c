"""One file as recall knows it: what of it is searched, the terms that are kept, and its passages made from them. Floor 2."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import NamedTuple

from mdmemory.recall.passages import Counts, Passages, passages_of
from mdmemory.recall.tokens import searched, tokens


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


class Words(NamedTuple):
    """What is kept of a file.

    Args:
        day: counted from year 1.
        passages: how many.
        speakers: JSON object of each one's turns; None when nobody speaks.
        units: JSON array of the passages' columns.
        name, about, body: terms, parted by spaces.
    """

    day: int
    passages: int
    speakers: str | None
    units: str
    name: str
    about: str
    body: str

    @property
    def length(self) -> int:
        """In terms, roughly: what parts them is counted."""
        return sum(text.count(" ") + text.count("\n") + 1 for text in (self.name, self.about, self.body))


def words_of(document: Document, mtime_ns: int, languages: tuple[str, ...]) -> Words:
    """Cut a file into passages, and these into terms."""
    name, about = " ".join(searched(document.name, languages)), " ".join(searched(document.about, languages))
    head, length = f"{name} {about}".strip(), len(f"{document.name} {document.about}".split())
    passages = passages_of(document.text, languages, before=document.before, head=head, head_words=length)
    turns = Counter(filter(None, passages.speakers)) if passages.speakers else {}
    columns = [passages.lines, passages.end_lines, passages.words, passages.sizes, passages.lengths]
    units = json.dumps([*columns, passages.speakers, passages.asked]) if turns else str(columns)  # numbers look alike in both
    body = passages.text if turns or not head else passages.text[1 + len(head) :]
    labels = [term for speaker in turns for term in tokens(speaker, languages)]
    day, speakers = day_of(document, mtime_ns), json.dumps(turns) if turns else None
    return Words(day, len(passages.lines), speakers, units, name, about, " ".join(labels) + body)


def entry_of(words: Words, mtime_ns: int, languages: tuple[str, ...]) -> Entry:
    """The passages again."""
    lines, end_lines, lengths_in_words, sizes, lengths, *spoken = json.loads(words.units)
    names = {speaker: terms_of_name(speaker, languages) for speaker in json.loads(words.speakers)} if words.speakers else {}
    text, head = words.body[words.body.index("\n") :], f"{words.name} {words.about}".strip()
    if head and not names:
        text, head = f"\n{head}{text}", ""
    passages = Passages(text, lines, end_lines, lengths_in_words, sizes, lengths, *spoken)
    return Entry(mtime_ns, date.fromordinal(words.day), tuple(head.split()), passages, names)


def day_of(document: Document, mtime_ns: int) -> int:
    """The day that a file states, else that of its last change (UTC), counted from year 1."""
    return (document.day or datetime.fromtimestamp(mtime_ns // 10**9, UTC).date()).toordinal()


def terms_of_name(speaker: str, languages: tuple[str, ...]) -> tuple[str, ...]:
    """The terms of a speaker's name, each once."""
    return tuple(dict.fromkeys(tokens(speaker, languages)))
