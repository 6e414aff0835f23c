"""What is counted over all files: how common each day and each speaker is. Floor 2."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import date

from mdmemory.recall.dates import Part, parts_of


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

    def add_speaker(self, name: tuple[str, ...], more: Said) -> None:
        """Count a speaker in more files; negative numbers take them out."""
        said = self.said.setdefault(name, Said())
        said.files += more.files
        said.turns += more.turns
        said.of_turns += more.of_turns
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
            self.add_speaker(name, said)
