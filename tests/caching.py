"""A folder as a process with a cache opens it, and all that it knows, for comparing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from counting import CountingBackend
from folders import memory

from mdmemory.backends.local import LocalBackend
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.recall.cache import open_cache

STABLE_S = 0.05  # from then on a file's times tell of every change
FILES = {
    "a.md": memory("Alpha", "the first", body="Deploy on friday."),
    "sub/b.md": memory("Beta", "the second", body="备份脚本"),
    "sub/deep/c.md": memory("Gamma", valid_until="2020-01-01"),
    "broken.md": b"---\nname: [\n---\n",
    "plain.md": b"# Plain\n\nSome words.\n",
    "picture.png": b"\x89PNG",
}


def opened(root: Path, cache: Path) -> tuple[MemoryFolder, CountingBackend]:
    """The folder as a new process opens it, and its backend that counts."""
    backend = CountingBackend(LocalBackend(root))
    return MemoryFolder(backend, cache=open_cache(str(root), ["english"], cache)), backend


async def known_of(folder: MemoryFolder) -> Mapping[str, object]:
    """What the folder knows and finds."""
    await folder.refresh()
    queries = ("friday", "备份", "words beta", "gamma alpha the first")
    found = [[(match.path, round(match.score, 3)) for match in await folder.search(query)] for query in queries]
    headers = {path: (known.etag, known.header, str(known.problem), known.day) for path, known in folder.files.items()}
    return {"headers": headers, "listed": folder.listed, "skipped": folder.skipped, "found": found}


def files_of(cache: Path) -> list[Path]:
    """The cache's files, without their logs."""
    return list(cache.glob("*.sqlite"))
