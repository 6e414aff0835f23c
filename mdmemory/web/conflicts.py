"""Two texts beside each other, line by line. Floor 6, pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

AROUND = 3  # lines that are the same, shown on each side of those that differ


@dataclass(frozen=True, slots=True)
class Pair:
    """A line of each text; None where that text has none.

    Args:
        kind: `same`, `other`, or `skip` for lines that are the same and not shown.
    """

    kind: str
    mine: str | None
    theirs: str | None
    mine_line: int = 0
    theirs_line: int = 0


def side_by_side(mine: str, theirs: str) -> list[Pair]:
    """The lines of both texts, those that are the same in one row; far from any difference they are left out."""
    ours, others = mine.splitlines(), theirs.splitlines()
    found = list[Pair]()
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, ours, others).get_opcodes():
        if tag == "equal":
            same = [Pair("same", line, line, i1 + at + 1, j1 + at + 1) for at, line in enumerate(ours[i1:i2])]
            found += _shortened(same, is_first=i1 == 0 and j1 == 0, is_last=i2 == len(ours) and j2 == len(others))
        else:
            found += _pairs(ours[i1:i2], others[j1:j2], i1, j1)
    return found


def _pairs(ours: Sequence[str], others: Sequence[str], i1: int, j1: int) -> Iterator[Pair]:
    for at, (one, other) in enumerate(zip_longest(ours, others)):
        yield Pair("other", one, other, i1 + at + 1, j1 + at + 1)


def _shortened(same: Sequence[Pair], *, is_first: bool, is_last: bool) -> list[Pair]:
    head, tail = 0 if is_first else AROUND, 0 if is_last else AROUND
    if len(same) <= head + tail + 1:
        return list(same)
    left_out = len(same) - head - tail
    return [*same[:head], Pair("skip", f"{left_out} lines that are the same", None), *same[len(same) - tail :]]
