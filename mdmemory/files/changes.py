"""Changes: what tools, people and programs propose, and how an edit meets what happened meanwhile. Floor 1, pure functions.

A change carries the etag of the bytes it was based on. When the file has moved on, edits of different lines are merged (three-way);
edits of the same lines are a conflict.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher

from mdmemory.errors import InvalidArguments

MAX_MERGE_LINES = 20_000


@dataclass(frozen=True, slots=True)
class Create:
    """A new file; refused when the path, or one that looks like it, is taken."""

    path: str
    data: bytes


@dataclass(frozen=True, slots=True)
class Replace:
    """New bytes for a file.

    Args:
        base: etag of the bytes the change was based on.
        base_data: those bytes, which let the change be merged with one made meanwhile.
    """

    path: str
    data: bytes
    base: str
    base_data: bytes | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove a file; `base` None removes whatever is there."""

    path: str
    base: str | None = None


@dataclass(frozen=True, slots=True)
class Rename:
    """Move a file, or a folder with all in it, to a free path."""

    path: str
    new_path: str


Change = Create | Replace | Delete | Rename


def edit_text(text: str, old: str, new: str, *, replace_all: bool = False) -> str:
    r"""Replace the one place where `old` stands.

    In a text with CRLF line ends, `old` and `new` may be written with `\n`, as models do.

    Raises:
        InvalidArguments: `old` is empty, equal to `new`, missing, or stands in several places; says which lines.
    """
    if not old:
        raise InvalidArguments("old_string is empty; give the exact text to replace, or use Write for a new file")
    if old not in text and "\r\n" in text:
        old, new = crlf(old), crlf(new)
    if old == new:
        raise InvalidArguments("old_string and new_string are the same, so there is nothing to change")
    places = [match.start() for match in re.finditer(re.escape(old), text)]
    if not places:
        raise InvalidArguments(
            "old_string was not found. It must match exactly, with spaces and line breaks, without line numbers; Read again"
        )
    if len(places) > 1 and not replace_all:
        lines = ", ".join(str(text.count("\n", 0, place) + 1) for place in places[:10])
        raise InvalidArguments(
            f"old_string stands {len(places)} times (lines {lines}); add text around it to name one, or set replace_all to true"
        )
    return text.replace(old, new)


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
    ended = [text.endswith("\n") for text in (base, ours, theirs)]
    final = ended[1] if ended[1] != ended[0] else ended[2]
    base_lines, our_lines, their_lines = (
        _lines(text if end else text + "\n") for text, end in zip((base, ours, theirs), ended, strict=True)
    )
    if max(len(base_lines), len(our_lines), len(their_lines)) > MAX_MERGE_LINES:
        return None
    merged = _merged(base_lines, [*_hunks(base_lines, their_lines, 0), *_hunks(base_lines, our_lines, 1)], keep_both_insertions)
    return merged if merged is None or final else merged.removesuffix("\n")


def _lines(text: str) -> list[str]:
    return [line + "\n" for line in text.split("\n")[:-1]]  # not splitlines: it also splits at U+2028 and form feeds


def _merged(base: list[str], hunks: list[_Hunk], keep_both_insertions: bool) -> str | None:
    merged: list[str] = []
    position = 0
    last: _Hunk | None = None
    for hunk in sorted(hunks, key=lambda hunk: (hunk.start, hunk.end, hunk.side)):
        if last is not None and hunk.side != last.side:
            if (hunk.start, hunk.end, hunk.text) == (last.start, last.end, last.text) and hunk.start != hunk.end:
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
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, base, lines, autojunk=False).get_opcodes():
        if tag == "replace" and i2 - i1 == j2 - j1:  # line by line, so that neighbours changed by the other side stay apart
            for offset in range(i2 - i1):
                yield _Hunk(i1 + offset, i1 + offset + 1, lines[j1 + offset], side)
        elif tag != "equal":
            yield _Hunk(i1, i2, "".join(lines[j1:j2]), side)
