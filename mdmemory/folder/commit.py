"""One commit: from settled changes to operations, in the order that makes every kill healable. Floor 3, no input or output."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from mdmemory.backends.protocol import (
    ABSENT,
    LOG,
    Append,
    Delete,
    File,
    FileProblem,
    Move,
    Op,
    Put,
    done_mark,
    etag_of,
    problem_error,
)
from mdmemory.errors import BackendError, Conflict, InvalidMemoryFile
from mdmemory.files import history, index
from mdmemory.files.changes import Rename
from mdmemory.files.memory_file import Header, decode, parse
from mdmemory.folder.catalog import Catalog
from mdmemory.folder.known import INDEX, Known, is_memory_path, listed_as
from mdmemory.folder.news import Outside
from mdmemory.folder.settle import Settled
from mdmemory.folder.tombstones import tombstones

ROOM_BYTES = 400  # an index with less room than this for a line counts as full

IndexChange = tuple[index.Listed | None, index.Listed | None]
OwnLines = tuple[bytes | None, bytes | None]


@dataclass(frozen=True, slots=True)
class Plan:
    """The operations of one commit, and what the index comes to.

    Args:
        listed: what the index says of each changed file, before and after.
        index_data: None when the index is not to be written.
    """

    ops: Sequence[Op]
    listed: Mapping[str, IndexChange]
    index: index.Updated | None
    index_data: bytes | None
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Commit:
    """Settled changes of one author, about to be written.

    Args:
        renames: the changes that move a file or a folder as a whole.
    """

    id: str
    author: str
    reason: str
    settled: Sequence[Settled]
    renames: Sequence[Rename] = ()

    def plan(
        self,
        catalog: Catalog,
        index_now: File | FileProblem,
        outside: Outside,
        outside_data: Mapping[str, bytes],
        limits: index.Limits,
    ) -> Plan:
        """Order the operations: objects, intent, files, index, done."""
        written = [item for item in self.settled if item.before != item.after]
        updated, index_data, own, warnings = self._index(catalog, index_now, outside, limits)
        now = datetime.now(UTC)
        kept = [item for item in written if item.path != INDEX]
        if own is not None:
            kept.append(Settled(INDEX, *own))
        objects = history.objects([*(data for item in kept for data in (item.before, item.after)), *outside_data.values()])
        ops: list[Op] = [Put(path, data, ABSENT, required=False) for path, data in objects.items()]
        if outside.changes:
            ops.append(self._outside_line(outside, outside_data, now))
        files = tuple(
            history.FileChange(item.path, _etag(item.before), _etag(item.after), item.restored, item.absorbed) for item in kept
        )
        ops.append(Append(LOG, history.Intent(self.id, now, self.author, self.reason, files).line(), f'"id":"{self.id}"'))
        ops += self._file_ops(written)
        back = [(item.path, header_of(item.path, item.after)) for item in written if item.restored]
        ops += tombstones([(item.path, header_of(item.path, item.before)) for item in _gone(written)], now, back)
        if index_data is not None:
            etag = index_now.etag if isinstance(index_now, File) and index_now.etag else ABSENT
            ops.append(Put(INDEX, index_data, etag, required=any(item.path == INDEX for item in written)))
        ops.append(Append(LOG, history.done_line(self.id), done_mark(self.id)))
        return Plan(ops, self._listed(catalog)[0], updated, index_data, warnings)

    def _file_ops(self, written: Sequence[Settled]) -> list[Op]:
        moved = {item.moved_from for item in written if item.moved_from}
        ops: list[Op] = [Move(rename.path, rename.new_path) for rename in self.renames]
        for item in written:
            if item.moved_from or item.path in moved or item.path == INDEX:
                continue
            etag = ABSENT if item.before is None else etag_of(item.before)
            ops.append(Delete(item.path, etag) if item.after is None else Put(item.path, item.after, etag))
        return ops

    def _outside_line(self, outside: Outside, data: Mapping[str, bytes], now: datetime) -> Op:
        files = tuple(
            history.FileChange(path, _logged(before), etag_of(data[path]) if path in data else _logged(known))
            for path, (before, known) in outside.changes.items()
        )
        line_id = f"{self.id}-outside"
        return Append(LOG, history.Intent(line_id, now, history.OUTSIDE, "changed outside", files).line(), f'"id":"{line_id}"')

    def _index(
        self, catalog: Catalog, index_now: File | FileProblem, outside: Outside, limits: index.Limits
    ) -> tuple[index.Updated | None, bytes | None, OwnLines | None, tuple[str, ...]]:
        """What the index comes to, and what becomes of people's lines in it, which is all that the history keeps of it."""
        target = next((item for item in self.settled if item.path == INDEX), None)
        try:
            text = index_text(index_now) if target is None else decode(INDEX, target.after or b"")
        except (BackendError, InvalidMemoryFile) as error:
            return None, None, None, (left_alone(error),)
        changed, everything = self._listed(catalog)
        if outside.changes:
            text = updated_index(text, listed_outside(outside), catalog.headers.listed, limits, outside.moved()).text
        renamed = {item.moved_from: item.path for item in self.settled if item.moved_from}
        updated = updated_index(text, changed, everything, limits, renamed)
        data, own = updated.text.encode(), None
        if target is not None or renamed or any(item.after is None for item in self.settled):  # else no line of theirs moves
            before = text.encode() if target is None else target.before
            own = _own_lines(before, catalog.headers.listed), _own_lines(data, everything)
            own = None if own[0] == own[1] else own
        there = index_now.data if isinstance(index_now, File) else None if target else b""
        warning = index.warning(updated, limits)
        return updated, None if data == there else data, own, (warning,) if warning else ()

    def _listed(self, catalog: Catalog) -> tuple[dict[str, IndexChange], Mapping[str, index.Listed]]:
        """What the index says of the changed files before and after, and of every file after."""
        everything = _After(catalog.headers.listed)
        changed: dict[str, IndexChange] = {}
        for item in self.settled:
            if not is_memory_path(item.path):
                continue
            old = catalog.headers.listed.get(item.moved_from or item.path) or listing(item.path, item.before)
            header = header_of(item.path, item.after)
            now = None
            if header is not None:
                mtime_ns = old.mtime_ns if item.moved_from and old else time.time_ns()
                now = index.Listed(header.name, header.description, header.pinned, mtime_ns)
            elif item.after is not None:
                now = old  # a broken file that is moved keeps its line
            everything.set(item.path, now)
            if item.after is None or item.path in everything:  # of one that can't be read nothing is known
                changed[item.path] = (old, everything.get(item.path))
        return changed, everything


class _After(Mapping[str, index.Listed]):
    """What the index says of every file after some changed; the others are not copied, so that a save costs the same among many."""

    def __init__(self, before: Mapping[str, index.Listed]) -> None:
        self._before, self._now, self._more = before, dict[str, index.Listed | None](), 0

    def set(self, path: str, listed: index.Listed | None) -> None:
        """Take in a change; None for a file that has no line."""
        self._more += (listed is not None) - (path in self)
        self._now[path] = listed

    def __getitem__(self, path: str) -> index.Listed:
        listed = self._now[path] if path in self._now else self._before[path]
        if listed is None:
            raise KeyError(path)
        return listed

    def __iter__(self) -> Iterator[str]:
        yield from (path for path in self._before if path not in self._now)
        yield from (path for path, listed in self._now.items() if listed is not None)

    def __len__(self) -> int:
        return len(self._before) + self._more


def index_text(found: File | FileProblem) -> str:
    """The text of the index, empty when it is known to be absent.

    Raises:
        BackendError, InvalidMemoryFile: it can't be read, so it must not be written.
    """
    if isinstance(found, File):
        return decode(INDEX, found.data)
    if found.kind == "absent":
        return ""
    raise problem_error(INDEX, found)


def updated_index(
    text: str,
    changed: Mapping[str, IndexChange],
    everything: Mapping[str, index.Listed],
    limits: index.Limits,
    renamed: Mapping[str, str],
) -> index.Updated:
    """The index after some files changed; any file without a pointer gets one while there is room, whoever took it away."""
    is_full = text.count("\n") >= limits.max_lines - 1 or len(text.encode()) > limits.max_bytes - ROOM_BYTES
    returning: dict[str, IndexChange] = {} if is_full else {path: (listed, listed) for path, listed in everything.items()}
    return index.update(text, {**returning, **changed}, everything, limits, renamed)


def left_alone(error: Exception) -> str:
    """The warning that the index was not brought up to date."""
    return f"The index was left as it is, without this change: {error}"


def header_of(path: str, data: bytes | None) -> Header | None:
    """What is known of a file from its bytes; None when they can't be read."""
    try:
        return None if data is None else parse(path, data).header
    except InvalidMemoryFile:
        return None


def listing(path: str, data: bytes | None) -> index.Listed | None:
    """What the index said of a file with these bytes."""
    header = header_of(path, data)
    return None if header is None else index.Listed(header.name, header.description, header.pinned)


def _gone(written: Sequence[Settled]) -> list[Settled]:
    moved = {item.moved_from for item in written if item.moved_from}
    return [item for item in written if item.after is None and not item.absorbed and item.path not in moved]


def _logged(known: Known | None) -> str | None:
    return None if known is None else known.etag or history.UNKNOWN


def _etag(data: bytes | None) -> str | None:
    return None if data is None else etag_of(data)


def _own_lines(data: bytes | None, listed: Mapping[str, index.Listed]) -> bytes | None:
    return None if data is None else index.own_lines(data.decode("utf-8", "replace"), listed).encode()


def listed_outside(outside: Outside) -> dict[str, IndexChange]:
    """What the index said and is to say of files that people changed; a broken one keeps its line."""
    return {
        path: (listed_as(path, before) if before else None, listed_as(path, known) if known else None)
        for path, (before, known) in outside.changes.items()
        if known is None or known.header
    }


def overtaken(plan: Plan, etags: Mapping[str, str]) -> bool:
    """Whether a file that the commit put has other bytes, by a retry that was told that its commit had happened."""
    puts = [op for op in plan.ops if isinstance(op, Put) and op.required and op.path != INDEX]
    return any(etags.get(op.path, "") != etag_of(op.data) for op in puts)


def with_index(op: Op) -> Op:
    """What is written without a look needs the index as it was known: a changed one tells that other processes made files."""
    return replace(op, required=True) if isinstance(op, Put) and op.path == INDEX else op


def bytes_of(path: str, found: File | FileProblem) -> bytes | None:
    """A file's bytes as they were read; None when it is absent.

    Raises:
        Unavailable, UnsafeFile: it could not be read.
    """
    if isinstance(found, File):
        return found.data
    if found.kind == "absent":
        return None
    raise problem_error(path, found)


def is_news(conflict: Conflict, found: Mapping[str, File | FileProblem]) -> bool:
    """Whether the file that is in conflict is not as it was read."""
    seen = found.get(conflict.path)
    return seen is not None and conflict.etag != (seen.etag if isinstance(seen, File) else None)
