"""What agents, people and the doctor work on: one memory folder, or several mounted as one. Floor 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mdmemory.backends.protocol import Backend
from mdmemory.errors import InvalidArguments
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.mounted_folder import MountedFolder

Folder = MemoryFolder | MountedFolder
WATCHED_S: Final = 0.5  # between two looks where the system tells what changed
FAR_S: Final = 15.0  # between two looks that are a round trip each


def in_stage(folder: Folder, stage: str | None) -> Folder:
    """The folder as it is in a stage of the work; None for work without stages.

    Raises:
        InvalidArguments: there is no such stage.
    """
    if stage is None:
        return folder
    if stage not in folder.config.stages:
        there = ", ".join(folder.config.stages) or "none: name them in Config.stages"
        raise InvalidArguments(f"there is no stage {stage!r}; there are {there}")
    return folder.in_stage(stage) if isinstance(folder, MountedFolder) else folder


def parts_of(folder: Folder) -> Mapping[str, MemoryFolder]:
    """Each folder that may be read, by prefix."""
    return folder.parts if isinstance(folder, MountedFolder) else {"": folder}


def home_only(folder: Folder) -> Folder:
    """The folder without what is mounted in it: what is drawn from a conversation reaches no folder that others share."""
    return folder.home_only() if isinstance(folder, MountedFolder) else folder


def backends_of(folder: Folder) -> Mapping[str, Backend]:
    """Where files may be deleted: the backend of the home first, by prefix."""
    return folder.backends if isinstance(folder, MountedFolder) else {"": folder.backend}


def has_news(folder: Folder) -> bool:
    """Whether a look may find something: False only when the system tells of changes, and has told of none since the last look."""
    return any(part.has_news for part in parts_of(folder).values())


async def look(folder: Folder) -> None:
    """Look at the folder, as a server does again and again; where a database would have told of a change, only after it did.

    Raises:
        Unavailable: could not look.
    """
    if not all(hasattr(part.backend, "has_news") for part in parts_of(folder).values()) or has_news(folder):
        await folder.refresh()


def look_every_s(folder: Folder) -> float:
    """How long a server waits between two looks for what others changed."""
    told = (
        getattr(part.backend, "watchable_root", None) or hasattr(part.backend, "has_news") for part in parts_of(folder).values()
    )
    return WATCHED_S if all(told) else FAR_S
