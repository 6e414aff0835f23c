"""Many files, or many contents that the history keeps, some at a time: each some are one round trip. Floor 3."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Final

from mdmemory.backends.protocol import Backend, File, FileProblem
from mdmemory.files.history import object_path
from mdmemory.folder.any_folder import Folder

AT_ONCE: Final = 100


async def read_all(folder: Folder, paths: Iterable[str]) -> AsyncIterator[Mapping[str, File | FileProblem]]:
    """Files, some at a time.

    Raises:
        InvalidPath: for a path that no memory may have.
    """
    for some in _parted(paths):
        yield await folder.read_many(some)


async def kept_contents(backend: Backend, etags: Iterable[str | None]) -> AsyncIterator[dict[str, bytes]]:
    """What the history keeps under these etags, some at a time; what it keeps no longer is left out."""
    for some in _parted(etag for etag in etags if etag):
        places = {object_path(etag): etag for etag in some}
        found = await backend.read(dict.fromkeys(places))
        yield {places[place]: file.data for place, file in found.items() if isinstance(file, File) and file.etag == places[place]}


def _parted(items: Iterable[str]) -> Iterable[Sequence[str]]:
    every = list(dict.fromkeys(items))
    return (every[start : start + AT_ONCE] for start in range(0, len(every), AT_ONCE))
