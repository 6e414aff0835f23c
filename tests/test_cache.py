"""The cache: nothing unchanged is read again in any process, and no state of the file makes a wrong answer."""

from __future__ import annotations

import asyncio
import os
import resource
import shutil
import sqlite3
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from caching import known_of, opened
from children import NOBODY, end, open_folder, start
from folders import memory, on_disk

from mdmemory import Config, open_memory
from mdmemory.backends.local import LocalBackend
from mdmemory.files.changes import Create
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


@pytest.fixture
async def root(tmp_path: Path) -> Path:
    """A folder whose files are old enough to be sure of."""
    on_disk(tmp_path / "memory", FILES)
    await asyncio.sleep(STABLE_S)
    return tmp_path / "memory"


async def test_a_second_process_reads_nothing_again(root: Path, tmp_path: Path) -> None:
    """What is unchanged is known without a read: headers, problems and all that a search needs."""
    first, _ = opened(root, tmp_path / "cache")
    expected = await known_of(first)
    await first.close()
    second, backend = opened(root, tmp_path / "cache")
    assert await second.refresh() == frozenset() and backend.heads == 0
    assert await known_of(second) == expected == await known_of(on_disk(root))
    assert backend.calls == ["scan", "scan"] and backend.heads == 0


async def test_a_second_process_reads_what_changed(root: Path, tmp_path: Path) -> None:
    """D4: changed, new, renamed and deleted files since the last process are each read or dropped alone."""
    first, _ = opened(root, tmp_path / "cache")
    await first.refresh()
    await first.close()
    (root / "a.md").write_bytes(memory("Alpha", body="Deploy on monday."))
    (root / "new.md").write_bytes(memory("New"))
    (root / "plain.md").unlink()
    (root / "sub").rename(root / "moved")
    second, backend = opened(root, tmp_path / "cache")
    changed = await second.refresh()
    assert changed == {"a.md", "new.md", "plain.md", "sub/b.md", "sub/deep/c.md", "moved/b.md", "moved/deep/c.md"}
    assert backend.heads == 4
    assert await known_of(second) == await known_of(on_disk(root))


async def test_what_one_process_learnt_the_other_need_not_read(root: Path, tmp_path: Path) -> None:
    """Two processes share what they know, and each tells of every change once."""
    (one, _), (other, backend) = opened(root, tmp_path / "cache"), opened(root, tmp_path / "cache")
    await one.refresh()
    await other.refresh()
    await one.apply([Create("new.md", memory("New", body="A zebra."))], "person", "test")
    await asyncio.sleep(STABLE_S)
    await one.refresh()
    (root / "a.md").unlink()
    assert await other.refresh() == {"new.md", "a.md"} and backend.heads == 1  # the index
    assert [match.path for match in await other.search("zebra")] == ["new.md"]
    assert await other.refresh() == frozenset()
    assert await one.refresh() == {"a.md"} and not await one.search("deploy")


@pytest.mark.parametrize("others", [0, 80])
async def test_a_folder_that_comes_back_unchanged(root: Path, tmp_path: Path, others: int) -> None:
    """D1: what one process saw go and forgot, another that never missed it finds again, and so does the next."""
    expected = await known_of(on_disk(root))
    first, _ = opened(root, tmp_path / "cache")
    await known_of(first)
    (root / "sub").rename(tmp_path / "away")
    second, _ = opened(root, tmp_path / "cache")
    on_disk(root, {f"more/{number}.md": memory("More") for number in range(others)})  # so many that all versions are written
    await known_of(second)
    await second.close()
    (tmp_path / "away").rename(root / "sub")
    if others:
        shutil.rmtree(root / "more")
    assert await known_of(first) == expected
    third, _ = opened(root, tmp_path / "cache")
    assert await known_of(third) == expected


async def test_what_another_process_has_found_since_the_last_look(root: Path, tmp_path: Path) -> None:
    """A search finds what was there at its own last look, and the cache is none the worse for what others put in it."""
    (one, backend), (other, _) = opened(root, tmp_path / "cache"), opened(root, tmp_path / "cache")
    (root / "sub/deep/c.md").unlink()  # which has expired, and would narrow each search to what is known
    expected = await known_of(one)
    (root / "new.md").write_bytes(memory("New", body="A zebra on friday."))
    await other.refresh()
    assert not await one.search("zebra") and not await one.search_passages("zebra")
    assert [match.path for match in await one.search("friday")] == ["a.md"] and backend.calls == ["scan"]
    assert await one.refresh() == {"new.md"} and [match.path for match in await one.search("zebra")] == ["new.md"]
    (root / "new.md").unlink()
    assert await known_of(one) == expected


async def test_a_fresh_change_of_the_same_size_is_read_again(root: Path, tmp_path: Path) -> None:
    """E3: a file read within the clock's grain of its change is read again, in the next process too."""
    for number in range(20):
        (root / "a.md").write_bytes(memory("Alpha", body=f"word{number:02}"))
        folder, _ = opened(root, tmp_path / "cache")
        await folder.refresh()
        assert [match.path for match in await folder.search(f"word{number:02}")] == ["a.md"]
        await folder.close()


def damaged(file: Path) -> None:
    """Garbage over the middle of the file."""
    data = bytearray(file.read_bytes())
    data[4096:] = os.urandom(len(data) - 4096)
    file.write_bytes(data)


def older(file: Path) -> None:
    """The same file as another version would have written it."""
    with sqlite3.connect(file) as database:
        database.execute("PRAGMA user_version = 999")


def half_known(file: Path) -> None:
    """Valid SQLite in which nothing makes sense."""
    with sqlite3.connect(file) as database:
        database.execute("UPDATE file SET header = '[]', units = '{}', version = 'x'")


DAMAGES: list[Callable[[Path], object]] = [
    damaged,
    older,
    half_known,
    lambda file: file.write_bytes(b""),
    lambda file: file.write_bytes(b"not a database at all" * 1_000),
    lambda file: os.truncate(file, file.stat().st_size // 2),
    Path.unlink,
]


def files_of(cache: Path) -> list[Path]:
    """The cache's files, without their logs."""
    return list(cache.glob("*.sqlite"))


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_damaged_cache_is_made_anew(root: Path, tmp_path: Path, damage: Callable[[Path], object]) -> None:
    """Whatever was done to the file, answers are those without it, and the process after reads nothing again."""
    first, _ = opened(root, tmp_path / "cache")
    expected = await known_of(first)
    await first.close()
    (file,) = files_of(tmp_path / "cache")
    damage(file)
    second, _ = opened(root, tmp_path / "cache")
    await known_of(second)
    assert await known_of(second) == expected
    await second.close()
    third, backend = opened(root, tmp_path / "cache")
    assert await known_of(third) == expected and backend.heads == 0


@pytest.mark.parametrize("damage", DAMAGES)
async def test_a_cache_that_is_damaged_while_in_use(root: Path, tmp_path: Path, damage: Callable[[Path], object]) -> None:
    """The process that has it open goes on, finds what is there, and takes in what comes."""
    folder, _ = opened(root, tmp_path / "cache")
    expected = await known_of(folder)
    (file,) = files_of(tmp_path / "cache")
    damage(file)
    assert await known_of(folder) == expected
    await folder.apply([Create("new.md", memory("New", body="A zebra."))], "person", "test")
    await folder.refresh()
    assert [match.path for match in await folder.search("zebra")] == ["new.md"]


async def test_many_processes_begin_at_once(root: Path, tmp_path: Path) -> None:
    """Eight processes that make the same cache find what one alone finds; so do eight that then use it."""
    for number in range(300):
        (root / f"n{number}.md").write_bytes(memory(f"Note {number}", body=f"zebra number{number}"))
    await asyncio.sleep(STABLE_S)
    expected = await known_of(on_disk(root))

    def look() -> None:
        folder, _ = opened(root, tmp_path / "cache")
        assert asyncio.run(known_of(folder)) == expected

    for _ in range(2):
        assert [end(child) for child in [start(look) for _ in range(8)]] == [0] * 8
    folder, backend = opened(root, tmp_path / "cache")
    assert await known_of(folder) == expected and backend.heads == 0


async def test_a_process_killed_while_it_writes(root: Path, tmp_path: Path) -> None:
    """E6: after a kill at any moment the next process finds everything."""
    expected = await known_of(on_disk(root))

    def write() -> None:
        while True:
            folder, _ = opened(root, tmp_path / "cache")
            asyncio.run(folder.refresh())
            for path in files_of(tmp_path / "cache"):
                path.unlink(missing_ok=True)

    for number in range(10):
        child = start(write)
        await asyncio.sleep(0.02 + 0.01 * number)
        os.kill(child, 9)
        assert end(child) == -9
        folder, _ = opened(root, tmp_path / "cache")
        assert await known_of(folder) == expected
        await folder.close()


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
