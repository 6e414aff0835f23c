"""Changes: what tools, people and programs propose, and how an edit meets what happened meanwhile. Floor 1, pure functions.

A change carries the etag of the bytes it was based on. When the file has moved on, edits of different lines are merged (three-way);
edits of the same lines are a conflict.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import islice

from mdmemory.errors import InvalidArguments

MAX_MERGE_LINES = 10_000
MAX_EXACT_DIFF = 4_000_000  # pairs of lines; above it, lines that stand often are no anchors: coarser, and not slower


@dataclass(frozen=True, slots=True)
class Create:
    """A new file; refused when the path, or one that looks like it, is taken.

    Args:
        restored: whether it was deleted before and comes back: it is no longer counted as forgotten.
        as_is: whether it is taken as people left it elsewhere, with frontmatter that can't be read too.
    """

    path: str
    data: bytes
    restored: bool = False
    as_is: bool = False


@dataclass(frozen=True, slots=True)
class Replace:
    """New bytes for a file.

    Args:
        base: etag of the bytes the change was based on.
        base_data: those bytes, which let the change be merged with one made meanwhile.
        as_is: as of `Create`.
    """

    path: str
    data: bytes
    base: str
    base_data: bytes | None = None
    as_is: bool = False


@dataclass(frozen=True, slots=True)
class Append:
    """Text at the end of a file that is there: many may add to one file at once, and what stands in it stays."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a file; `base` None removes whatever is there.

    Args:
        absorbed: whether another file says now what it said: then it does not count as forgotten.
    """

    path: str
    base: str | None = None
    absorbed: bool = False


@dataclass(frozen=True, slots=True)
class Rename:
    """Move a file, or a folder with all in it, to a free path."""

    path: str
    new_path: str


Change = Create | Replace | Append | Delete | Rename


def edit_text(text: str, old: str, new: str, *, replace_all: bool = False) -> str:
    r"""Replace the one place where `old` stands.

    `\n` in `old` stands for CRLF too, and a text with CRLF line ends gets them in `new`: models write `\n`.

    Raises:
        InvalidArguments: `old` is empty, equal to `new`, missing, or stands in several places; says which lines.
    """
    if not old:
        raise InvalidArguments("old_string is empty; give the exact text to replace, or use Write for a new file")
    flat, old = text.replace("\r\n", "\n"), old.replace("\r\n", "\n")
    places = list(islice(_places(flat, old), 10))
    if not places:
        raise InvalidArguments(
            "old_string was not found. It must match exactly, with spaces and line breaks, without line numbers; Read again"
        )
    if len(places) > 1 and not replace_all:
        lines = ", ".join(str(flat.count("\n", 0, place) + 1) for place in places)
        times = max(len(places), flat.count(old))
        raise InvalidArguments(
            f"old_string stands {times} times (lines {lines}); add text around it to name one, or set replace_all to true"
        )
    edited = (crlf(new) if uses_crlf(text) else new).join(_between(text, flat, old))
    if edited == text:
        raise InvalidArguments("old_string and new_string are the same, so there is nothing to change")
    return edited


def _places(text: str, old: str) -> Iterator[int]:
    """Where `old` begins, also where one place overlaps another."""
    place = text.find(old)
    while place >= 0:
        yield place
        place = text.find(old, place + 1)


def _between(text: str, flat: str, old: str) -> Iterator[str]:
    """What stands around each `old`, as in `text`; `flat` is the text with LF for CRLF."""
    ends = [match.start() - number for number, match in enumerate(re.finditer("\r\n", text))]
    start = 0
    for piece in flat.split(old):
        end = start + len(piece)
        yield text[start + bisect_left(ends, start) : end + bisect_left(ends, end)]
        start = end + len(old)


def crlf(text: str) -> str:
    """The text with every line end as CRLF."""
    return re.sub(r"\r?\n", "\r\n", text)


def uses_crlf(text: str) -> bool:
    """Whether most of the text's line ends are CRLF."""
    return text.count("\r\n") * 2 > text.count("\n")


def merge(base: str, ours: str, theirs: str, *, keep_both_insertions: bool = False) -> str | None:
    """Three-way merge by lines.

    Args:
        base: what both started from.
        ours, theirs: the two edits; where both only insert at one place, theirs comes first.
        keep_both_insertions: whether two insertions at the same place are both kept (the index) or conflict (prose).

    Returns:
        The merged text, or None when both changed the same lines.
    """
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    # A missing final newline is one bit, merged by itself: as a line of its own it would make every two appends a conflict.
    ended = [text.endswith("\n") or not text for text in (base, ours, theirs)]
    final = ended[1] if ended[1] != ended[0] else ended[2]
    base_lines, our_lines, their_lines = (_lines(text) for text in (base, ours, theirs))
    if max(len(base_lines), len(our_lines), len(their_lines)) > MAX_MERGE_LINES:
        return None
    merged = _merged(base_lines, [*_hunks(base_lines, their_lines, 0), *_hunks(base_lines, our_lines, 1)], keep_both_insertions)
    return merged if merged is None or final else merged.removesuffix("\n").removesuffix("\r")


def _lines(text: str) -> list[str]:
    if text and not text.endswith("\n"):
        text += "\r\n" if uses_crlf(text) else "\n"
    return [line + "\n" for line in text.split("\n")[:-1]]  # not splitlines: it also splits at U+2028 and form feeds


def _merged(base: list[str], hunks: list[_Hunk], keep_both_insertions: bool) -> str | None:
    merged: list[str] = []
    position = 0
    last: _Hunk | None = None
    for hunk in sorted(hunks, key=lambda hunk: (hunk.start, hunk.end, hunk.side)):
        if last is not None and hunk.side != last.side:
            if (hunk.start, hunk.end, hunk.text) == (last.start, last.end, last.text):
                continue  # both made the same change
            if hunk.start == hunk.end == last.start == last.end and not keep_both_insertions:
                return None
        if hunk.start < position:
            return None
        merged += [*base[position : hunk.start], hunk.text]
        position, last = hunk.end, hunk
    return "".join([*merged, *base[position:]])


@dataclass(frozen=True, slots=True)
class _Hunk:
    """Lines `start` to `end` of the base become `text`."""

    start: int
    end: int
    text: str
    side: int


def _hunks(base: list[str], lines: list[str], side: int) -> Iterator[_Hunk]:
    head = _shared(base, lines)
    tail = _shared(base[head:][::-1], lines[head:][::-1])
    old, new = base[head : len(base) - tail], lines[head : len(lines) - tail]
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=len(old) * len(new) > MAX_EXACT_DIFF).get_opcodes():
        if tag == "replace" and i2 - i1 == j2 - j1:  # line by line, so that neighbours changed by the other side stay apart
            for i, line in enumerate(new[j1:j2], i1):
                if line != old[i]:
                    yield _Hunk(head + i, head + i + 1, line, side)
        elif tag != "equal":
            yield _Hunk(head + i1, head + i2, "".join(new[j1:j2]), side)


def _shared(some: list[str], others: list[str]) -> int:
    """How many lines both begin with."""
    return next((n for n, (one, other) in enumerate(zip(some, others, strict=False)) if one != other), min(len(some), len(others)))
