"""A text cut where people cut it: turns of a conversation, or paragraphs and list items. Floor 2."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LEAST_TURNS = 4
_TIME = r"(?:\[[^\]\n]{1,40}\]|\([^)\n]{1,40}\)|\d{1,2}:\d{2}(?::\d{2})?)"
_NAME = r"[^\W\d_][\w.'’ -]{0,39}?"
_LABEL = re.compile(
    rf"[ \t]*(?:[-*>] )?[ \t]*(?:{_TIME}[ \t]*)?(?:\*\*|__)?(?P<name>{_NAME})(?:\*\*|__)?[ \t]*(?:{_TIME})?"
    r"(?::(?:\*\*|__)?(?=\s|$)|：(?:\*\*|__)?)[ \t]*"
)
_HEADING_LABEL = re.compile(rf"#{{1,6}}[ \t]+(?:{_TIME}[ \t]*)?(?P<name>{_NAME})[ \t]*(?:[·,@|—–-][ \t]*\S.*|{_TIME})?$")
_COLON, _HASH = re.compile("[:：]"), re.compile("#")
_HEADING = re.compile(r"#{1,6}[ \t]")
_ITEM = re.compile(r"(?:[-*+]|\d{1,3}[.)])[ \t]")
_FENCE = re.compile(r"[ \t]*(?:```|~~~)")


@dataclass(frozen=True, slots=True)
class Unit:
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
    labels = _labels(lines)
    return list(_turns(lines, labels) if labels else _paragraphs(lines, 1))


def _labels(lines: Sequence[str]) -> dict[int, tuple[str, str]]:
    """Line number to speaker and the rest of the line; empty unless the text is a conversation.

    A conversation is told from `Deadline: Friday` by its labels: they come again, from at least two sides, and begin most
    of what follows a blank line.
    """
    for pattern, sign in ((_LABEL, _COLON), (_HEADING_LABEL, _HASH)):
        found = {n: match for n, line in enumerate(lines, 1) if sign.search(line, 0, 200) and (match := pattern.match(line))}
        if len(found) < LEAST_TURNS:
            continue
        counts = Counter(match["name"] for match in found.values())
        speakers = {name for name, count in counts.items() if count > 1}
        turns = {n: (match["name"], lines[n - 1][match.end() :]) for n, match in found.items() if match["name"] in speakers}
        if len(speakers) > 1 and len(turns) >= LEAST_TURNS and 2 * len(turns) >= max(len(found), _blocks(lines, pattern)):
            once = {n: (match["name"], lines[n - 1][match.end() :]) for n, match in found.items()}
            return once if len(counts) <= 2 * len(speakers) else turns
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
    start, block, fenced, says = number, list[str](), False, False  # whether there is more in the block than headings
    for n, line in enumerate(lines, number):
        is_fence = bool(_FENCE.match(line))
        ends = not fenced and (not line.strip() or _ITEM.match(line) or _HEADING.match(line))
        if ends and says:
            yield Unit(start, start + len(block) - 1, "\n".join(block))
            block, says = [], False
        fenced ^= is_fence
        if line.strip() or block:
            start = start if block else n
            block.append(line)
            says = says or bool(line.strip() and not _HEADING.match(line))
    while block and not block[-1].strip():
        block.pop()
    if block:
        yield Unit(start, start + len(block) - 1, "\n".join(block))
