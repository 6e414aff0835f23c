"""What the memory did for the last turns: which files were offered and chosen, why, and when they were given. Floor 4.

It lies beside the cache, outside of the folder, in a file that never grows beyond a few hundred turns and can be deleted at any
time. What was said is not in it. A folder without a cache file leaves no trace.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
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
MAX_OFFERED_BYTES: Final = 2_000  # of all these paths
MAX_REASON_CHARS: Final = 200
MAX_DEGRADED_CHARS: Final = 500


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
    figures = {name: getattr(status, name) for name in ("hint_calls", "waited_s", "selector_s", "late", "tokens")}
    figures["degraded"] = status.degraded and status.degraded[:MAX_DEGRADED_CHARS]
    said = {"at": datetime.now(UTC).isoformat(), "session": session, "files": files, **offered, **figures}
    line = json.dumps(said, ensure_ascii=False).encode(errors="backslashreplace")
    try:
        place = os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        try:
            os.write(place, b"\n%b\n" % line)  # in one piece, as other processes add theirs, and apart from what was cut off
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
        return PastTurn(
            at=datetime.fromisoformat(said["at"]).astimezone(UTC),
            session=str(said["session"]),
            files=tuple(_chosen(*file) for file in said["files"]),
            hint_calls=tuple(map(int, said["hint_calls"])),
            waited_s=float(said["waited_s"]),
            selector_s=None if said["selector_s"] is None else float(said["selector_s"]),
            late=bool(said["late"]),
            tokens=int(said["tokens"]),
            degraded=None if said["degraded"] is None else str(said["degraded"]),
            lexical=tuple(_chosen(*file) for file in said.get("lexical", ())),
            offered=tuple(map(str, said.get("offered", ()))),
            offered_count=int(said.get("offered_count", 0)),
        )
    except (ValueError, TypeError, LookupError, ArithmeticError, RecursionError):
        return None


def _chosen(path: str, reason: str, source: str, score: float | None, is_given: bool) -> ChosenFile:
    return ChosenFile(str(path), str(reason), str(source), None if score is None else float(score), bool(is_given))


def _first(paths: Sequence[str]) -> list[str]:
    """As many of the first paths as are noted."""
    ends = accumulate(len(path.encode(errors="surrogatepass")) for path in paths[:MAX_OFFERED])
    return [path for path, end in zip(paths, ends, strict=False) if end <= MAX_OFFERED_BYTES]


def _shorten(file: Path) -> None:
    """Keep the later half; what another process adds meanwhile may be lost."""
    _, _, kept = file.read_bytes()[-MAX_BYTES // 2 :].partition(b"\n")
    place, name = tempfile.mkstemp(prefix=f"{file.name}.", dir=file.parent)  # which others can't read, from the first byte on
    try:
        with open(place, "wb") as new:
            new.write(kept)
        os.replace(name, file)
    except OSError:
        os.unlink(name)
        raise
