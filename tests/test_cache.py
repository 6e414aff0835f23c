"""The cache: nothing unchanged is read again in any process, and no state of the file makes a wrong answer."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from caching import STABLE_S, files_of, known_of, opened
from children import end, start
from folders import memory, on_disk

from mdmemory.files.changes import Create


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
