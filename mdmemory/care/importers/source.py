"""What is imported from: a file, a folder or a zip archive, read in bounds and never unpacked. Floor 4."""

from __future__ import annotations

import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from mdmemory.backends.paths import fault
from mdmemory.care.importers.plan import Left
from mdmemory.errors import InvalidArguments

MAX_BYTES = 256 * 1024 * 1024
MAX_FILES = 100_000
_ENCRYPTED = 0x1
_UNREADABLE = (OSError, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error)  # what archives may raise
_Open = Callable[[], IO[bytes]]
"""Opens a file, or raises one of those."""


@dataclass(slots=True)
class Source:
    """What was read.

    Args:
        files: by path.
        left: what was not read, with the reason.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    left: list[Left] = field(default_factory=list)


def read_source(place: str | os.PathLike[str], wanted: Callable[[str], bool]) -> Source:
    """Read a file, or what is wanted in a folder or a zip archive.

    Args:
        wanted: whether a path in it is to be read.

    Raises:
        InvalidArguments: there is nothing of that name, or too much of it.
    """
    path = Path(place).expanduser()
    try:
        if path.is_dir():
            return _read(path.name, _in_folder(path), wanted)
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return _read(path.name, _in_archive(archive), wanted)
        if not path.is_file():
            raise InvalidArguments(f"There is no file or folder {path.name!r} to import from.")
        return _read(path.name, iter([(path.name, _opener(path))]), lambda _: True)
    except _UNREADABLE as error:
        raise InvalidArguments(f"{path.name!r} can't be read: {_words(error)}. Nothing was imported.") from None


def _read(name: str, entries: Iterator[tuple[str, _Open | str]], wanted: Callable[[str], bool]) -> Source:
    source, room = Source(), MAX_BYTES
    for number, (path, opener) in enumerate(entries, 1):
        if number > MAX_FILES:
            raise InvalidArguments(f"{name!r} holds more than {MAX_FILES:,} files. Nothing was imported: import its parts.")
        reason = opener if isinstance(opener, str) else fault(path)
        if reason is None and not wanted(path):
            reason = "it is of a kind that is not imported"
        if reason is None and path in source.files:
            reason = "its name stands twice; the first one counts"
        if reason is not None or isinstance(opener, str):
            source.left.append(Left(path, reason or ""))
            continue
        try:
            with opener() as stream:
                data = stream.read(room + 1)
        except _UNREADABLE as error:
            source.left.append(Left(path, f"it can't be read: {_words(error)}"))
            continue
        if len(data) > room:
            most = MAX_BYTES // 1024 // 1024
            raise InvalidArguments(f"{name!r} holds more than {most} MiB of data. Nothing was imported: import its parts.")
        room -= len(data)
        source.files[path] = data
    return source


def _in_folder(root: Path) -> Iterator[tuple[str, _Open | str]]:
    """Every file, sorted; of a link or a hidden folder, why it is not looked into."""
    faults: list[OSError] = []
    for folder, names, files in os.walk(root, onerror=faults.append):  # which follows no links
        names.sort()
        for name in [*files, *names]:
            place = Path(folder, name)
            path, mode = place.relative_to(root).as_posix(), place.lstat().st_mode
            if stat.S_ISLNK(mode):
                yield path, "it is a link, which is not followed"
            elif stat.S_ISDIR(mode):
                if name.startswith("."):
                    names.remove(name)
                    yield path, "it is hidden"
            elif stat.S_ISREG(mode):
                yield path, _opener(place)
            else:
                yield path, "it is no file"
    for failure in faults:
        yield Path(failure.filename).relative_to(root).as_posix(), f"it can't be looked into: {_words(failure)}"


def _opener(path: Path) -> _Open:
    return lambda: path.open("rb")


def _in_archive(archive: zipfile.ZipFile) -> Iterator[tuple[str, _Open | str]]:
    for entry in archive.infolist():
        if entry.is_dir():
            continue
        if stat.S_ISLNK(entry.external_attr >> 16):
            yield entry.filename, "it is a link, which is not followed"
        elif entry.flag_bits & _ENCRYPTED:
            yield entry.filename, "it is encrypted"
        else:
            yield entry.filename, partial(archive.open, entry)


def _words(error: BaseException) -> str:
    """What went wrong, without a path of this machine."""
    return (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__
