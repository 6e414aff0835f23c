"""Where something that was purged still is, in the folder, its history and the cache; and what can't be looked through. Floor 3."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from mdmemory.backends.protocol import LOG, MAX_FILE_BYTES, Backend, File, Range
from mdmemory.files.history import OBJECTS, PROPOSALS, TOMBSTONES, object_path, read_log
from mdmemory.files.naming import slug
from mdmemory.files.purging import Wanted
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.retention import RETAINED
from mdmemory.folder.sweeping import SYNC, named_in, read_whole

AT_ONCE: Final = 100
OVERLAP: Final = 65_536
GIT: Final = ".git"
IMPORTS: Final = ".mdmemory/import/"
MAX_TOLD: Final = 3


@dataclass(frozen=True, slots=True)
class Left:
    """A place where it still is.

    Args:
        where: a path in the folder, or the name of a cache.
    """

    where: str
    what: str


async def what_is_left(part: MemoryFolder, wanted: Wanted, prefix: str, caches: Collection[str]) -> list[Left]:
    """Look through every file for what was purged.

    Args:
        prefix: where the folder is mounted.
        caches: the names of its own cache and of those mounted with it, which hold what the files do.
    """
    log = await read_whole(part.backend, LOG) or b""
    of = {
        object_path(etag): file.path
        for intent in read_log(log).intents
        for file in intent.files
        for etag in (file.before, file.after)
        if etag
    }
    root: Path | None = getattr(part.backend, "watchable_root", None)
    if root is not None:
        names, found = await asyncio.to_thread(_on_disk, root, wanted)
    else:
        names, found = await _elsewhere(part.backend, wanted, log)
    left = [Left(prefix + path, "its name") for path in names]
    left += [Left(prefix + of.get(path, path), _what(path, count)) for path, count in found.items()]
    cache = part.catalog.cache.file
    if cache is not None:
        others = await asyncio.to_thread(_on_disk, cache.parent, wanted)
        left += [
            Left(f"the cache {name}", _places(count)) for name, count in others[1].items() if not name.startswith(tuple(caches))
        ]
    return left


def beyond(backend: Backend) -> tuple[str, ...]:
    """What a purge can't reach."""
    root: Path | None = getattr(backend, "watchable_root", None)
    told = ["copies elsewhere: backups, sync services, folders it was pulled from or pushed to, and what model providers were sent"]
    if keeps := getattr(backend, "holds_on_to", None):
        told.append(keeps)
    elif root is None:
        told.append("what a save that was cut short left in the sandbox without a line in the log: it can't be listed there")
    elif any((place / GIT).exists() for place in (root, *root.parents)):
        told.append("the git repository that the folder is in: its commits, if they have it, need git filter-repo")
    return tuple(told)


def names_like(text: str, paths: Iterable[str]) -> list[str]:
    """The names that may come from a text, as titles become names in small letters; it may be a word like another in them, too."""
    words = f"-{slug(text)}-"
    found = sorted(path for path in paths if words in f"-{'-'.join(slug(part) for part in path.removesuffix('.md').split('/'))}-")
    more = f" and {len(found) - MAX_TOLD} more" if len(found) > MAX_TOLD else ""
    return [f"names of files that read like it: {', '.join(found[:MAX_TOLD])}{more}; rename or purge them"] if found else []


def _what(path: str, count: int) -> str:
    if path.startswith(OBJECTS):
        return "an earlier version"
    if path.startswith(SYNC):
        return "its path, until the next pull or push"
    return "its path, so that no import brings it back" if path.startswith(IMPORTS) else _places(count)


def _places(count: int) -> str:
    return "1 place" if count == 1 else f"{count} places"


def _on_disk(root: Path, wanted: Wanted) -> tuple[list[str], Mapping[str, int]]:
    """The files of a folder on this machine in whose names, or bytes, it stands."""
    names, found = list[str](), dict[str, int]()
    for place, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if name != GIT and not (Path(place) / name).is_symlink())
        for name in sorted(files):
            file = Path(place) / name
            path = file.relative_to(root).as_posix()
            if wanted.is_text and wanted.find(path.encode(errors="surrogateescape")):
                names.append(path)
            if file.is_file() and not file.is_symlink() and (count := _count(_parts(file), wanted)):
                found[path] = count
    return names, found


def _parts(file: Path) -> Iterable[bytes]:
    try:
        with file.open("rb") as opened:
            while part := opened.read(MAX_FILE_BYTES):
                yield part
    except OSError:
        return  # gone, or not for this user


def _count(parts: Iterable[bytes], wanted: Wanted) -> int:
    """How often it stands in a file; where two parts meet, it may be counted twice."""
    count, rest = 0, b""
    for part in parts:
        count += wanted.count(rest + part)
        rest = part[-OVERLAP:] if len(part) == MAX_FILE_BYTES else b""
    return count


async def _elsewhere(backend: Backend, wanted: Wanted, log: bytes) -> tuple[list[str], Mapping[str, int]]:
    scan = await backend.scan()
    names = [path for path in scan.files if wanted.is_text and wanted.find(path.encode(errors="surrogateescape"))]
    paths = [*scan.files, LOG, TOMBSTONES, PROPOSALS, RETAINED, *map(object_path, sorted(named_in(log)))]
    found = Counter[str]()
    for start in range(0, len(paths), AT_ONCE):
        parts = await backend.read(dict.fromkeys(paths[start : start + AT_ONCE], Range(0, MAX_FILE_BYTES)))
        for path, file in parts.items():
            if isinstance(file, File):
                data = file.data if file.size <= len(file.data) else await read_whole(backend, path) or b""
                found[path] = _count([data], wanted)
    return names, {path: count for path, count in found.items() if count}
