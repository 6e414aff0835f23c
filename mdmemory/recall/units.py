"""A text cut where people cut it: turns of a conversation, or paragraphs and list items. Floor 2."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

LEAST_TURNS = 4
_TIME = r"(?:\[[^\]\n]{1,40}\]|\([^)\n]{1,40}\)|\d{1,2}:\d{2}(?::\d{2})?)"
_NAME = r"[^\W\d_][\w.'’ -]{0,39}?"
_LABEL = re.compile(  # what is possessive or looked ahead for keeps code and prose from being tried at each space and letter
    rf"[ \t]*+(?:[-*>] )?[ \t]*+(?:{_TIME}[ \t]*+)?(?:\*\*|__)?(?=[\w.'’ -]*+[*\t\[(:：])(?P<name>{_NAME})(?:\*\*|__)?[ \t]*+"
    rf"(?:{_TIME})?(?::(?:\*\*|__)?(?=\s|$)|：(?:\*\*|__)?)[ \t]*"
)
_HEADING_LABEL = re.compile(rf"#{{1,6}}[ \t]+(?:{_TIME}[ \t]*)?(?P<name>{_NAME})[ \t]*(?:[·,@|—–-][ \t]*\S.*|{_TIME})?$")
_HEADING = re.compile(r"#{1,6}[ \t]")
_MARK = re.compile(r"(?P<fence>[ \t]*(?:```|~~~))|(?P<heading>#{1,6}[ \t])|(?P<item>(?:[-*+]|\d{1,3}[.)])[ \t])")
_ENDS = frozenset({"", "heading", "item"})


class Unit(NamedTuple):
    """What one person said in a row, a paragraph, or an item of a list.

    Args:
        line, end_line: counted from 1, both included.
        speaker: None outside of conversations.
    """

    line: int
    end_line: int
    text: str
    speaker: str | None = None


def cut(text: str) -> list[Unit]:
    """The units of a text, in order."""
    lines = text.split("\n")
    labels = _labels(text, lines)
    return list(_turns(lines, labels) if labels else _paragraphs(lines, 1))


def _labels(text: str, lines: Sequence[str]) -> dict[int, tuple[str, str]]:
    """Line number to speaker and the rest of the line; empty unless the text is a conversation.

    A conversation is told from `Deadline: Friday` by its labels: they come again, from at least two sides, and begin most
    of what follows a blank line.
    """
    if max(text.count(":") + text.count("："), text.count("#")) < LEAST_TURNS:
        return {}
    colons = [n for n, line in enumerate(lines, 1) if ":" in (start := line[:200]) or "：" in start]
    hashes = [n for n, line in enumerate(lines, 1) if line[:1] == "#"]
    for pattern, signs in ((_LABEL, colons), (_HEADING_LABEL, hashes)):
        matches = ((n, pattern.match(lines[n - 1])) for n in signs)
        found = {n: (match["name"], lines[n - 1][match.end() :]) for n, match in matches if match}
        if len(found) < LEAST_TURNS:
            continue
        counts = Counter(name for name, _ in found.values())
        speakers = {name for name, count in counts.items() if count > 1}
        turns = {n: turn for n, turn in found.items() if turn[0] in speakers}
        if len(speakers) > 1 and len(turns) >= LEAST_TURNS and 2 * len(turns) >= max(len(found), _blocks(lines, pattern)):
            return found if len(counts) <= 2 * len(speakers) else turns
    return {}


def _blocks(lines: Sequence[str], pattern: re.Pattern[str]) -> int:
    """How many blocks there are between blank lines; of a chat whose turns are headings, only those."""
    if pattern is _HEADING_LABEL:
        return sum(1 for line in lines if _HEADING.match(line))
    return sum(1 for before, line in zip(["", *lines], lines, strict=False) if line.strip() and not before.strip())


def _turns(lines: Sequence[str], labels: dict[int, tuple[str, str]]) -> Iterator[Unit]:
    starts = sorted(labels)
    yield from _paragraphs(lines[: starts[0] - 1], 1)
    for start, following in zip(starts, [*starts[1:], len(lines) + 1], strict=True):
        speaker, first = labels[start]
        end = following - 1
        while end > start and not lines[end - 1].strip():
            end -= 1
        yield Unit(start, end, "\n".join([first, *lines[start:end]]), speaker)


def _paragraphs(lines: Sequence[str], number: int) -> Iterator[Unit]:
    """Blocks between blank lines, and the items of a list; a heading belongs to what follows it."""
    start, end, fenced, says = -1, 0, False, False  # whether there is more in the block than headings
    for at, line in enumerate(lines):
        kind = "text" if line[:1].isalpha() else line and _kind(line)
        if says and not fenced and kind in _ENDS:
            yield Unit(number + start, number + at - 1, "\n".join(lines[start:at]))
            start, says = -1, False
        if kind:
            start, end = at if start < 0 else start, at + 1
            says = says or kind != "heading"
            fenced ^= kind == "fence"
    if start >= 0:
        yield Unit(number + start, number + end - 1, "\n".join(lines[start:end]))


def _kind(line: str) -> str:
    """What a line is: fence, heading, item or text; empty for a blank one."""
    match = _MARK.match(line)
    return match.lastgroup or "" if match else "text" if line.strip() else ""
