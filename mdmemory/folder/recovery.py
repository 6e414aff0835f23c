"""Finishing a commit that was cut short, from the log's intent and the history's objects. Floor 3."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

from mdmemory.backends.protocol import ABSENT, LOG, Append, Backend, Delete, File, FileProblem, Op, Put, done_mark, etag_of
from mdmemory.errors import InvalidMemoryFile, InvalidPath, UnsafeFile
from mdmemory.files import history, index
from mdmemory.files.changes import merge
from mdmemory.folder.commit import header_of, index_text, listing
from mdmemory.folder.known import INDEX
from mdmemory.folder.tombstones import tombstones

logger = logging.getLogger("mdmemory")

Found = Mapping[str, File | FileProblem]


async def heal(backend: Backend, intent: history.Intent, listed: Mapping[str, index.Listed]) -> dict[str, index.Listed | None]:
    """Give each file of a commit that still has its before bytes its after bytes; what a person changed meanwhile stays.

    Args:
        listed: what the index says of every file.

    Returns:
        What the index said of each of the commit's files before it; None where it said nothing.

    Raises:
        Unavailable: could not look or write; it is left to the next time.
    """
    objects = [history.object_path(etag) for change in intent.files for etag in (change.before, change.after) if etag]
    found = await backend.read(dict.fromkeys([*(change.path for change in intent.files), *objects]))
    before = {change.path: listing(change.path, _kept(found, change.before)) for change in intent.files if change.path != INDEX}
    was = {**listed, **{path: header for path, header in before.items() if header}}
    ops = [op for change in intent.files for op in _forward(change, found, was)]
    done = Append(LOG, history.done_line(intent.id), done_mark(intent.id))
    moved = moves_in(intent)
    gone = [change for change in intent.files if change.after is None and not change.absorbed and change.path not in moved]
    forget = tombstones(
        [(change.path, header_of(change.path, _kept(found, change.before))) for change in gone],
        intent.at,
        [(change.path, header_of(change.path, _kept(found, change.after))) for change in intent.files if change.restored],
    )
    try:
        await backend.commit(intent.id, [*ops, *forget, done])
    except (InvalidPath, UnsafeFile) as error:
        logger.warning("a cut-short commit was left as it is: %s", error)
        await backend.commit(intent.id, [done])
    return before


def _forward(change: history.FileChange, found: Found, listed: Mapping[str, index.Listed]) -> Iterator[Op]:
    """The operation that brings one file forward, if it is still as it was before."""
    now, after = found[change.path], _kept(found, change.after)
    if isinstance(now, FileProblem) and now.kind != "absent":
        return
    etag = now.etag if isinstance(now, File) else None
    if change.path == INDEX:
        text = None if after is None else _index_forward(now, change.before, after, listed)
        if text is not None:
            yield Put(INDEX, text, etag or ABSENT, required=False)
    elif etag == change.before and after is not None:
        yield Put(change.path, after, etag or ABSENT, required=False)
    elif etag == change.before and etag is not None and change.after is None:
        yield Delete(change.path, etag, required=False)


def _index_forward(now: File | FileProblem, before: str | None, after: bytes, listed: Mapping[str, index.Listed]) -> bytes | None:
    """The index with an edit of people's lines in it; None unless they are still what they were before."""
    try:
        text = index_text(now)
    except InvalidMemoryFile:
        return None
    own = index.own_lines(text, listed)
    if before != (etag_of(own.encode()) if isinstance(now, File) else None):
        return None
    merged = merge(own, after.decode(), text, keep_both_insertions=True)
    return None if merged is None else merged.encode()


def moves_in(intent: history.Intent) -> dict[str, str]:
    """New path by old path of the files that a commit moved."""
    gone = {change.before: change.path for change in intent.files if change.after is None and change.before}
    return {gone[change.after]: change.path for change in intent.files if change.before is None and change.after in gone}


def _kept(found: Found, etag: str | None) -> bytes | None:
    """The bytes that the history holds under this etag."""
    file = found.get(history.object_path(etag)) if etag else None
    return file.data if isinstance(file, File) and file.etag == etag else None
