"""What the memory did for the last turns: which files were offered and chosen, why, and when they were given. Floor 4.

It lies beside the cache, outside of the folder, in a file that never grows beyond a few hundred turns and can be deleted at any
time. What was said is not in it. A folder without a cache file leaves no trace.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mdmemory.folder.any_folder import Folder, parts_of
from mdmemory.recall.cache import TURNS

if TYPE_CHECKING:
    from mdmemory.agent.turn import TurnStatus

logger = logging.getLogger("mdmemory")
MAX_BYTES: Final = 400_000
MAX_OFFERED: Final = 40  # paths that are noted of a turn
MAX_OFFERED_CHARS: Final = 2_000  # of all these paths
MAX_REASON_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class ChosenFile:
    """A file that was chosen for a turn.

    Args:
        source: `model` or `lexical`.
        score: recall's, 0 to 1; None for a model's choice.
        is_given: whether a hint brought it.
    """

    path: str
    reason: str
    source: str
    score: float | None
    is_given: bool


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A turn that has ended; the figures are those of `TurnStatus`.

    Args:
        at: when it ended, UTC.
        lexical: the files that recall picked by their words.
        offered: the first of the files whose headers the model was shown, the nearest by words first.
        offered_count: how many it was shown in all; 0 without a model.
    """

    at: datetime
    session: str
    files: tuple[ChosenFile, ...]
    hint_calls: tuple[int, ...]
    waited_s: float
    selector_s: float | None
    late: bool
    tokens: int
    degraded: str | None
    lexical: tuple[ChosenFile, ...] = ()
    offered: tuple[str, ...] = ()
    offered_count: int = 0


def note_turn(folder: Folder, session: str, status: TurnStatus) -> None:
    """Add a turn; what stands in the way is no matter."""
    file = turns_file(folder)
    if file is None:
        return
    files, lexical = (
        [(pick.path, pick.reason[:MAX_REASON_CHARS], pick.source, pick.score, pick.path in status.shown) for pick in picks]
        for picks in (status.chosen, status.lexical)
    )
    offered = {"lexical": lexical, "offered": _first(status.offered), "offered_count": len(status.offered)}
    offered = {key: value for key, value in offered.items() if value}
    figures = {name: getattr(status, name) for name in ("hint_calls", "waited_s", "selector_s", "late", "tokens", "degraded")}
    line = json.dumps({"at": datetime.now(UTC).isoformat(), "session": session, "files": files, **offered, **figures}) + "\n"
    try:
        place = os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        try:
            os.write(place, line.encode())  # in one piece, as other processes add theirs
            size = os.fstat(place).st_size
        finally:
            os.close(place)
        if size > MAX_BYTES:
            _shorten(file)
    except OSError as error:
        logger.info("what was chosen for a turn is not noted: %s", error.strerror)


def last_turns(folder: Folder, limit: int = 50) -> list[PastTurn]:
    """The turns that ended last, of whatever process, the latest first; lines that make no sense are passed over."""
    file = turns_file(folder)
    try:
        lines = file.read_bytes().split(b"\n") if file is not None else []
    except OSError:
        return []
    turns = (turn for line in reversed(lines) if line and (turn := _turn(line)) is not None)
    return [turn for turn, _ in zip(turns, range(limit), strict=False)]


def turns_file(folder: Folder) -> Path | None:
    """Where the turns of a folder are noted; None for nowhere."""
    cache = parts_of(folder)[""].catalog.cache.file
    return None if cache is None else cache.with_name(cache.name + TURNS)


def _turn(line: bytes) -> PastTurn | None:
    try:
        said: Mapping[str, Any] = json.loads(line)
        files = tuple(ChosenFile(*file) for file in said["files"])
        lexical = tuple(ChosenFile(*file) for file in said.get("lexical", ()))
        offered, count = tuple(map(str, said.get("offered", ()))), int(said.get("offered_count", 0))
        at, calls = datetime.fromisoformat(said["at"]), tuple(said["hint_calls"])
        rest = {name: said[name] for name in ("session", "waited_s", "selector_s", "late", "tokens", "degraded")}
        return PastTurn(at=at, files=files, hint_calls=calls, lexical=lexical, offered=offered, offered_count=count, **rest)
    except (ValueError, TypeError, LookupError):
        return None


def _first(paths: Sequence[str]) -> list[str]:
    """As many of the first paths as are noted."""
    ends = accumulate(map(len, paths[:MAX_OFFERED]))
    return [path for path, end in zip(paths, ends, strict=False) if end <= MAX_OFFERED_CHARS]


def _shorten(file: Path) -> None:
    """Keep the later half; what another process adds meanwhile may be lost."""
    _, _, kept = file.read_bytes()[-MAX_BYTES // 2 :].partition(b"\n")
    new = file.with_name(f"{file.name}.{os.getpid()}")
    new.write_bytes(kept)
    new.chmod(0o600)
    new.replace(file)
