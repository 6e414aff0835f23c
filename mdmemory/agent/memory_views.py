"""What Anthropic's memory tool shows of files: numbered lines, and a folder two levels deep. Floor 4, no input or output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mdmemory.agent.answers import MAX_CHARS
from mdmemory.agent.dialects import Dialect, human_size
from mdmemory.backends.protocol import LINK_INSIDE, Scan

CONTEXT = 2  # lines shown around a change


def split_lines(text: str) -> list[str]:
    """The lines without their LF; a final one makes no line of its own."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def numbered(lines: Sequence[str], first: int, last: int) -> str:
    """Lines `first` to `last` behind their numbers, no more than one answer may hold; the rest is said at the end."""
    shown: list[str] = []
    chars = 0
    for number, line in enumerate(lines[first - 1 : last], first):
        chars += len(line) + 8
        if chars > MAX_CHARS and shown:
            shown.append(f"(The file has {len(lines)} lines; for more, view it with view_range [{number}, -1].)")
            break
        shown.append(f"{number:>6}\t{line[:MAX_CHARS]}")
    return "\n".join(shown)


def snippet(lines: Sequence[str], at: int, length: int) -> str:
    """The lines of a change behind their numbers, with those around it.

    Args:
        at: where the change begins, from 0.
        length: how many lines it has.
    """
    return numbered(lines, max(0, at - CONTEXT) + 1, at + length + CONTEXT)


def inside(place: str, files: Iterable[str]) -> list[str]:
    """The files in a folder, or below it; the root is ""."""
    return [path for path in files if not place or path.startswith(f"{place}/")]


def listing(root: str, place: str, scan: Scan, dialect: Dialect) -> str:
    """A line for a folder and for each file and folder in it, two levels deep, with the size of all that each holds.

    Links are listed where they are known to lead to a place in the folder.
    """
    sizes = {path: scan.files[path].size for path in inside(place, scan.files)}
    sizes |= {path: 0 for path in inside(place, scan.skipped) if scan.skipped[path].startswith(LINK_INSIDE)}
    totals: dict[tuple[str, ...], int] = {(): 0}
    folders: set[tuple[str, ...]] = set()
    for path, size in sizes.items():
        parts = tuple(path[len(place) + 1 if place else 0 :].split("/"))
        if dialect == "docs" and "node_modules" in parts:
            continue
        for depth in range(min(len(parts), 2) + 1):
            totals[parts[:depth]] = totals.get(parts[:depth], 0) + size
        folders |= {parts[:depth] for depth in range(1, len(parts))}
    start, end = "/".join(filter(None, (root, place))), "/" if dialect == "sdk" else ""
    named = ((f"{'/'.join((start, *parts))}{end if parts in folders else ''}", totals[parts]) for parts in sorted(totals))
    return "\n".join(f"{human_size(size, dialect)}\t{name}" for name, size in named)


def places_of(text: str, part: str) -> list[int]:
    """Where a part stands in a text, also where one place overlaps another."""
    found: list[int] = []
    at = text.find(part)
    while at >= 0:
        found.append(at)
        at = text.find(part, at + 1)
    return found
