"""Mounts: folders under prefixes, each with its rights, and which of them a path belongs to. Floor 3, no input or output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import get_args

from mdmemory.backends.paths import check, collision_key, fault, owner
from mdmemory.backends.protocol import Backend
from mdmemory.errors import ConfigError, InvalidPath
from mdmemory.files.changes import Change, Rename
from mdmemory.files.journal import JOURNAL
from mdmemory.folder.known import is_markdown
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.permissions import Place, Right
from mdmemory.recall.filters import mount_name
from mdmemory.recall.ranking import Match

RIGHTS: tuple[Right, ...] = get_args(Right)


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder as a memory sees it under a prefix.

    Args:
        location: as `open_memory` takes it.
        access: of `read`, `append` (new files, and text at the end of files) and `write` (everything). Without `read`, files can
            only be added, and nothing of what is there is shown.
        top_k: at most so many of its files in one search.
        min_score: its files below this score (0-1) are not found.
        stages: it is silent in every other stage of the work; none for all. They are among `Config.stages`.
        about: what is in it, in a few words for the agent.

    Raises:
        ConfigError: a value that can't be.
    """

    location: str | PathLike[str] | Backend
    access: Collection[Right] = RIGHTS
    top_k: int | None = None
    min_score: float = 0.0
    stages: Collection[str] = ()
    about: str = ""

    def __post_init__(self) -> None:
        for name in ("access", "stages"):
            value = getattr(self, name)
            object.__setattr__(self, name, (value,) if isinstance(value, str) else tuple(value))
        if not self.access or not set(self.access) <= set(RIGHTS):
            raise ConfigError(f"access is made of {', '.join(RIGHTS)}; not {', '.join(self.access) or 'nothing'}")
        if self.top_k is not None and not self.top_k > 0:
            raise ConfigError("top_k must be more than 0")
        if not 0 <= self.min_score <= 1:
            raise ConfigError("min_score is a share: from 0 to 1")

    @property
    def rights(self) -> frozenset[Right]:
        """What may be done in it."""
        return frozenset(self.access)

    @property
    def can_read(self) -> bool:
        """Whether anything in it may be seen."""
        return "read" in self.access

    @property
    def can_add(self) -> bool:
        """Whether anything may be written."""
        return bool({"append", "write"}.intersection(self.access))

    def speaks_in(self, stage: str | None) -> bool:
        """Whether it is searched and listed in this stage; None for work without stages."""
        return self.can_read and (stage is None or not self.stages or stage in self.stages)


@dataclass(frozen=True, slots=True)
class Part:
    """A mount and its folder, open."""

    mount: Mount
    folder: MemoryFolder


def place_of(prefix: str, mount: Mount) -> Place:
    """What an agent is told."""
    return Place(prefix, mount.about, mount.can_read, mount.can_add, {"read", "write"} <= mount.rights)


def checked_prefix(prefix: str, others: Iterable[str]) -> str:
    """The prefix, ending in `/`.

    Raises:
        ConfigError: no folder can have this name, or another mount has it, or one that looks like it.
    """
    name = prefix.removesuffix("/")
    if reason := fault(name):
        raise ConfigError(f"{prefix!r} can't be the prefix of a mount: {reason}. Take a folder's name such as team/.")
    if is_markdown(name) or collision_key(f"{name}/").startswith(JOURNAL):
        raise ConfigError(f"{prefix!r} can't be the prefix of a mount: it is a file's name, or the journal's.")
    if twin := next((other for other in others if collision_key(other) == collision_key(f"{name}/")), None):
        raise ConfigError(f"{prefix!r} would be taken for the mount {twin}; choose clearly different prefixes.")
    return f"{name}/"


def within_limits(matches: Iterable[Match], limits: Mapping[str, Mount], prefixes: Collection[str]) -> list[Match]:
    """The matches that their mounts let through: at most `top_k` of each, none below its `min_score`.

    Args:
        limits: the mounts that have limits, by prefix.
    """
    count, found = Counter[str](), list[Match]()
    for match in matches:
        prefix = owner(match.path, prefixes)
        mount = limits.get(prefix)
        if mount is None or (match.score >= mount.min_score and (mount.top_k is None or count[prefix] < mount.top_k)):
            count[prefix] += 1
            found.append(match)
    return found


def scope(location: str, *names: str) -> str:
    """The location of one user's, agent's or session's folder below another: a name can't lead anywhere else.

    Raises:
        InvalidPath: a name that can't be that of one folder.
    """
    for name in names:
        if "/" in check(name):
            raise InvalidPath(f"{name!r} can't be the name of one folder: it has a / in it.")
    return "/".join((location.rstrip("/"), *names))


def home_of(path: str, prefixes: Collection[str]) -> str:
    """The prefix of the mount that a change of this path belongs to.

    Raises:
        InvalidPath: the path is a mount's itself, or would be taken for one in a mount.
    """
    prefix = owner(path, prefixes)
    for other in prefixes:
        if len(other) > len(prefix) and collision_key(f"{path}/").startswith(collision_key(other)):
            raise InvalidPath(f"{path} would be taken for a path in the mount {other}; choose a clearly different one.")
    return prefix


def check_rename(rename: Rename, prefixes: Collection[str]) -> None:
    """Refuse to move a folder with a mount in it, or onto one.

    Raises:
        InvalidPath
    """
    for path in (rename.path, rename.new_path):
        if inside := next((prefix for prefix in prefixes if prefix.startswith(f"{path}/")), None):
            raise InvalidPath(f"{path} has the mount {inside} in it, which stays where it is; move what is in it one by one.")


def inside(change: Change, prefix: str) -> Change:
    """The change as the mount's own folder sees it."""
    inner = replace(change, path=change.path.removeprefix(prefix))
    return replace(inner, new_path=inner.new_path.removeprefix(prefix)) if isinstance(inner, Rename) else inner


def called(prefix: str) -> str:
    """How a mount is called in a message."""
    return prefix or f"the home ({mount_name('')})"
