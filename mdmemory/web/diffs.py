"""Differences, line by line, for pages that show them. Floor 6, pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_LINES: Final = 2_000
_KINDS: Final = {"+": "added", "-": "removed", "@": "place"}


@dataclass(frozen=True, slots=True)
class Diff:
    """What changed in one file.

    Args:
        lines: each with its kind: `added`, `removed`, `place` or none.
    """

    path: str
    moved_from: str | None
    lines: tuple[tuple[str, str], ...]


def lines_of(diff: str) -> tuple[tuple[str, str], ...]:
    """The lines of what `diff -u` shows, without the names above them; of very many only the first."""
    above, mark, below = diff.removesuffix("\n").partition("\n@@ ")
    said = [line for line in above.split("\n") if line and not line.startswith(("--- ", "+++ "))]
    lines = [*said, *(f"@@ {below}".split("\n") if mark else ())]
    more = [("place", f"… {len(lines) - MAX_LINES:,} more lines")] if len(lines) > MAX_LINES else []
    return (*((_KINDS.get(line[:1], ""), line) for line in lines[:MAX_LINES]), *more)
