"""Real forgetting: a file with all its versions, or a text, goes from the folder, its history and its cache, for good. Floor 3.

The steps can be repeated, and what was cut short goes on when they are: conversations first, as they are found by what the file
held, then the file, then the history, which is one commit a folder, and at last the cache. Folders that are mounted together are
taken together, as one names and quotes what lies in another. Then all of them are looked through for what is left.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from mdmemory.backends.paths import owner
from mdmemory.backends.protocol import ABSENT, LOG, File, Op, Put, etag_of
from mdmemory.errors import Conflict, InvalidArguments, PermissionDenied, Unavailable
from mdmemory.files.changes import Change, Delete, Rename, Replace
from mdmemory.files.history import PROPOSALS, TOMBSTONES, Intent, object_path, read_log
from mdmemory.files.journal import rewritten, session_of
from mdmemory.files.purging import MARK, Wanted, a_text, rewritten_log, rewritten_tombstones, without_it, without_lines
from mdmemory.folder.any_folder import Folder, backends_of, parts_of
from mdmemory.folder.known import INDEX, is_markdown
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.purge_check import Left, beyond, names_like, what_is_left
from mdmemory.folder.purge_targets import Targets, every_path, header_of, targets_of, trace, with_free_names
from mdmemory.folder.reading import kept_contents
from mdmemory.folder.sweeping import SYNC, TRIES, named_by_syncs, named_in, own_files, read_whole, replace_log, sizes_of

MIN_TEXT: Final = 4  # characters; a shorter text stands everywhere


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
    if text is not None and text in MARK:
        raise InvalidArguments(f"{text!r} is part of {MARK}, which is written in place of what goes, so it would never be gone")
    await folder.refresh()
    everywhere = parts_of(folder)
    allowed = [prefix for prefix in backends_of(folder) if prefix in everywhere and not everywhere[prefix].is_read_only]
    wanted: dict[str, list[str]] = {}
    for path in paths:
        prefix = owner(path, everywhere)
        wanted.setdefault(prefix, []).append(path.removeprefix(prefix).rstrip("/"))
    if not allowed or not wanted.keys() <= set(allowed):
        raise PermissionDenied("Nothing can be purged in a folder that may only be read. Nothing was changed.")
    purges = {prefix: _Purge(folder, prefix, everywhere[prefix], author) for prefix in allowed}
    for each in purges.values():
        await each.part.recover()
    targets = await _targets(everywhere, wanted, text)
    messages = sum([await each.take_from_journals(targets[prefix]) for prefix, each in purges.items()]) if journal else 0
    files: list[str] = []
    for prefix, each in purges.items():
        files += await (each.delete(targets[prefix].own.names) if text is None else each.replace(targets[prefix].wanted))
    later = targets if text is not None else await _targets(everywhere, wanted, text)  # which knows of the deletion, too
    rewritten = [await each.rewrite(later[prefix]) for prefix, each in purges.items()]
    for each in purges.values():
        each.part.catalog.lose(Unavailable("what was purged may be in it"))
        await each.part.refresh()
    caches = [file.name for part in everywhere.values() if (file := part.catalog.cache.file) is not None]
    left = [
        each for prefix, part in everywhere.items() for each in await what_is_left(part, targets[prefix].wanted, prefix, caches)
    ]
    far = [told for each in purges.values() for told in beyond(each.part.backend)]
    far += [] if text is None else names_like(text, [prefix + path for prefix, part in everywhere.items() for path in part.files])
    commits, contents = (sum(count) for count in zip(*rewritten, strict=True))
    return Purged(tuple(files), commits, contents, messages, tuple(dict.fromkeys(left)), tuple(dict.fromkeys(far)))


async def _targets(parts: Mapping[str, MemoryFolder], wanted: Mapping[str, Sequence[str]], text: str | None) -> dict[str, Targets]:
    """By prefix, what is to go from each folder: what is in one may be named, and quoted, in the others."""
    if text is not None:
        return {prefix: Targets(with_free_names(a_text(text), await every_path(part))) for prefix, part in parts.items()}
    traced = {prefix: await trace(parts[prefix], paths) for prefix, paths in wanted.items()}
    return {prefix: targets_of(prefix, traced) for prefix in parts}


class _Purge:
    """A purge of one folder; `whole` is what it may be mounted in. Each step is safe to repeat."""

    def __init__(self, whole: Folder, prefix: str, part: MemoryFolder, author: str) -> None:
        self._whole, self._prefix, self.part, self._author = whole, prefix, part, author
        self._backend = part.backend

    async def take_from_journals(self, target: Targets) -> int:
        """Take it out of conversations, whose entries keep their ids; returns how many messages changed."""
        count = 0
        for path in list(self.part.catalog.journals):
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

    async def delete(self, names: frozenset[str]) -> list[str]:
        """Delete the files; returns whole paths."""
        there = sorted(name for name in names if name in self.part.catalog.versions)
        if there:
            changes = [Delete(self._prefix + path) for path in there]
            await self._whole.apply(changes, self._author, "purge", plain=not all(map(is_markdown, there)))
        return [self._prefix + path for path in there]

    async def replace(self, wanted: Wanted) -> list[str]:
        """Replace a text in every file that can be read; then in people's lines of the index, as ours have followed."""
        named = [path for path in sorted(self.part.files) if wanted.find(path.encode())]
        moves = [Rename(self._prefix + path, self._prefix + wanted.without_in_path(path)) for path in named]
        if moves:
            await self._whole.apply(moves, self._author, "purge")
        changed = [move.new_path for move in moves]
        for paths in (sorted(self.part.files), [INDEX]):
            found = await self.part.read_many(paths)
            changes: list[Change] = []
            for path, file in found.items():
                if isinstance(file, File) and wanted.find(file.data) and (path == INDEX or header_of(file.data)):
                    new = without_lines(file.data, wanted)
                    changes.append(Replace(self._prefix + path, new, etag_of(file.data), file.data))
            if changes:
                await self._whole.apply(changes, self._author, "purge")
                changed += [change.path for change in changes]
        return sorted(set(changed))

    async def rewrite(self, target: Targets) -> tuple[int, int]:
        """Take it out of the log, the objects, the tombstones and what is known of other folders, in one commit."""
        for _ in range(TRIES):
            await self.part.recover()
            whole = await read_whole(self._backend, LOG)
            log = whole or b""
            there = await sizes_of(self._backend, named_in(log))
            new_contents = await self._new_contents(log, there, target)
            new_etags = {etag: etag_of(data) for etag, data in new_contents.items()}
            new_log, commits = rewritten_log(log, target.own.dropped, new_etags, target.wanted)
            unnamed = (named_in(log) | there.keys()) - named_in(new_log)
            swept = (unnamed - await named_by_syncs(self._backend, target.own.names)) | (unnamed & new_etags.keys())
            objects = [Put(object_path(etag_of(data)), data, ABSENT, required=False) for data in new_contents.values()]
            more = [*objects, *await self._others(target)]
            if new_log == log and not swept and not more:
                return 0, 0
            intent = Intent(uuid.uuid4().hex, datetime.now(UTC), "purge", "", (), swept=tuple(sorted(swept)))
            with suppress(Conflict):
                await replace_log(self._backend, whole, new_log, intent, more)
                return commits, len(swept & there.keys())
        raise Unavailable("Others write to the history all the time. Purge it again.")

    async def _new_contents(self, log: bytes, there: Mapping[str, int], target: Targets) -> dict[str, bytes]:
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
        async for kept in kept_contents(self._backend, etags):
            for etag, data in kept.items():
                if (without := without_lines(data, target.wanted)) != data:
                    new[etag] = without
        return new

    async def _others(self, target: Targets) -> list[Op]:
        """The tombstones, what waits for a person, and the index lines that other folders had, without it."""
        bases = [path for path in own_files(self._backend) or () if path.startswith(SYNC)]
        found = await self._backend.read(dict.fromkeys([TOMBSTONES, PROPOSALS, *bases]))
        ops: list[Op] = []
        for path, file in found.items():
            if isinstance(file, File) and file.etag:
                if path == TOMBSTONES:
                    new = rewritten_tombstones(file.data, target.own.names, target.wanted)
                else:
                    new = target.wanted.without_entries(file.data) if path == PROPOSALS else _base(file.data, target)
                if new != file.data:
                    ops.append(Put(path, new, file.etag))
        return ops


def _base(data: bytes, target: Targets) -> bytes:
    try:
        kept = json.loads(data)
        index = without_lines(kept["index"].encode(), target.wanted).decode()
    except (ValueError, KeyError, TypeError, AttributeError):
        return data
    return data if index == kept["index"] else json.dumps({**kept, "index": index}, ensure_ascii=False).encode()
