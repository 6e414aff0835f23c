"""What keeps deleted files forgotten, as operations of a commit. Floor 3, no input or output."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from mdmemory.backends.protocol import Append, Op
from mdmemory.files.history import TOMBSTONES, rejection, tombstone
from mdmemory.files.memory_file import Header

Named = tuple[str, Header | None]
"""A file's path, and what is known of it."""


def tombstones(gone: Sequence[Named], at: datetime, back: Sequence[Named] = ()) -> list[Op]:
    """Forget files, but for those that come back under another path, and no longer forget those that came back."""
    names = {_name(*one) for one in back}
    away = [one for one in gone if _name(*one) not in names]
    lines = [tombstone(path, _name(path, header), at, header.source if header else ()) for path, header in away]
    lines += [tombstone(path, _name(path, header), at, restored=True) for path, header in back]
    return [Append(TOMBSTONES, b"".join(lines), lines[-1].decode().rstrip("\n"))] if lines else []


def rejected(id: str, at: datetime, entries: Sequence[str]) -> Op:
    """Never draw from these entries again what a person did not want."""
    line = rejection(id, at, entries)
    return Append(TOMBSTONES, line, line.decode().rstrip("\n"))


def _name(path: str, header: Header | None) -> str:
    return header.name if header else path
