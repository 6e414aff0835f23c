"""Kill -9 between any two steps of a commit."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from children import end, start
from test_conformance import WeakerLocalBackend

from mdmemory.backends.local import LocalBackend
from mdmemory.backends.protocol import ABSENT, LOG, Append, Op, Put, done_mark, etag_of

pytestmark = pytest.mark.slow  # many processes, or the same again and again

OBJECT = ".mdmemory/objects/abc"
OLD, NEW = b"old\n" * 1000, b"new\n" * 1000
ID = "c1"
INTENT = b'{"intent":"c1"}\n'
DONE = f"{{{done_mark(ID)}}}\n".encode()
LOOKS = {
    "fspath",
    "_path_normpath",
    "getpid",
    "urandom",
    "stat",
    "lstat",
    "fstat",
    "listdir",
    "lseek",
    "read",
}  # a kill between them is no new case


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A temporary folder, in memory where possible: a kill, unlike a power cut, needs no disk, and there are hundreds."""
    if not os.access("/dev/shm", os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        yield Path(name)


def operations(before: str) -> list[Op]:
    """One commit as the folder makes them: object, intent, file, index, done."""
    return [
        Put(OBJECT, NEW),
        Append(LOG, INTENT, '"intent":"c1"'),
        Put("notes/a.md", NEW, before),
        Put("MEMORY.md", NEW, before),
        Append(LOG, DONE, done_mark(ID)),
    ]


def die_before(call: int) -> None:
    """Kill this process just before it calls the system for the n-th time from now."""
    left = call

    def count(_frame: FrameType, event: str, function: Any) -> None:
        nonlocal left
        if event == "c_call" and function.__module__ in ("posix", "fcntl") and function.__name__ not in LOOKS:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(count)


def content(root: Path, path: str) -> bytes:
    """The bytes of a file, none when it is not there."""
    file = root / path
    return file.read_bytes() if file.exists() else b""


def check_halfway(root: Path, before: bytes) -> None:
    """Every file is old or new, and none is ahead of what must come before it."""
    obj, note, index, log = (content(root, path) for path in (OBJECT, "notes/a.md", "MEMORY.md", LOG))
    assert obj in (b"", NEW) and note in (before, NEW) and index in (before, NEW)
    for line in log.splitlines(keepends=True):
        assert json.loads(line)
    steps = [obj == NEW, INTENT in log, note == NEW, index == NEW, DONE in log]
    assert steps == sorted(steps, reverse=True)


def check_healed(kind: type[LocalBackend], root: Path, ops: list[Op]) -> None:
    """The next process clears the leftovers, and a retry of the commit finishes it."""

    async def retry() -> None:
        backend = kind(root, lock_timeout_s=5)
        await backend.scan()
        assert not list(root.glob(".mdmemory/tmp/*"))
        await backend.commit(ID, ops)

    asyncio.run(retry())
    assert [content(root, path) for path in (OBJECT, "notes/a.md", "MEMORY.md")] == [NEW] * 3
    assert content(root, LOG).count(INTENT) == content(root, LOG).count(DONE) == 1
    assert (root / ".mdmemory/.gitignore").read_bytes() == b"*\n" and not list(root.glob(".mdmemory/tmp/*"))
    assert not (root / ".mdmemory/lock.d").exists()


@pytest.mark.parametrize("kind", [LocalBackend, WeakerLocalBackend])
@pytest.mark.parametrize("first", [True, False], ids=["first commit", "later commit"])
def test_killed_before_every_system_call(kind: type[LocalBackend], first: bool, folder: Path) -> None:
    """E6: whichever system call is the last, each file is old or new, and the next process goes on as if nothing had been."""
    before = b"" if first else OLD
    ops = operations(ABSENT if first else etag_of(OLD))
    call = 0
    code = -signal.SIGKILL
    while code == -signal.SIGKILL:
        call += 1
        root = folder / str(call)
        if not first:
            asyncio.run(kind(root).commit("c0", [Put("notes/a.md", OLD), Put("MEMORY.md", OLD), Append(LOG, b'{"c":0}\n', "0")]))

        def work(call: int = call, root: Path = root) -> None:
            backend = kind(root)
            die_before(call)
            backend._commit(ID, ops)
            sys.setprofile(None)

        code = end(start(work))
        check_halfway(root, before)
        check_healed(kind, root, ops)
    assert code == 0 and call > 40


def test_names_are_durable_before_the_log_grows(tmp_path: Path) -> None:
    """E6: new bytes are fsynced before their rename, and the rename before the log speaks of it; a power cut can't reorder them."""
    backend = LocalBackend(tmp_path)
    backend._commit("c0", [Put(".mdmemory/objects/x", OLD), Append(LOG, b"{}\n", "")])
    calls: list[str] = []

    def note(_frame: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and function in (os.write, os.fsync, os.replace):
            calls.append(function.__name__)

    sys.setprofile(note)
    try:
        backend._commit(ID, [Put(OBJECT, NEW), Append(LOG, INTENT, ""), Put("a.md", NEW), Append(LOG, DONE, done_mark(ID))])
    finally:
        sys.setprofile(None)
    staged, applied = ["write", "fsync"] * 2, ["replace", "fsync", "write"]
    assert calls == [*staged, *applied, "fsync", *applied]
