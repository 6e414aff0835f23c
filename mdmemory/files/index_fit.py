"""Which lines of the index stay when there are more than a prompt should take. Floor 1."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mdmemory.files.index_lines import Listed, render_line

ALWAYS_SHOWN = 10  # the newest files, which people's lines don't push out of the prompt


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of a prompt the index takes; bytes as UTF-8."""

    max_lines: int = 200
    max_bytes: int = 25_000


DEFAULT_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Row:
    """A line on its way to the output.

    Args:
        text, end: the line and its ending.
        targets: the memory files that it points to.
        pure: it is nothing but a pointer to one file.
        ours: it is our rendering of that file's header.
        inside: it lies in a fence or comment that an earlier line opened.
        sealed: it is or follows the opening of a fence or comment that never closes.
        spacer: a blank line of ours that stands only while a line of ours does.
    """

    text: str
    end: str
    targets: tuple[str, ...] = ()
    pure: bool = False
    ours: bool = False
    inside: bool = False
    sealed: bool = False
    spacer: bool = False

    @property
    def size(self) -> int:
        # Our line endings follow the file's, which may change with what is dropped: so they count as the longest.
        ending = "\r\n" if self.ours or not self.end else self.end
        return len((self.text + ending).encode("utf-8", "surrogatepass"))


def our_row(path: str, listed: Listed, end: str) -> Row:
    """Our pointer line of a memory file."""
    return Row(render_line(path, listed), end, (path,), pure=True, ours=True)


def newest_rows(wanted: Mapping[str, Listed], most: int, end: str) -> list[Row]:
    """Our lines of at most so many files, pinned before newer before older ones; in the order of age, the newest last."""
    best = heapq.nlargest(most, wanted, key=lambda path: _rank(path, wanted))
    best.sort(key=lambda path: (wanted[path].mtime_ns, path))
    return [our_row(path, wanted[path], end) for path in best]


def shown_in(rows: Iterable[Row], everything: Mapping[str, Listed]) -> int:
    """How many memory files the rows point to."""
    return sum(target in everything for target in {target for row in rows for target in row.targets})


def fit_file(rows: Sequence[Row], everything: Mapping[str, Listed], limits: Limits, notice: str) -> tuple[list[Row], bool]:
    """The rows that stay in the file: all of people's, and of ours the pinned, then the newest.

    Args:
        notice: the last line, at its longest, that says how many are left out.

    Returns:
        The rows, and whether that line is called for and has room.
    """
    if _all_fit(rows, everything, limits):
        return list(rows), False
    room = _Room(limits, notice)
    for row in rows:
        if not row.ours:
            room.force(row)
    kept = _take_ours(rows, everything, room, set())
    if not kept and any(row.spacer for row in rows):
        return fit_file([row for row in rows if not row.spacer and not row.ours], everything, limits, notice)
    return [row for position, row in enumerate(rows) if not row.ours or position in kept], room.lines >= 0 and room.bytes >= 0


def fit_prompt(rows: Sequence[Row], everything: Mapping[str, Listed], limits: Limits, notice: str) -> tuple[list[Row], bool, int]:
    """The rows a prompt shows: the pinned and the newest files, then people's lines from the top, then our other lines.

    Returns:
        The rows, whether the last line has room, and how many of people's lines are cut.
    """
    if _all_fit(rows, everything, limits):
        return list(rows), False, 0
    room = _Room(limits, notice)
    kept = {position for position in _first(rows, everything) if room.take(rows[position])}
    theirs = [position for position, row in enumerate(rows) if not row.ours and position not in kept]
    cut = next((number for number, position in enumerate(theirs) if not room.take(rows[position])), len(theirs))
    while 0 < cut < len(theirs) and rows[theirs[cut]].inside:
        cut -= 1  # a fence or comment that can't be shown to its end isn't begun
    kept = _take_ours(rows, everything, room, kept.union(theirs[:cut]))
    shown = [row for position, row in enumerate(rows) if position in kept]
    return shown, room.lines >= 0 and room.bytes >= 0, sum(not rows[position].spacer for position in theirs[cut:])


class _Room:
    def __init__(self, limits: Limits, notice: str) -> None:
        self.lines = limits.max_lines - 1
        self.bytes = limits.max_bytes - Row(notice, "").size

    def force(self, row: Row) -> None:
        self.lines -= 1
        self.bytes -= row.size

    def take(self, row: Row) -> bool:
        if self.lines < 1 or self.bytes < row.size:
            return False
        self.force(row)
        return True


def _first(rows: Sequence[Row], everything: Mapping[str, Listed]) -> list[int]:
    """Where the pinned and the newest files stand, whoever wrote the line, the most important first."""
    must = {path for path, listed in everything.items() if listed.pinned}
    must.update(heapq.nlargest(ALWAYS_SHOWN, everything, key=lambda path: everything[path].mtime_ns))
    ranks = {
        position: max(_rank(path, everything) for path in paths)
        for position, row in enumerate(rows)
        if (paths := must.intersection(row.targets))
    }
    return sorted(ranks, key=ranks.__getitem__, reverse=True)


def _take_ours(rows: Sequence[Row], everything: Mapping[str, Listed], room: _Room, kept: set[int]) -> set[int]:
    # A line too long for the rest of the room is passed over, not the end: so a second update drops and adds nothing.
    ours = [position for position, row in enumerate(rows) if row.ours and position not in kept]
    ours.sort(key=lambda position: _rank(rows[position].targets[0], everything), reverse=True)
    return kept | {position for position in ours if room.take(rows[position])}


def _all_fit(rows: Sequence[Row], everything: Mapping[str, Listed], limits: Limits) -> bool:
    fits = len(rows) <= limits.max_lines and sum(row.size for row in rows) <= limits.max_bytes
    return fits and shown_in(rows, everything) == len(everything)


def _rank(path: str, everything: Mapping[str, Listed]) -> tuple[bool, int, str]:
    listed = everything.get(path)
    return (False, 0, path) if listed is None else (listed.pinned, listed.mtime_ns, path)
