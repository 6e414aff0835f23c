"""The local backend among other processes and users."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from children import NOBODY, end, open_folder, start
from test_conformance import WeakerLocalBackend

from mdmemory.backends.local import LocalBackend
from mdmemory.backends.protocol import Append, FileProblem, Put, etag_of
from mdmemory.errors import Conflict, Unavailable

BOTH = pytest.mark.parametrize("kind", [LocalBackend, WeakerLocalBackend])


def run(work: Callable[[int], Coroutine[Any, Any, None]], process: int) -> None:
    """Run the work of one process in an event loop of its own."""
    asyncio.run(work(process))


def test_eight_processes_append(tmp_path: Path) -> None:
    """E5: 8 processes that each append 500 entries to one file keep 4,000 of 4,000."""

    async def append(process: int) -> None:
        backend = LocalBackend(tmp_path)
        for n in range(500):
            entry = f"{process}-{n:03}"
            await backend.commit(entry, [Append("log.md", f"{entry}\n".encode(), entry)])

    children = [start(partial(run, append, process)) for process in range(8)]
    assert [end(pid) for pid in children] == [0] * 8
    lines = (tmp_path / "log.md").read_text().splitlines()
    assert len(lines) == 4000 and set(lines) == {f"{process}-{n:03}" for process in range(8) for n in range(500)}


@BOTH
def test_processes_that_update_one_file(kind: type[LocalBackend], tmp_path: Path) -> None:
    """E1, I5: 6 processes read, modify and replace one index, each 10 times; no update is lost."""

    async def update(process: int) -> None:
        backend = kind(tmp_path)
        for n in range(10):
            while True:
                found = (await backend.read({"MEMORY.md": None}))["MEMORY.md"]
                data = b"" if isinstance(found, FileProblem) else found.data
                new = data + f"- {process} {n}\n".encode()
                with contextlib.suppress(Conflict):
                    await backend.commit(f"{process} {n} {etag_of(data)}", [Put("MEMORY.md", new, etag_of(data) if data else "-")])
                    break

    children = [start(partial(run, update, process)) for process in range(6)]
    assert [end(pid) for pid in children] == [0] * 6
    assert len(set((tmp_path / "MEMORY.md").read_text().splitlines())) == 60


def hold_lock(kind: type[LocalBackend], root: Path) -> int:
    """Start a process that holds the lock until it is killed."""
    ready, tell = os.pipe()

    def work() -> None:
        with kind(root)._locked(5):
            os.write(tell, b"x")
            signal.pause()

    pid = start(work)
    os.read(ready, 1)
    os.close(ready)
    os.close(tell)
    return pid


@BOTH
async def test_a_lock_that_is_held(kind: type[LocalBackend], tmp_path: Path) -> None:
    """A commit waits for another process's lock as long as told, says so, and can go on as soon as that process is killed."""
    backend = kind(tmp_path, lock_timeout_s=0.2)
    holder = hold_lock(kind, tmp_path)
    began = time.monotonic()
    with pytest.raises(Unavailable, match=r"held the memory's lock for 0\.2 s"):
        await backend.commit("c", [Put("a.md", b"x")])
    assert 0.2 <= time.monotonic() - began < 2 and not (tmp_path / "a.md").exists()
    assert (await backend.scan()).files == {}  # looking needs no lock
    os.kill(holder, signal.SIGKILL)
    end(holder)
    await backend.commit("c", [Put("a.md", b"x")])
    assert (tmp_path / "a.md").exists()


@contextlib.contextmanager
def just_before(call: Callable[..., Any], act: Callable[[], object]) -> Iterator[None]:
    """Do something just before this thread calls a function of the system for the first time."""
    acted: list[object] = []

    def watch(_frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and function is call and not acted:
            acted.append(True)
            act()

    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(None)
    assert acted


def test_a_lock_file_that_is_removed(tmp_path: Path) -> None:
    """A lock file that someone removes while it is being taken is not the lock: the next to come would lock another."""
    backend = LocalBackend(tmp_path)
    backend._commit("c", [Put("a.md", b"x")])
    other = LocalBackend(tmp_path)
    removed = just_before(fcntl.flock, (tmp_path / ".mdmemory/lock").unlink)
    with pytest.raises(Unavailable), removed, backend._locked(1), other._locked(0):
        pass


def test_two_that_take_the_lock_folder_at_once(tmp_path: Path) -> None:
    """Where a second owner appears in the lock folder while it is being taken, whoever sees it steps back."""
    backend = WeakerLocalBackend(tmp_path)
    backend._commit("c", [Put("a.md", b"x")])
    other = tmp_path / f".mdmemory/lock.d/{os.getpid()}.0.{socket.gethostname()}"
    with pytest.raises(Unavailable), just_before(os.listdir, other.touch), backend._locked(0.1):
        pass
    other.unlink()
    with backend._locked(0):
        pass


@BOTH
def test_what_can_not_be_looked_at(kind: type[LocalBackend]) -> None:
    """D1, I6: a folder or file without permission is "could not look", never absent, and nothing is written over it."""

    async def look(root: Path) -> None:
        backend = kind(root)
        scan = await backend.scan()
        assert list(scan.files) == ["open.md"] and set(scan.skipped) == {"shut", "shut.md"}
        assert all(reason == "could not look: permission denied" for reason in scan.skipped.values())
        found = await backend.read({"shut/a.md": None, "shut.md": None})
        assert [problem.kind for problem in found.values() if isinstance(problem, FileProblem)] == ["unavailable"] * 2
        for path in found:
            with pytest.raises(Unavailable):
                await backend.commit("c", [Put("first.md", b"x"), Put(path, b"x", "-")])
        assert not (root / "first.md").exists()
        root.chmod(0)
        with pytest.raises(Unavailable, match="permission denied") as caught:
            await backend.scan()
        assert str(root) not in str(caught.value)
        assert [getattr(problem, "kind", "") for problem in (await backend.read({"open.md": None})).values()] == ["unavailable"]

    with open_folder() as folder:
        root = folder / "memory"
        (root / "shut").mkdir(parents=True)
        for name in ("shut/a.md", "shut.md", "open.md"):
            (root / name).write_bytes(b"x")
        for path, mode in ((root / "shut", 0), (root / "shut.md", 0), (root, 0o700)):
            if os.getuid() == 0:
                os.chown(path, NOBODY, NOBODY)
            path.chmod(mode)
        assert end(start(lambda: asyncio.run(look(root)), uid=NOBODY)) == 0


@BOTH
def test_a_read_only_folder(kind: type[LocalBackend]) -> None:
    """A folder that this user may not write can be scanned and read; a save says that it is read-only."""

    async def use(root: Path) -> None:
        backend = kind(root)
        assert (await backend.scan()).heads == {"a.md": b"x"}
        assert [getattr(file, "data", None) for file in (await backend.read({"a.md": None})).values()] == [b"x"]
        with pytest.raises(Unavailable, match="read-only for this user; nothing was written"):
            await backend.commit("c", [Put("b.md", b"x")])

    with open_folder() as root:
        (root / "a.md").write_bytes(b"x")
        root.chmod(0o555)
        assert end(start(lambda: asyncio.run(use(root)), uid=NOBODY)) == 0
