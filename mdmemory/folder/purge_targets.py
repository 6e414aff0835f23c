"""What a purge is after: the names that files ever had, what they held, and which commits tell of them. Floor 3."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import PurePosixPath

from mdmemory.backends.paths import collision_key
from mdmemory.backends.protocol import LOG, File
from mdmemory.errors import InvalidArguments, InvalidMemoryFile
from mdmemory.files.history import Intent, read_log
from mdmemory.files.memory_file import Header, parse
from mdmemory.files.purging import Wanted, a_file
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.reading import kept_contents
from mdmemory.folder.recovery import moves_in
from mdmemory.folder.sweeping import read_whole


@dataclass(frozen=True, slots=True)
class Traced:
    """Files of one folder, as its history knows them.

    Args:
        names: every path that they had.
        dropped: commits that tell of them, each with the path that it tells of.
        contents: of every version that is kept.
    """

    names: frozenset[str] = frozenset()
    dropped: frozenset[tuple[str, str]] = frozenset()
    contents: tuple[bytes, ...] = ()

    @property
    def sources(self) -> frozenset[str]:
        """The messages from which they were drawn."""
        return frozenset(entry for data in self.contents if (header := header_of(data)) for entry in header.source)


@dataclass(frozen=True, slots=True)
class Targets:
    """What is to go from one folder.

    Args:
        own: the files that lie in it, or lay in it.
        sources: the messages from which files were drawn, wherever they lie.
    """

    wanted: Wanted
    own: Traced = Traced()
    sources: frozenset[str] = frozenset()


def targets_of(prefix: str, traced: Mapping[str, Traced]) -> Targets:
    """What is to go from the folder with this prefix; the files of others are known in it by whole paths."""
    own = traced.get(prefix, Traced())
    whole = {place + name for place, each in traced.items() for name in each.names}
    contents = [data for each in traced.values() for data in each.contents]
    sources = frozenset(entry for each in traced.values() for entry in each.sources)
    return Targets(a_file(own.names | whole, contents), own, sources)


async def trace(part: MemoryFolder, paths: Sequence[str]) -> Traced:
    """What the history knows of files, under all names.

    Args:
        paths: of files, or of folders for all below them.

    Raises:
        InvalidArguments: a file has another name by now.
    """
    log = await read_whole(part.backend, LOG) or b""
    intents = read_log(log).intents
    there = [path for intent in intents for path in paths_in(intent)]
    visible = part.catalog.versions
    below = {path for path in {*visible, *there} if any(f"{path}/".startswith(f"{place}/") for place in paths)}
    dropped = _of_files(intents, below, {path for path in below if path in visible})
    names = {*paths, *below, *(path for _, path in dropped)}
    names = {name for name in names if name in below or name not in visible}  # a new file may have the old name of one
    etags = [
        etag
        for intent in intents
        for file in intent.files
        if (intent.id, file.path) in dropped
        for etag in (file.before, file.after)
    ]
    contents = [data async for kept in kept_contents(part.backend, etags) for data in kept.values()]
    now = await part.read_many(sorted(name for name in names if name in visible))
    contents += [file.data for file in now.values() if isinstance(file, File)]
    return Traced(frozenset(names), frozenset(dropped), tuple(contents))


async def every_path(part: MemoryFolder) -> set[str]:
    """Every path that there is in a folder, and that its history tells of."""
    log = await read_whole(part.backend, LOG) or b""
    return {*part.catalog.versions, *(path for intent in read_log(log).intents for path in paths_in(intent))}


def with_free_names(wanted: Wanted, paths: Collection[str]) -> Wanted:
    """A text that stands in some of these paths: what is called otherwise without it takes no other file's name."""
    named = sorted(path for path in paths if wanted.find(path.encode(errors="surrogateescape")))
    taken, free = {collision_key(path) for path in paths if path not in named}, dict[str, str]()
    for path in named:
        place = PurePosixPath(wanted.without_in_path(path))
        numbered = (str(place.with_stem(f"{place.stem}-{number}")) for number in count(2))
        free[path] = next(name for name in (str(place), *islice(numbered, len(paths))) if collision_key(name) not in taken)
        taken.add(collision_key(free[path]))
    return replace(wanted, free_names=free)


def paths_in(intent: Intent) -> list[str]:
    """Every path that a commit tells of."""
    return [*(file.path for file in intent.files), *(file.path for file in intent.added)]


def header_of(data: bytes) -> Header | None:
    """A file's header; None when it can't be read."""
    try:
        return parse("", data).header
    except InvalidMemoryFile:
        return None


def _of_files(intents: Sequence[Intent], paths: Collection[str], there: Collection[str]) -> set[tuple[str, str]]:
    """The commits that tell of files, each with the name that the file had in it.

    Raises:
        InvalidArguments: one has another name by now.
    """
    names, found, seen = set(paths), set[tuple[str, str]](), set(there)
    for intent in reversed(intents):
        moves = moves_in(intent)
        for old, new in moves.items():
            if old in paths and old not in seen and new not in names:
                raise InvalidArguments(
                    f"{old} is called {new} by now. Purge that, and this name goes with it. Nothing was changed."
                )
        own = names.intersection(paths_in(intent))
        seen |= own
        found |= {(intent.id, name) for name in own}
        for old, new in moves.items():
            if new in names:
                names = (names if new in paths else names - {new}) | {old}
                found.add((intent.id, old))
    return found
