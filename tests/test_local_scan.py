"""One look at a local folder, beyond what every backend does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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
    assert bool(version_of(found, changed + age)) is sure


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
