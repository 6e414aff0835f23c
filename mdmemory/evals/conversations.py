"""Recorded conversations as memory files, and questions with the turns that answer them. Floor 6."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from mdmemory.files.memory_file import new_file
from mdmemory.recall.dates import in_words


@dataclass(frozen=True, slots=True)
class Spoken:
    """One turn.

    Args:
        id: as the data set's evidence names it.
    """

    id: str
    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """One session.

    Args:
        time: of day, as the data set writes it; may be empty.
    """

    id: str
    day: date | None
    turns: Sequence[Spoken]
    time: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and where the answer is.

    Args:
        sessions, turns: ids of the evidence.
    """

    text: str
    category: str
    sessions: frozenset[str]
    turns: frozenset[str]


@dataclass(frozen=True, slots=True)
class Conversation:
    """The sessions that are searched together, and the questions about them."""

    id: str
    sessions: Sequence[Recorded]
    questions: Sequence[Question] = field(default=())


def session_file(session: Recorded) -> tuple[bytes, Mapping[int, str]]:
    """A session as a memory file, and the line that each turn stands on."""
    speakers = " and ".join(dict.fromkeys(turn.speaker for turn in session.turns))
    when = f" on {in_words(session.day)}" if session.day else ""
    at = f", {session.time}" if session.time else ""
    lines = [f"{turn.speaker}: {' '.join(turn.text.split())}" for turn in session.turns]
    data = new_file(f"Session {session.id}", f"Conversation of {speakers}{when}{at}", "project", "\n\n".join(lines))
    first = data.count(b"\n") - 2 * (len(lines) - 1)
    return data, {first + 2 * place: turn.id for place, turn in enumerate(session.turns)}
