"""One commit: from settled changes to operations, in the order that makes every kill healable. Floor 3; only `heal` does I/O."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from mdmemory.backends.protocol import (
    ABSENT,
    LOG,
    Append,
    Backend,
    Delete,
    File,
    FileProblem,
    Move,
    Op,
    Put,
    done_mark,
    etag_of,
)
from mdmemory.errors import InvalidMemoryFile
from mdmemory.files import history, index
from mdmemory.files.changes import Rename
from mdmemory.files.memory_file import decode, parse
from mdmemory.folder.catalog import INDEX, Catalog, Known, is_memory_path, listed_as
from mdmemory.folder.settle import Settled

Outside = Mapping[str, tuple[Known | None, Known | None]]
IndexChange = tuple[index.Listed | None, index.Listed | None]


@dataclass(frozen=True, slots=True)
class Plan:
    """The operations of one commit, and what the index comes to; `index_data` None when the index is not to be written."""

    ops: Sequence[Op]
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
        if not written and not outside:
            return Plan((), None, None, ())
        updated, index_data, warnings = self._index(catalog, index_now, outside, limits)
        now = datetime.now(UTC)
        ops: list[Op] = [Put(path, data, ABSENT, required=False) for path, data in self._objects(written, outside_data).items()]
        if outside:
            ops.append(self._outside_line(outside, now))
        if written:
            files = tuple(_logged(item, catalog) for item in written)
            ops.append(Append(LOG, history.Intent(self.id, now, self.author, self.reason, files).line(), f'"id":"{self.id}"'))
            ops += self._file_ops(written)
            ops += self._tombstones(written, catalog, now)
        index_is_changed = any(item.path == INDEX for item in written)
        if index_data is not None:
            etag = index_now.etag if isinstance(index_now, File) and index_now.etag else ABSENT
            ops.append(Put(INDEX, index_data, etag, required=index_is_changed))
        ops.append(Append(LOG, history.done_line(self.id), done_mark(self.id)))
        return Plan(ops, updated, index_data, warnings)

    def _objects(self, written: Iterable[Settled], outside_data: Mapping[str, bytes]) -> Mapping[str, bytes]:
        contents = [data for item in written if item.path != INDEX for data in (item.before, item.after)]
        return history.objects([*contents, *outside_data.values()])

    def _file_ops(self, written: Sequence[Settled]) -> list[Op]:
        moved = {item.moved_from for item in written if item.moved_from}
        ops: list[Op] = [Move(rename.path, rename.new_path) for rename in self.renames]
        for item in written:
            if item.moved_from or item.path in moved or item.path == INDEX:
                continue
            etag = ABSENT if item.before is None else etag_of(item.before)
            ops.append(Delete(item.path, etag) if item.after is None else Put(item.path, item.after, etag))
        return ops

    def _tombstones(self, written: Sequence[Settled], catalog: Catalog, now: datetime) -> list[Op]:
        moved = {item.moved_from for item in written if item.moved_from}
        gone = [item.path for item in written if item.after is None and item.path not in moved]
        lines = []
        for path in gone:
            known = catalog.files.get(path)
            header = known and known.header
            sources = [header.source] if header and header.source else []
            lines.append(history.tombstone(path, header.name if header else path, now, sources))
        return [Append(history.TOMBSTONES, b"".join(lines), f"commit {self.id}")] if lines else []

    def _outside_line(self, outside: Outside, now: datetime) -> Op:
        files = tuple(history.FileChange(path, _etag(before), _etag(known)) for path, (before, known) in outside.items())
        line_id = f"{self.id}-outside"
        return Append(LOG, history.Intent(line_id, now, history.OUTSIDE, "changed outside", files).line(), f'"id":"{line_id}"')

    def _index(
        self, catalog: Catalog, index_now: File | FileProblem, outside: Outside, limits: index.Limits
    ) -> tuple[index.Updated | None, bytes | None, tuple[str, ...]]:
        if isinstance(index_now, FileProblem) and index_now.kind != "absent":
            return None, None, (f"{INDEX} was left as it is: {index_now.reason}",)
        before = index_now.data if isinstance(index_now, File) else b""
        target = next((item for item in self.settled if item.path == INDEX), None)
        try:
            before_text = decode(INDEX, before)
            text = before_text if target is None or target.after is None else decode(INDEX, target.after)
        except InvalidMemoryFile as error:
            return None, None, (f"the index was left as it is: {error}",)
        changed, everything = self._listed(catalog, outside)
        if target is not None:  # a pointer that the edit took away returns while its file is there
            kept = {pointer.target for pointer in index.pointers(text, everything)}
            lost = {pointer.target for pointer in index.pointers(before_text, everything)} - kept
            changed |= {path: (everything[path], everything[path]) for path in lost & everything.keys()}
        renamed = {item.moved_from: item.path for item in self.settled if item.moved_from}
        updated = index.update(text, changed, everything, limits, renamed)
        data = updated.text.encode()
        warning = index.warning(updated, limits)
        return updated, None if data == before else data, (warning,) if warning else ()

    def _listed(self, catalog: Catalog, outside: Outside) -> tuple[dict[str, IndexChange], dict[str, index.Listed]]:
        everything = dict(catalog.listed)
        changed: dict[str, IndexChange] = {}
        for path, (before, known) in outside.items():
            if known is None or known.header:  # a broken file keeps its line
                changed[path] = (listed_as(path, before) if before else None, listed_as(path, known) if known else None)
        for item in self.settled:
            if is_memory_path(item.path):
                header = None if item.after is None else parse(item.path, item.after).header
                new = None if header is None else index.Listed(header.name, header.description, header.pinned, time.time_ns())
                changed[item.path] = (catalog.listed.get(item.moved_from or item.path), new)
                everything.pop(item.path, None)
                if new is not None:
                    everything[item.path] = new
        return changed, everything


def _etag(known: Known | None) -> str | None:
    return None if known is None else known.etag


def _logged(item: Settled, catalog: Catalog) -> history.FileChange:
    """The log's entry; of the index only people's lines enter the history."""
    if item.path != INDEX:
        before, after = item.before, item.after
    else:
        before, after = (
            data and index.own_lines(data.decode("utf-8", "replace"), catalog.listed).encode() for data in (item.before, item.after)
        )
    return history.FileChange(item.path, None if before is None else etag_of(before), None if after is None else etag_of(after))


async def heal(backend: Backend, intents: Sequence[history.Intent]) -> list[str]:
    """Finish commits that were cut short: each file that still has its before bytes gets its after bytes.

    Returns:
        The paths the commits were about.
    """
    paths = {file.path for intent in intents for file in intent.files}
    etags = {file.after for intent in intents for file in intent.files if file.after}
    found = await backend.read({**dict.fromkeys(paths), **{history.object_path(etag): None for etag in etags}})
    for intent in intents:
        ops: list[Op] = []
        for change in intent.files:
            now = found[change.path]
            etag = now.etag if isinstance(now, File) else None
            if etag != change.before or (isinstance(now, FileProblem) and now.kind != "absent"):
                continue
            kept = found.get(history.object_path(change.after)) if change.after else None
            if change.after is None and etag is not None:
                ops.append(Delete(change.path, etag, required=False))
            elif isinstance(kept, File):
                ops.append(Put(change.path, kept.data, etag or ABSENT, required=False))
        await backend.commit(intent.id, [*ops, Append(LOG, history.done_line(intent.id), done_mark(intent.id))])
    return sorted(paths)
