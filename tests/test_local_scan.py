"""One look at a local folder, beyond what every backend does."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from mdmemory.backends.listing import STATE
from mdmemory.backends.local import LocalBackend
from mdmemory.backends.local_scan import version_of

SECOND = 1_000_000_000
CHANGED = 1_700_000_000 * SECOND


@pytest.mark.parametrize(
    ("changed", "age", "sure"),
    [
        (CHANGED + 5, 19_000_000, False),
        (CHANGED + 5, 21_000_000, True),
        (CHANGED + 5, -3 * SECOND, False),
        (CHANGED, 21_000_000, False),
        (CHANGED, 2 * SECOND + 1, True),
    ],
)
def test_a_version_is_given_when_it_is_sure(changed: int, age: int, sure: bool) -> None:
    """E3: a file that changed within the clock's grain has no version yet; on a disk that keeps whole seconds that takes two."""
    found = os.stat_result(range(10), {"st_ctime_ns": changed, "st_mtime_ns": changed})
    assert (len(version_of(found, changed + age)) == STATE.size) is sure


async def test_a_very_deep_folder(tmp_path: Path) -> None:
    """N4: folders nested as deep as a path can say are scanned without running out of descriptors or stack."""
    deep = "/".join("d" * 508) + "/a.md"
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        for part in deep.split("/")[:-1]:
            os.mkdir(part, dir_fd=folder)
            below = os.open(part, os.O_RDONLY, dir_fd=folder)
            os.close(folder)
            folder = below
        os.close(os.open("a.md", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
    finally:
        os.close(folder)
    scan = await LocalBackend(tmp_path).scan()
    assert list(scan.files) == [deep] and not scan.skipped


async def test_a_quiet_folder_is_not_listed(tmp_path: Path) -> None:
    """The names in a folder that is as it was are known: only its files are looked at, and a changed folder alone is listed."""
    for number in range(4):
        (tmp_path / f"sub{number}").mkdir()
        (tmp_path / f"sub{number}/a.md").write_text("A")
    listed: list[str] = []
    sys.addaudithook(lambda event, arguments: listed.append(event) if event == "os.scandir" else None)
    backend = LocalBackend(tmp_path)
    await asyncio.sleep(0.05)
    scan = await backend.scan()
    assert len(listed) == 5 and scan.versions is not None
    (tmp_path / "sub1/a.md").write_text("B")
    changed = await backend.scan(scan.versions)
    assert len(listed) == 5 and changed.heads == {"sub1/a.md": b"B"}
    (tmp_path / "sub2/b.md").write_text("C")
    os.rename(tmp_path / "sub3/a.md", tmp_path / "sub3/c.md")
    assert changed.versions is not None
    again = await backend.scan(changed.versions)
    assert len(listed) == 7 and set(again.heads) == {"sub1/a.md", "sub2/b.md", "sub3/c.md"}
    assert sorted(again.files) == ["sub0/a.md", "sub1/a.md", "sub2/a.md", "sub2/b.md", "sub3/c.md"]


async def test_what_is_skipped_is_told_each_time(tmp_path: Path) -> None:
    """N3: links and hard links in a folder where nothing changed are reported by each scan."""
    (tmp_path / "a.md").write_text("A")
    os.link(tmp_path / "a.md", tmp_path / "b.md")
    os.symlink("a.md", tmp_path / "c.md")
    backend = LocalBackend(tmp_path)
    await asyncio.sleep(0.05)
    scan = await backend.scan()
    assert scan.versions is not None and set(scan.skipped) == {"a.md", "b.md", "c.md"}
    assert (await backend.scan(scan.versions)).skipped == scan.skipped


async def test_a_time_that_is_centuries_away(tmp_path: Path) -> None:
    """S4: a file whose modification time no clock will show is looked at like another, and read once."""
    for name, year in (("late.md", 2446), ("early.md", 1)):
        (tmp_path / name).write_text("A")
        os.utime(tmp_path / name, times=(0, (year - 1970) * 31_556_952))
    backend = LocalBackend(tmp_path)
    await asyncio.sleep(0.05)
    scan = await backend.scan()
    assert scan.heads == {"late.md": b"A", "early.md": b"A"} and scan.versions is not None
    again = await backend.scan(scan.versions)
    assert not again.heads and set(again.files) == {"late.md", "early.md"}
