"""The history as a whole: what its log names, what lies beside it, and objects that go because no line names them. Floor 3.

The log is replaced on the condition that it is as it was read, in the commit that deletes the objects. Until they are gone its last
line names them, so that whoever comes after a kill finishes that.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from mdmemory.backends.paths import fault
from mdmemory.backends.protocol import (
    ABSENT,
    LOG,
    MAX_FILE_BYTES,
    Backend,
    Delete,
    File,
    FileProblem,
    Op,
    Put,
    Range,
    etag_of,
    problem_error,
)
from mdmemory.errors import Conflict, Unavailable
from mdmemory.files.history import OBJECTS, Intent, done_line, object_path, read_line, read_log

OWN = ".mdmemory/"
SYNC = ".mdmemory/sync/"
TRIES = 5  # of replacing a log while others write to it
SIZES_AT_ONCE = 2_000


async def read_whole(backend: Backend, path: str) -> bytes | None:
    """A file of any size; None when it is absent.

    Raises:
        Unavailable: it can't be read, or changes all the time.
    """
    for _ in range(TRIES):
        data, size = b"", 1
        while len(data) < size:
            part = (await backend.read({path: Range(len(data), MAX_FILE_BYTES)}))[path]
            if isinstance(part, FileProblem):
                if part.kind == "absent":
                    return None
                raise problem_error(path, part)
            if not part.data and part.size:
                break  # cut meanwhile
            data, size = data + part.data, part.size
        else:
            return data[:size]
    raise Unavailable(f"{path} changes all the time. Try again.")


def named_in(log: bytes) -> set[str]:
    """The etags of every content that a log names."""
    return {etag for intent in read_log(log).intents for etag in etags_of(intent)}


def etags_of(intent: Intent) -> Iterable[str]:
    """The etags that one line of a log names."""
    return (etag for change in intent.files for etag in (change.before, change.after) if etag)


def own_files(backend: Backend) -> Mapping[str, int] | None:
    """The size of every file in `.mdmemory` of a folder on this machine; None elsewhere: what is there is only known by name."""
    root: Path | None = getattr(backend, "watchable_root", None)
    if root is None:
        return None
    sizes: dict[str, int] = {}
    for place, folders, names in os.walk(root / OWN):
        folders[:] = [name for name in folders if not (Path(place) / name).is_symlink()]
        for name in names:
            path = (Path(place) / name).relative_to(root).as_posix()
            with suppress(OSError):
                if fault(path, hidden=True) is None:
                    sizes[path] = (Path(place) / name).lstat().st_size
    return sizes


async def sizes_of(backend: Backend, etags: Iterable[str]) -> Mapping[str, int]:
    """The size of each object that is there, by etag; of those that no line names too, where they can be listed."""
    there = own_files(backend)
    if there is not None:
        return {path.removeprefix(OBJECTS): size for path, size in there.items() if path.startswith(OBJECTS)}
    wanted, sizes = list(etags), dict[str, int]()
    for start in range(0, len(wanted), SIZES_AT_ONCE):
        places = {object_path(etag): etag for etag in wanted[start : start + SIZES_AT_ONCE]}
        found = await backend.read(dict.fromkeys(places, Range(0, 0)))
        sizes |= {places[place]: file.size for place, file in found.items() if isinstance(file, File)}
    return sizes


async def named_by_syncs(backend: Backend, forgotten: Iterable[str] = ()) -> set[str]:
    """The etags of what other folders that are kept in step with this one have.

    Args:
        forgotten: paths whose contents are no longer to be kept.
    """
    bases = [path for path in own_files(backend) or () if path.startswith(SYNC)]
    found = await backend.read(dict.fromkeys(bases)) if bases else {}
    named: set[str] = set()
    for file in found.values():
        if isinstance(file, File):
            with suppress(ValueError, KeyError, TypeError, AttributeError):
                named |= {etag for path, etag in json.loads(file.data)["etags"].items() if path not in forgotten}
    return named


async def replace_log(backend: Backend, old: bytes | None, new: bytes, intent: Intent, more: Sequence[Op] = ()) -> None:
    """Put a new log in place of one, and delete the objects that the intent names.

    Args:
        old: None where there is no log yet.

    Raises:
        Conflict: the log is no longer the old one; nothing was written.
        Unavailable
    """
    new += b"\n" * (not new.endswith(b"\n") and new != b"")
    etag = ABSENT if old is None else etag_of(old)
    began, ended = (Put(LOG, new + line, etag) for line in (intent.line(), done_line(intent.id)))
    await backend.commit(intent.id, [*more, began, *_deletions(intent.swept), ended])


async def finish_sweep(backend: Backend, intent: Intent) -> None:
    """Delete what is left of the objects of a sweep that was cut short, and that no line of the log names by now.

    Raises:
        Unavailable: it is left to the next time.
    """
    for _ in range(TRIES):
        log = await read_whole(backend, LOG) or b""
        lines = log.splitlines(keepends=True)
        began = next((line for line in lines if read_line(line) == intent), None)
        if began is None:
            return
        rest = b"".join(line for line in lines if line is not began)
        gone = set(intent.swept) - named_in(rest) - await named_by_syncs(backend)
        ended = Put(LOG, rest + done_line(intent.id), etag_of(log))
        with suppress(Conflict):
            await backend.commit(intent.id, [*_deletions(sorted(gone)), ended])
            return
    raise Unavailable("the history's log changes all the time. Try again.")


def _deletions(etags: Iterable[str]) -> list[Op]:
    return [Delete(object_path(etag), required=False) for etag in etags]
