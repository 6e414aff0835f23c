"""Every memory file as a row of the list, and what the list can be narrowed by. Floor 6."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Final

from mdmemory.folder.any_folder import Folder
from mdmemory.folder.search import header_of
from mdmemory.render import moment

PLAIN: Final = "none"
"""Stands for files without a type."""
_SHOWN_TAGS: Final = 30


@dataclass(frozen=True, slots=True)
class Row:
    """A file in the list.

    Args:
        state: what sets it apart, such as `broken` or `expired`; empty for most.
        score: 0 to 1, of a search; None without one.
        why: the words that it shares with the query, and what else made the score.
    """

    path: str
    name: str
    description: str
    type: str
    tags: tuple[str, ...]
    changed: datetime
    state: str = ""
    score: float | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Overview:
    """Every file as of one look, the newest first, and what they can be filtered by."""

    rows: Sequence[Row]
    by_path: Mapping[str, Row]
    types: Sequence[tuple[str, int]]
    tags: Sequence[tuple[str, int]]
    folders: Sequence[tuple[str, int]]


def overview_of(folder: Folder) -> Overview:
    """The list as of the last look."""
    outdated = folder.outdated
    rows = []
    for path, known in folder.files.items():
        header = header_of(path, known)
        state = "broken" if known.problem else "outdated" if path in outdated else "pinned" if header.pinned else ""
        name, about = header.name, header.description
        if known.problem:
            line = known.problem.line
            name = header.name if known.last_good else PurePosixPath(path).stem
            about = f"line {line}: {known.problem.reason}" if line else known.problem.reason
        rows.append(Row(path, name, about, header.type or "", header.tags, moment(known.mtime_ns), state))
    rows.sort(key=lambda row: (row.changed, row.path), reverse=True)
    types = Counter(row.type or PLAIN for row in rows)
    tags = Counter(tag for row in rows for tag in dict.fromkeys(row.tags))
    folders = Counter(above for row in rows for above in _above(row.path))
    return Overview(
        rows, {row.path: row for row in rows}, types.most_common(), tags.most_common(_SHOWN_TAGS), sorted(folders.items())
    )


def _above(path: str) -> Iterable[str]:
    parts = path.split("/")[:-1]
    return ("/".join(parts[: length + 1]) for length in range(len(parts)))
