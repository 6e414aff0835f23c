"""The text of files that are larger than the head that a scan brings. Floor 3."""

from __future__ import annotations

from collections.abc import Mapping

from mdmemory.backends.protocol import MAX_FILE_BYTES, Backend, File, Range, Scan
from mdmemory.folder.headers import Headers
from mdmemory.folder.known import MAX_RECALL_BYTES, etag_in, is_memory_path


async def larger_texts(backend: Backend, scan: Scan, headers: Headers) -> Mapping[str, bytes]:
    """What recall searches of changed files that are larger than their head, in one round trip.

    Up to 256 KB of each; the whole only of one whose etag is known, so that the same bytes are seen to be the same.
    """
    large: dict[str, Range | None] = {}
    for path, head in scan.heads.items():
        size = scan.files[path].size
        if size > len(head) and is_memory_path(path):
            whole = size <= MAX_FILE_BYTES and etag_in(headers.known(path))
            large[path] = None if whole else Range(0, MAX_RECALL_BYTES)
    found = await backend.read(large) if large else {}
    return {path: file.data for path, file in found.items() if isinstance(file, File)}
