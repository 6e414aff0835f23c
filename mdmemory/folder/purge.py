"""Real forgetting: a file with all its versions, or a text, goes from the folder, its history and its cache, for good. Floor 3.

The steps can be repeated, and what was cut short goes on when they are: conversations first, as they are found by what the file
held, then the file, then the history, which is one commit, and at last the cache. Then all is looked through for what is left.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from mdmemory.backends.paths import owner
from mdmemory.backends.protocol import ABSENT, LOG, Backend, File, Op, Put, etag_of
from mdmemory.errors import Conflict, InvalidArguments, InvalidMemoryFile, PermissionDenied, Unavailable
from mdmemory.files.changes import Change, Delete, Rename, Replace
from mdmemory.files.history import TOMBSTONES, Intent, object_path, read_log
from mdmemory.files.journal import rewritten, session_of
from mdmemory.files.memory_file import Header, parse
from mdmemory.files.purging import Wanted, a_file, a_text, rewritten_log, rewritten_tombstones, without_it, without_lines
from mdmemory.folder.any_folder import Folder, backends_of, parts_of
from mdmemory.folder.known import INDEX, is_markdown
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.purge_check import Left, beyond, what_is_left
from mdmemory.folder.recovery import moves_in
from mdmemory.folder.sweeping import SYNC, TRIES, named_by_syncs, named_in, own_files, read_whole, replace_log, sizes_of

MIN_TEXT: Final = 4  # characters; a shorter text stands everywhere
AT_ONCE: Final = 200


@dataclass(frozen=True, slots=True)
class Purged:
    """What went, and what is left.

    Args:
        files: that were deleted, or in which a text was replaced by `(purged)`.
        commits: of the history, that read otherwise now.
        contents: earlier versions that went.
        messages: of conversations, whose words went.
        left: where it still is, as far as that can be seen.
        beyond: what can't be reached from here.
    """

    files: tuple[str, ...]
    commits: int
    contents: int
    messages: int
    left: tuple[Left, ...]
    beyond: tuple[str, ...]


async def purge(
    folder: Folder, paths: Sequence[str] = (), *, text: str | None = None, journal: bool = False, author: str = "person"
) -> Purged:
    """Forget files with all their versions and earlier names, or a text wherever it stands.

    Args:
        paths: of files, or of folders for all below them; they may be deleted already.
        text: the exact text, which becomes `(purged)`.
        journal: also take it out of conversations, and the words of messages from which the files were drawn.

    Raises:
        InvalidArguments: not either paths or a text, or a file that has another name by now.
        PermissionDenied, Conflict, InvalidMemoryFile, Unavailable, UnsafeFile: what is done so far stays; it can be repeated.
    """
    if bool(paths) == (text is not None) or (text is not None and len(text.strip()) < MIN_TEXT):
        raise InvalidArguments(f"say what to purge: paths, or a text of at least {MIN_TEXT} characters")
    await folder.refresh()
    everywhere = parts_of(folder)
    allowed = [prefix for prefix in backends_of(folder) if prefix in everywhere and not everywhere[prefix].is_read_only]
    wanted: dict[str, list[str]] = {prefix: [] for prefix in allowed} if text is not None else {}
    for path in paths:
        prefix = owner(path, everywhere)
        wanted.setdefault(prefix, []).append(path.removeprefix(prefix).rstrip("/"))
    if not wanted or not wanted.keys() <= set(allowed):
        raise PermissionDenied("Nothing can be purged in a folder that may only be read. Nothing was changed.")
    done = [await _Purge(folder, prefix, everywhere[prefix], author).run(inner, text, journal) for prefix, inner in wanted.items()]
    return Purged(
        tuple(file for each in done for file in each.files),
        sum(each.commits for each in done),
        sum(each.contents for each in done),
        sum(each.messages for each in done),
        tuple(left for each in done for left in each.left),
        tuple(dict.fromkeys(far for each in done for far in each.beyond)),
    )


@dataclass(frozen=True, slots=True)
class _Targets:
    """What is to go.

    Args:
        dropped: commits and the paths that they no longer tell of.
        names: every path that the files had.
    """

    wanted: Wanted
    dropped: frozenset[tuple[str, str]] = frozenset()
    names: frozenset[str] = frozenset()
    sources: frozenset[str] = frozenset()


class _Purge:
    """A purge of one folder; `whole` is what it may be mounted in."""

    def __init__(self, whole: Folder, prefix: str, part: MemoryFolder, author: str) -> None:
        self._whole, self._prefix, self._part, self._author = whole, prefix, part, author
        self._backend = part.backend

    async def run(self, paths: Sequence[str], text: str | None, journal: bool) -> Purged:
        """Do all of it; safe to repeat."""
        await self._part.recover()
        target = await self._targets(paths) if text is None else _Targets(a_text(text))
        messages = await self._take_from_journals(target) if journal else 0
        files = await self._delete(target.names) if text is None else await self._replace(target.wanted)
        commits, contents = await self._rewrite(target if text is not None else await self._targets(paths))
        self._part.catalog.lose(Unavailable("what was purged may be in it"))
        await self._part.refresh()
        left = await what_is_left(self._part, target.wanted)
        told = tuple(Left(self._prefix + each.where, each.what) for each in left)
        return Purged(tuple(self._prefix + file for file in files), commits, contents, messages, told, beyond(self._backend))

    async def _targets(self, paths: Sequence[str]) -> _Targets:
        """What the history knows of files, under all names."""
        log = await read_whole(self._backend, LOG) or b""
        intents = read_log(log).intents
        there = [path for intent in intents for path in _paths(intent)]
        visible = self._part.catalog.versions
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
        contents = [*(await _objects(self._backend, etags)).values()]
        now = await self._part.read_many(sorted(name for name in names if name in visible))
        contents += [file.data for file in now.values() if isinstance(file, File)]
        sources = frozenset(entry for data in contents if (header := _header(data)) for entry in header.source)
        return _Targets(a_file(names, contents), frozenset(dropped), frozenset(names), sources)

    async def _take_from_journals(self, target: _Targets) -> int:
        """Take it out of conversations, whose entries keep their ids."""
        count = 0
        for path in list(self._part.catalog.journals):
            session = session_of(path)
            ids = {entry.removeprefix(f"{session}#") for entry in target.sources if entry.startswith(f"{session}#")}
            for _ in range(TRIES):
                file = (await self._backend.read({path: None}))[path]
                if not isinstance(file, File):
                    break  # what can't be read is told of at the end
                new, changed = rewritten(file.data, without_it(target.wanted, ids))
                if new == file.data:
                    break
                with suppress(Conflict):
                    await self._backend.commit(uuid.uuid4().hex, [Put(path, new, etag_of(file.data))])
                    count += changed
                    break
        return count

    async def _delete(self, names: frozenset[str]) -> list[str]:
        there = sorted(name for name in names if name in self._part.catalog.versions)
        if there:
            changes = [Delete(self._prefix + path) for path in there]
            await self._whole.apply(changes, self._author, "purge", plain=not all(map(is_markdown, there)))
        return there

    async def _replace(self, wanted: Wanted) -> list[str]:
        """Replace a text in every file that can be read; then in people's lines of the index, as ours have followed."""
        named = [path for path in sorted(self._part.files) if wanted.find(path.encode())]
        moves = [Rename(self._prefix + path, self._prefix + wanted.without_in_path(path)) for path in named]
        if moves:
            await self._whole.apply(moves, self._author, "purge")
        changed = [move.new_path.removeprefix(self._prefix) for move in moves]
        for paths in (sorted(self._part.files), [INDEX]):
            found = await self._part.read_many(paths)
            changes: list[Change] = []
            for path, file in found.items():
                if isinstance(file, File) and wanted.find(file.data) and (path == INDEX or _header(file.data)):
                    new = without_lines(file.data, wanted)
                    changes.append(Replace(self._prefix + path, new, etag_of(file.data), file.data))
            if changes:
                await self._whole.apply(changes, self._author, "purge")
                changed += [change.path.removeprefix(self._prefix) for change in changes]
        return sorted(set(changed))

    async def _rewrite(self, target: _Targets) -> tuple[int, int]:
        """Take it out of the log, the objects, the tombstones and what is known of other folders, in one commit."""
        for _ in range(TRIES):
            await self._part.recover()
            log = await read_whole(self._backend, LOG) or b""
            there = await sizes_of(self._backend, named_in(log))
            new_contents = await self._new_contents(log, there, target)
            new_etags = {etag: etag_of(data) for etag, data in new_contents.items()}
            new_log, commits = rewritten_log(log, target.dropped, new_etags, target.wanted)
            unnamed = (named_in(log) | there.keys()) - named_in(new_log)
            swept = (unnamed - await named_by_syncs(self._backend, target.names)) | (unnamed & new_etags.keys())
            objects = [Put(object_path(etag_of(data)), data, ABSENT, required=False) for data in new_contents.values()]
            more = [*objects, *await self._others(target)]
            if new_log == log and not swept and not more:
                return 0, 0
            intent = Intent(uuid.uuid4().hex, datetime.now(UTC), "purge", "", (), swept=tuple(sorted(swept)))
            with suppress(Conflict):
                await replace_log(self._backend, log, new_log, intent, more)
                return commits, len(swept & there.keys())
        raise Unavailable("Others write to the history all the time. Purge it again.")

    async def _new_contents(self, log: bytes, there: Mapping[str, int], target: _Targets) -> dict[str, bytes]:
        """By the old etag, every kept content that reads otherwise without it."""
        of_index = {
            etag
            for intent in read_log(log).intents
            for file in intent.files
            if file.path == INDEX
            for etag in (file.before, file.after)
        }
        etags = [etag for etag in there if target.wanted.is_text or etag in of_index]
        new: dict[str, bytes] = {}
        for start in range(0, len(etags), AT_ONCE):
            for etag, data in (await _objects(self._backend, etags[start : start + AT_ONCE])).items():
                if (without := without_lines(data, target.wanted)) != data:
                    new[etag] = without
        return new

    async def _others(self, target: _Targets) -> list[Op]:
        """The tombstones, and the index lines that other folders had, without it."""
        bases = [path for path in own_files(self._backend) or () if path.startswith(SYNC)]
        found = await self._backend.read(dict.fromkeys([TOMBSTONES, *bases]))
        ops: list[Op] = []
        for path, file in found.items():
            if isinstance(file, File) and file.etag:
                is_base = path != TOMBSTONES
                new = _base(file.data, target) if is_base else rewritten_tombstones(file.data, target.names, target.wanted)
                if new != file.data:
                    ops.append(Put(path, new, file.etag))
        return ops


def _base(data: bytes, target: _Targets) -> bytes:
    try:
        kept = json.loads(data)
        index = without_lines(kept["index"].encode(), target.wanted).decode()
    except (ValueError, KeyError, TypeError, AttributeError):
        return data
    return data if index == kept["index"] else json.dumps({**kept, "index": index}, ensure_ascii=False).encode()


def _paths(intent: Intent) -> list[str]:
    return [*(file.path for file in intent.files), *(file.path for file in intent.added)]


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
        own = names.intersection(_paths(intent))
        seen |= own
        found |= {(intent.id, name) for name in own}
        for old, new in moves.items():
            if new in names:
                names = (names if new in paths else names - {new}) | {old}
                found.add((intent.id, old))
    return found


def _header(data: bytes) -> Header | None:
    try:
        return parse("", data).header
    except InvalidMemoryFile:
        return None


async def _objects(backend: Backend, etags: Sequence[str | None]) -> dict[str, bytes]:
    places = {object_path(etag): etag for etag in etags if etag}
    found = await backend.read(dict.fromkeys(places)) if places else {}
    return {places[place]: file.data for place, file in found.items() if isinstance(file, File) and file.etag == places[place]}
