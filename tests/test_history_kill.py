"""Kill -9 at any step of an undo, a purge, and of dropping what is too old."""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from children import end, start
from folders import log_of, memory, on_disk, visible
from test_purge import SECRET, TEA, holding, seeded
from test_recovery import armed, healed, places

from mdmemory.backends.protocol import LOG
from mdmemory.care import history
from mdmemory.config import Config
from mdmemory.files.changes import Create, Delete
from mdmemory.files.history import OBJECTS, read_tombstones
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.purge import purge
from mdmemory.folder.retention import shorten
from mdmemory.folder.sweeping import named_in

pytestmark = pytest.mark.slow  # many processes, or the same again and again

__all__ = ["places"]
Work = Callable[[MemoryFolder], Awaitable[object]]
AT_EACH = pytest.param(1, marks=pytest.mark.slow, id="each call")  # system calls between two kills


def killed(seed: Path, root: Path, call: int, work: Work) -> int:
    """Do the work on a copy of a folder, in a process that is killed before its n-th system call; returns how that ended."""
    shutil.copytree(seed, root)

    async def run() -> None:
        folder = on_disk(root)
        await folder.recover()
        await folder.refresh()
        arm()
        await work(folder)

    arm = armed(call)
    return end(start(lambda: asyncio.run(run())))


def check_history(root: Path, *, orphans: bool = False) -> None:
    """Every line is finished, nothing is left to be swept, and there is no object without a name, but for some that are new."""
    log = (root / LOG).read_bytes()
    assert b'"swept"' not in log and [entry["done"] for entry in log_of(root) if "done" in entry]
    assert orphans or {path.name for path in (root / OBJECTS).iterdir()} <= named_in(log)
    assert not list(root.glob(".mdmemory/tmp/*"))


@pytest.fixture
def seed(places: Path) -> Path:
    """A folder with a history, one file of which was deleted."""

    async def make() -> None:
        folder = await seeded(on_disk(places / "seed"))
        await folder.apply([Delete("tea.md")], "person", "forget")

    asyncio.run(make())
    return places / "seed"


@pytest.mark.parametrize("every", [3, AT_EACH])
def test_killed_in_an_undo(every: int, seed: Path, places: Path) -> None:
    """E6, M3: after a kill in an undo, the next open finds it done or not begun, its tombstone and its log with it."""

    async def undo(folder: MemoryFolder) -> None:
        await history.undo(folder, (await history.events(folder, limit=1))[0])

    call, code, ends = 1, -signal.SIGKILL, set()
    while code == -signal.SIGKILL:
        root = places / str(call)
        code = killed(seed, root, call, undo)
        asyncio.run(healed(root))
        is_back = visible(root).get("tea.md") == TEA
        ends.add(is_back)
        assert ("tea.md" in read_tombstones((root / ".mdmemory/tombstones").read_bytes()).paths) != is_back
        check_history(root)
        call += every
    assert code == 0 and call > 60 and ends == {True, False}


@pytest.mark.parametrize("every", [6, AT_EACH])
@pytest.mark.parametrize("by_text", [True, False], ids=["a text", "a file"])
def test_killed_in_a_purge(by_text: bool, every: int, seed: Path, places: Path) -> None:
    """E6, D3: after a kill in a purge, the next open finds a folder that works, and the purge is finished by doing it again."""

    async def forget(folder: MemoryFolder) -> None:
        await (purge(folder, text=SECRET) if by_text else purge(folder, ["home/locker.md"]))

    call, code, again = 1, -signal.SIGKILL, set()
    while code == -signal.SIGKILL:
        root = places / str(call)
        code = killed(seed, root, call, forget)
        folder = asyncio.run(healed(root))
        check_history(root, orphans=True)
        again.add(bool(holding(root, SECRET)))
        asyncio.run(forget(folder))
        check_history(root)
        assert holding(root, SECRET) == [] and (by_text or "home/locker.md" not in visible(root))
        call += every
    assert code == 0 and call > 60 and again == {True, False}


@pytest.mark.parametrize("every", [3, AT_EACH])
def test_killed_while_the_history_is_shortened(every: int, seed: Path, places: Path) -> None:
    """E6: after a kill between the log's new beginning and the last object, the next open deletes what no line names."""

    async def drop(folder: MemoryFolder) -> None:
        while await shorten(folder.backend, Config(history_days=1)):
            pass

    log = seed / LOG
    old = (datetime.now(UTC) - timedelta(days=2)).strftime("%Y-%m-%d")
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join(line.replace(f"{datetime.now(UTC):%Y-%m-%d}", old) for line in lines[:-2]) + "".join(lines[-2:]))
    call, code, sizes = 1, -signal.SIGKILL, set()
    while code == -signal.SIGKILL:
        root = places / str(call)
        code = killed(seed, root, call, drop)
        folder = asyncio.run(healed(root))
        check_history(root)
        sizes.add(len(list((root / OBJECTS).iterdir())))
        asyncio.run(folder.apply([Create("new.md", memory("New"))], "agent:a", "Write"))
        call += every
    assert code == 0 and sizes == {3, 1}
    assert [event.files[0].kind for event in asyncio.run(history.events(folder))] == ["created", "deleted"]
