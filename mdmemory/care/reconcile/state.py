"""What both folders had after the last sync, as it is kept in `.mdmemory/sync/` of the people's one. Floor 4.

It says nothing that was not so on both sides, so an old one is as good as a new one, but for more work; one that is lost or damaged
is that of a first sync.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mdmemory.backends.protocol import File, problem_error
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.sweeping import SYNC

MARKER: Final = ".mdmemory/sync-"
"""And the id: lies in the other folder, so that one that was wiped or made anew is known, as it lacks it."""

Stamp = tuple[str, str]
"""A version, as the backend tells it, and the etag that the file had then."""


@dataclass(frozen=True, slots=True)
class State:
    """What is known of a pair of folders.

    Args:
        id: of the marker; "" before the first sync.
        etags: of each memory file, the version that both had.
        index: people's lines of MEMORY.md that both had; None when that is not known.
        journals: the etags of each conversation here and there when neither had anything to give the other; "" for absent.
        stamps: here and there, by path, the etag of files of which a look tells only the version.
        held: the etags of files that one side had deleted when nothing was known of what both had: they don't come back to it.
        is_whole: whether a sync has come to its end since nothing was known.
        said: what is left where it is and was said once, here and there.
    """

    id: str = ""
    etags: Mapping[str, str] = field(default_factory=dict)
    index: str | None = None
    journals: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    stamps: tuple[Mapping[str, Stamp], Mapping[str, Stamp]] = ({}, {})
    held: Mapping[str, str] = field(default_factory=dict)
    is_whole: bool = False
    said: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())

    @property
    def marker(self) -> str:
        """The path of the marker."""
        return MARKER + self.id

    def as_bytes(self) -> bytes:
        """The state's file."""
        kept = {
            "id": self.id,
            "etags": self.etags,
            "index": self.index,
            "journals": self.journals,
            "stamps": self.stamps,
            "held": self.held,
            "whole": self.is_whole,
            "said": [sorted(paths) for paths in self.said],
        }
        return json.dumps(kept, ensure_ascii=False).encode(errors="backslashreplace")


def place_of(name: str) -> str:
    """Where the state with the folder of this name is kept."""
    return f"{SYNC}{hashlib.sha256(f'both ways {name}'.encode()).hexdigest()[:16]}.json"


async def read_state(folder: MemoryFolder, place: str) -> tuple[State, str | None]:
    """The state, and the etag of its file, None when there is none.

    Raises:
        Unavailable, UnsafeFile: it is there and can't be read, which must not be taken for a first sync.
    """
    found = (await folder.backend.read({place: None}))[place]
    if isinstance(found, File):
        return _state(found.data), found.etag
    if found.kind != "absent":
        raise problem_error("the state of the last sync", found)
    return State(), None


def _state(data: bytes) -> State:
    try:
        kept = json.loads(data)
        here, there = ({str(path): _two(pair) for path, pair in stamps.items()} for stamps in kept["stamps"])
        said_here, said_there = (frozenset(map(str, paths)) for paths in kept["said"])
        etags, held = ({str(path): str(etag) for path, etag in kept[name].items()} for name in ("etags", "held"))
        journals = {str(path): _two(pair) for path, pair in kept["journals"].items()}
        lines = None if kept["index"] is None else str(kept["index"])
        whole, said = kept["whole"] is True, (said_here, said_there)
        return State(str(kept["id"]), etags, lines, journals, (here, there), held, whole, said)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return State()


def _two(pair: Any) -> tuple[str, str]:
    one, two = pair
    return str(one), str(two)
