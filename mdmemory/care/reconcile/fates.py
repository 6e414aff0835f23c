"""What becomes of each file of two folders that are brought together. Floor 4, no input or output.

What both had last tells who changed what since: the changes of one side go to the other, those of both are merged, and where one
deleted what the other changed, the change wins.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from datetime import date
from pathlib import PurePosixPath
from typing import Final, Literal, NamedTuple

from mdmemory.backends.paths import MAX_PART_BYTES
from mdmemory.care.doctor.names import original_of
from mdmemory.errors import InvalidMemoryFile
from mdmemory.files.changes import merge
from mdmemory.files.memory_file import decode, parse

Action = Literal["create", "update", "merge", "delete", "rename", "append", "conflict", "left"]
Where = Literal["here", "there", "both"]
GONE_HERE: Final = "deleted here and changed there: the change stays"
GONE_THERE: Final = "deleted there and changed here: the change stays"


@dataclass(frozen=True, slots=True)
class Step:
    """What a sync does with one file.

    Args:
        side: where something changes, or where what is left was to change.
        action: `conflict` when both texts are kept, `left` when nothing can be done; `reason` then says more.
        diff: what changes, as `diff -u` shows it, where it was asked for.
    """

    path: str
    action: Action
    side: Where
    reason: str = ""
    diff: str = field(default="", compare=False)


class Fate(NamedTuple):
    """What is to become of a file: `adopt` when both have it, and it is only to be noted."""

    action: Literal["adopt", "create", "update", "merge", "delete"]
    side: Where
    reason: str = ""


def fate(was: str | None, here: str | None, there: str | None) -> Fate | None:
    """What becomes of a file; None when all is as it was.

    Args:
        was: the etag of the version that both had; None when they had none.
        here, there: those of now.
    """
    if here == there:
        return None if here == was else Fate("adopt", "both")
    if here == was:
        return Fate("delete" if there is None else "create" if here is None else "update", "here")
    if there == was:
        return Fate("delete" if here is None else "create" if there is None else "update", "there")
    if here is None:
        return Fate("create", "here", GONE_HERE)
    if there is None:
        return Fate("create", "there", GONE_THERE)
    return Fate("merge", "both")


def renames(was: Mapping[str, str], here: Mapping[str, str], there: Mapping[str, str], unseen: Set[str]) -> dict[str, str]:
    """The files that were renamed here and have their old names there: new path by old path.

    Args:
        was, here, there: etags by path.
        unseen: paths that are not known to be gone.
    """
    new: dict[str, list[str]] = {}
    for path in sorted(here.keys() - was.keys() - there.keys(), reverse=True):
        new.setdefault(here[path], []).append(path)
    gone = sorted(path for path in was if path not in here and path in there and path not in unseen)
    return {path: new[was[path]].pop() for path in gone if new.get(was[path])}


def moved(was: Mapping[str, str], here: Mapping[str, str], there: Mapping[str, str]) -> dict[str, str]:
    """The files that were renamed on both sides already, though not noted: new path by old path."""
    found: dict[str, str] = {}
    gone = {was[path]: path for path in sorted(was, reverse=True) if path not in here and path not in there}
    for path in sorted((here.keys() & there.keys()) - was.keys()):
        old = next((gone.pop(etag) for etag in (here[path], there[path]) if etag in gone), None)
        if old is not None:
            found[old] = path
    return found


def merged(path: str, was: bytes | None, here: bytes, there: bytes) -> bytes | None:
    """Both sides' changes in one file; None when they changed the same lines, or it would make a file that can't be read."""
    if was is None:
        return None
    try:
        text = merge(*(decode(path, data) for data in (was, here, there)))
        if text is None:
            return None
        data = text.encode()
        if _is_whole(path, here) and _is_whole(path, there):
            parse(path, data)
    except InvalidMemoryFile:
        return None
    return data


def _is_whole(path: str, data: bytes) -> bool:
    try:
        parse(path, data)
    except InvalidMemoryFile:
        return False
    return True


def copy_of(path: str, etag: str, today: date) -> str:
    """Where the other side's text goes when both changed the same lines; the doctor knows the name for such a copy."""
    place = PurePosixPath(path)
    end = f" (conflicted copy {today.isoformat()} {etag[:6]}){place.suffix}"
    stem = place.stem.encode()[: MAX_PART_BYTES - len(end.encode())].decode(errors="ignore").rstrip()
    return str(place.with_name(stem + end))


def has_copy(path: str, etag: str, files: Mapping[str, str]) -> str | None:
    """A copy of a file with these bytes that is there already, as it is when a sync was cut short."""
    return next((other for other in sorted(files) if files[other] == etag and original_of(other) == path), None)
