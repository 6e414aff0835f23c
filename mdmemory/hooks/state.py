"""What outlasts a hook: what an agent's session was shown, and how far it is in the journal. Floor 6.

It is one small file a session, beside the caches of the folders. It can be deleted at any time: then hints may come again, and of a
conversation only what is not in the journal yet is added to it.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

UNUSED_DAYS = 30
_OURS = re.compile(r"[0-9a-f]{32}\.\w+")


@dataclass(slots=True)
class State:
    """What is known of one session of an agent.

    Args:
        shown: the etag of each file that hints brought.
        said: prompts of which the journal does not know.
        turn: how many prompts there were.
        read: the bytes of the transcript that are in the journal.
    """

    shown: dict[str, str] = field(default_factory=dict)
    said: list[str] = field(default_factory=list)
    turn: int = 0
    read: int = 0


@contextmanager
def remembered(cache: Path | None, location: str, session: str) -> Iterator[State]:
    """The state of a session, kept when the block ends.

    Args:
        cache: the folder of the caches; None keeps nothing.
        location: of the memory's folder.
    """
    name = hashlib.sha256(f"{location}\0{session}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
    file = cache / "hooks" / f"{name}.json" if cache and session else None
    state = _read(file) if file else State()
    before = asdict(state)
    yield state
    if file and asdict(state) != before:
        with suppress(OSError):  # a disk that is full or read-only: hints may come again
            _write(file, state)


def _read(file: Path) -> State:
    try:
        state = State(**json.loads(file.read_bytes()))
    except (OSError, ValueError, TypeError):
        return State()
    kinds: dict[str, Any] = {"shown": dict, "said": list, "turn": int, "read": int}
    return state if all(isinstance(getattr(state, name), kind) for name, kind in kinds.items()) else State()


def _write(file: Path, state: State) -> None:
    if not file.exists():
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _prune(file.parent)
    new = file.with_suffix(f".{os.getpid()}")
    new.touch(0o600)  # only its owner may read what is in it
    new.write_text(json.dumps(asdict(state)), encoding="utf-8")
    new.replace(file)


def _prune(folder: Path) -> None:
    """Delete what belongs to sessions that are long over."""
    for file in folder.iterdir():
        with suppress(OSError):
            if _OURS.fullmatch(file.name) and file.stat().st_mtime < time.time() - UNUSED_DAYS * 86_400:
                file.unlink()
