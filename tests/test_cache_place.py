"""Where the cache is: whose it may be, and what happens where there is no room for it."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import stat
from pathlib import Path

from caching import FILES, files_of, known_of, opened
from children import NOBODY, end, open_folder, start
from folders import memory, on_disk

from mdmemory import Config, open_memory
from mdmemory.backends.local import LocalBackend
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.recall.cache import open_cache


def test_without_a_place_for_the_cache() -> None:
    """R6: where no file can be made, as by a user without a home, all works as before, in memory."""

    def look(root: Path, cache: Path) -> None:
        folder = MemoryFolder(LocalBackend(root), Config(watch=False), cache=open_cache("x", ["english"], cache))
        assert asyncio.run(known_of(folder))["found"]

    with open_folder() as place:
        on_disk(place / "memory", FILES)
        look(place / "memory", place / "mine")  # imports what another user may not be able to read
        (place / "cache").mkdir(mode=0o555)
        assert end(start(lambda: look(place / "memory", place / "cache/deeper"), uid=NOBODY)) == 0
        assert not list((place / "cache").iterdir())


def test_a_disk_too_full_for_the_cache(tmp_path: Path) -> None:
    """R6: where the words of all files don't fit, the first search finds all the same, and later ones read nothing again."""
    words = " ".join(f"word{number}" for number in range(200))
    on_disk(tmp_path / "memory", {f"{number}.md": memory("Note", body=f"zebra{number} {words}") for number in range(100)})

    async def look() -> None:
        folder, backend = opened(tmp_path / "memory", tmp_path / "cache")
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
        await folder.refresh()
        for number in (0, 99):
            assert [match.path for match in await folder.search(f"zebra{number}")] == [f"{number}.md"]
        await folder.refresh()
        assert await folder.search("zebra7") and backend.heads == 0

    assert end(start(lambda: asyncio.run(look()))) == 0


async def test_only_its_owner_can_read_it(root: Path, tmp_path: Path) -> None:
    """The words of a memory are nobody else's business: the folder is 0700 and the files are 0600."""
    async with open_memory(root, config=Config(cache=tmp_path / "mine/cache")) as memory:
        await memory.search("friday")
        files = list((tmp_path / "mine/cache").iterdir())
        assert files and {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        assert stat.S_IMODE((tmp_path / "mine/cache").stat().st_mode) == 0o700


async def test_the_cache_is_a_choice(root: Path) -> None:
    """`cache=False` writes no file; by default it lies in the user's cache folder, and never in the memory."""
    before = sorted(root.rglob("*"))
    async with open_memory(root, config=Config(cache=False)) as memory:
        await memory.search("friday")
    assert not (Path.home() / ".cache").exists()
    async with open_memory(root) as memory:
        await memory.search("friday")
    assert files_of(Path.home() / ".cache/mdmemory") and sorted(root.rglob("*")) == before


async def test_each_folder_and_language_has_its_own(root: Path, tmp_path: Path) -> None:
    """Two folders, or one read in another language, don't share words."""
    shutil.copytree(root, tmp_path / "copy")
    for place in (root, tmp_path / "copy"):
        for languages in (("english",), ("german", "english")):
            async with open_memory(place, config=Config(cache=tmp_path / "cache", languages=languages)) as memory:
                await memory.search("friday")
    assert len(files_of(tmp_path / "cache")) == 4


def test_caches_that_nobody_uses_are_deleted(tmp_path: Path) -> None:
    """A cache whose folder was not opened for long goes when another is made; one in use stays, and so does what is not ours."""
    for name in ("old", "used"):
        open_cache(name, ["english"], tmp_path).close()
    old, used = sorted(files_of(tmp_path), key=lambda file: file.stat().st_mtime_ns)
    os.utime(old, (1, 1))
    (tmp_path / "photos.sqlite").write_text("a person's")
    os.utime(tmp_path / "photos.sqlite", (1, 1))
    open_cache("new", ["english"], tmp_path).close()
    assert not old.exists() and used.exists() and (tmp_path / "photos.sqlite").exists()
