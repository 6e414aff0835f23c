"""Text at the end of files, by one commit that reads nothing: however many add at once, all of it is kept. Floor 3.

The history says who added how much to which file, and when; the text itself is in the file.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from mdmemory.backends.protocol import LOG, MAX_FILE_BYTES, Backend, Op, done_mark
from mdmemory.backends.protocol import Append as AppendOp
from mdmemory.errors import InvalidArguments, InvalidMemoryFile, NotThere
from mdmemory.files.changes import Append, Change
from mdmemory.files.history import Added, Intent, done_line
from mdmemory.files.memory_file import parse
from mdmemory.folder.commit import bytes_of
from mdmemory.folder.settle import Settled
from mdmemory.folder.view import View


async def append(
    backend: Backend, view: View, changes: Sequence[Change], author: str, reason: str, dry_run: bool
) -> tuple[str | None, tuple[Settled, ...]]:
    """Add to files.

    Returns:
        The id of the commit, and of each file, as its bytes after it, what was added.

    Raises:
        NotThere, InvalidArguments, InvalidMemoryFile, Unavailable, UnsafeFile: nothing was added.
    """
    appends = [change for change in changes if isinstance(change, Append)]
    if len(appends) < len(changes):
        raise InvalidArguments("Text is added to files by a commit of its own. Nothing was written; apply the other changes first.")
    sizes = await _sizes(view, [change.path for change in appends])
    texts = [change.data if change.data.endswith(b"\n") else change.data + b"\n" for change in appends]
    for change, text in zip(appends, texts, strict=True):
        if sizes[change.path] + len(text) > MAX_FILE_BYTES:
            raise InvalidMemoryFile(change.path, "it has no room for more. Create a new file, and go on there")
        if not sizes[change.path]:
            parse(change.path, text)
    settled = tuple(Settled(change.path, b"", text) for change, text in zip(appends, texts, strict=True))
    if dry_run:
        return None, settled
    commit_id = uuid.uuid4().hex
    added = tuple(Added(item.path, len(text)) for item, text in zip(settled, texts, strict=True))
    intent = Intent(commit_id, datetime.now(UTC), author, reason, (), added)
    ops: list[Op] = [AppendOp(LOG, intent.line(), f'"id":"{commit_id}"')]
    ops += [AppendOp(item.path, text, "") for item, text in zip(settled, texts, strict=True)]
    await backend.commit(commit_id, [*ops, AppendOp(LOG, done_line(commit_id), done_mark(commit_id))])
    return commit_id, settled


async def _sizes(view: View, paths: Sequence[str]) -> dict[str, int]:
    """How large the files are, as far as is known without a look at those that are known to be there."""
    known = {path: view.catalog.headers.known(path) for path in paths}
    unknown = [path for path, file in known.items() if file is None]
    found = await view.current(unknown) if unknown else {}
    sizes = {path: file.size for path, file in known.items() if file is not None}
    for path in unknown:
        data = bytes_of(path, found[path])
        if data is None:
            raise NotThere(f"There is no {path} to add to. Nothing was written: create it first.")
        sizes[path] = len(data)
    return sizes
