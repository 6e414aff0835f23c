"""Several writers over shells, some of them dead: kill -9 at every step of a commit, and who may take whose lock."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from local_shell import KINDS, LocalShell

from mdmemory.backends.protocol import ABSENT, LOG, Append, File, Op, Put, done_mark, etag_of
from mdmemory.backends.shell import ShellBackend
from mdmemory.errors import Conflict, Unavailable

OBJECT = ".mdmemory/objects/abc"
OLD, NEW = b"old\n" * 1000, b"new\n" * 1000
ID = "c1"
INTENT = b'{"intent":"c1"}\n'
DONE = f"{{{done_mark(ID)}}}\n".encode()
LOCK = ".mdmemory/shell/lock"
# What the helper starts, in the order of its own PATH; each is a step at which it can be killed.
TOOLS = "cat chmod cp dd grep head mkdir mv readlink rm rmdir sha256sum stat sync tail tar touch tr".split()
SHIM = """#!/bin/sh
n=1
until /usr/bin/mkdir {count}/$n 2>/dev/null; do n=$((n + 1)); done
read -r when <{count}/when
if [ $n -ge $when ]; then {deed}; fi
exec /usr/bin/{tool} "$@"
"""


def operations(before: str) -> list[Op]:
    """One commit as the folder makes them: object, intent, file, index, done."""
    return [
        Put(OBJECT, NEW, ABSENT, required=False),
        Append(LOG, INTENT, '"intent":"c1"'),
        Put("notes/a.md", NEW, before),
        Put("MEMORY.md", NEW, before, required=False),
        Append(LOG, DONE, done_mark(ID)),
    ]


def make_shims(folder: Path, deed: str) -> Path:
    """Programs that do the deed when the helper starts its n-th one, set by `count_to`."""
    folder.mkdir()
    for tool in TOOLS:
        text = SHIM.format(count=folder / "count", deed=deed, tool=tool)
        (folder / tool).write_text(text)
        (folder / tool).chmod(0o755)
    return folder


def count_to(shims: Path, step: int) -> None:
    """Begin to count anew."""
    shutil.rmtree(shims / "count", ignore_errors=True)
    (shims / "count").mkdir()
    (shims / "count/when").write_text(f"{step}\n")


def content(root: Path, path: str) -> bytes:
    """The bytes of a file, none when it is not there."""
    return (root / path).read_bytes() if (root / path).exists() else b""


def assert_whole(root: Path, before: bytes) -> None:
    """Every file is the old or the new one, the log has whole lines only, and the order of the steps holds."""
    assert content(root, OBJECT) in (b"", NEW)
    assert content(root, "notes/a.md") in (before, NEW) and content(root, "MEMORY.md") in (before, NEW)
    log = content(root, LOG)
    assert log in (b"", INTENT, INTENT + DONE)
    if log:
        assert content(root, OBJECT) == NEW
    if content(root, "MEMORY.md") == NEW:
        assert content(root, "notes/a.md") == NEW and log
    if log == INTENT + DONE:
        assert content(root, "notes/a.md") == content(root, "MEMORY.md") == NEW


@pytest.mark.slow
@pytest.mark.skipif("dash" not in KINDS, reason="busybox starts its tools itself, where none can be put in between")
@pytest.mark.parametrize("before", [b"", OLD], ids=["create", "replace"])
async def test_kill_9_at_every_step(tmp_path: Path, before: bytes) -> None:
    """E6: the helper is killed, with all it started, before each program that it starts; the next commit finishes at once.

    So is the second try that a killed call gets.
    """
    shims = make_shims(tmp_path / "shims", "kill -KILL 0")
    steps = killed = 0
    while killed == steps:
        steps += 1
        root = tmp_path / f"memory-{steps}"
        for path in ("notes/a.md", "MEMORY.md") if before else ():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(before)
        count_to(shims, steps)
        ops = operations(etag_of(before) if before else ABSENT)
        try:
            await ShellBackend(LocalShell("dash", tmp_path, shims), str(root)).commit(ID, ops)
        except Unavailable:
            killed += 1
            assert_whole(root, before)
        began = time.monotonic()
        etags = await ShellBackend(LocalShell("dash", tmp_path), str(root)).commit(ID, ops)
        assert time.monotonic() - began < 5
        assert etags.items() >= dict.fromkeys(("notes/a.md", "MEMORY.md"), etag_of(NEW)).items()
        assert_whole(root, NEW)
        assert content(root, LOG) == INTENT + DONE
        assert not list((root / ".mdmemory/shell/work").iterdir()) and not (root / LOCK).exists()
    assert killed > 25


@pytest.mark.slow
@pytest.mark.skipif("dash" not in KINDS, reason="busybox starts its tools itself, where none can be put in between")
async def test_who_has_lost_the_lock_stops(tmp_path: Path) -> None:
    """A commit whose lock was taken from it, as it was asleep for long, goes no step further and says how far it came."""
    shims = make_shims(tmp_path / "shims", f"/usr/bin/rm -rf {LOCK}")
    root = tmp_path / "memory"
    said = set()
    for step in range(1, 60):
        count_to(shims, step)
        try:
            await ShellBackend(LocalShell("dash", tmp_path, shims), str(root)).commit(
                f"c{step}", [Put("a.md", b"%d" % step), Put("b.md", b"%d" % step)]
            )
        except Unavailable as error:
            said.add(str(error))
            assert content(root, "b.md") != b"%d" % step
    assert len(said) == 2 and all("took the lock" in text for text in said)


async def add_lines(kind: str, place: Path, writers: int, times: int) -> int:
    """Add lines to one file by several backends that know nothing of each other, and count those that arrived."""

    async def write(writer: int) -> None:
        backend = ShellBackend(LocalShell(kind, place), str(place / "memory"))
        for n in range(times):
            while True:
                file = (await backend.read({"lines.md": None}))["lines.md"]
                data, etag = (file.data, file.etag or "") if isinstance(file, File) else (b"", ABSENT)
                try:
                    await backend.commit(f"{writer} {n}", [Put("lines.md", data + b"%d %d\n" % (writer, n), etag)])
                    break
                except Conflict:
                    continue

    (place / "memory/lines.md").unlink(missing_ok=True)
    await asyncio.gather(*(write(writer) for writer in range(writers)))
    return len(set(content(place / "memory", "lines.md").splitlines()))


@pytest.mark.parametrize("kind", KINDS)
async def test_processes_take_turns(kind: str, tmp_path: Path) -> None:
    """E5: 4 writers that know nothing of each other make 10 edits each of one file, and 40 arrive."""
    assert await add_lines(kind, tmp_path, writers=4, times=10) == 40


def owner(pid: int, born: str = "", space: str = "") -> str:
    """The name of a lock's owner, as the helper writes it."""
    if not born:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        born = fields[19]
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    here = f"{boot}-{os.readlink('/proc/self/ns/pid').removeprefix('pid:')}"
    return f"{pid}.{born}.{space or here}.0123"


def hold(root: Path, name: str, age_s: float = 0) -> Path:
    """Leave a lock behind."""
    (root / LOCK).mkdir(parents=True)
    file = root / LOCK / name
    file.touch()
    os.utime(file, (time.time() - age_s,) * 2)
    return file


def dead_pid() -> int:
    """The number of a process that has just ended."""
    with subprocess.Popen(["true"]) as process:
        return process.pid


@pytest.mark.parametrize("kind", KINDS)
async def test_locks_of_the_dead(kind: str, tmp_path: Path) -> None:
    """A lock is taken at once from a process that is gone, or whose number another has; from elsewhere after 10 s of silence."""
    dead = {
        "gone": (owner(dead_pid(), born="5"), 0.0),
        "number given anew": (owner(os.getpid(), born="5"), 0.0),
        "another container, long silent": (owner(1, born="5", space="other-[1]"), 12.0),
        "no owner that we know": ("junk", 12.0),
    }
    for n, (name, age_s) in enumerate(dead.values()):
        root = tmp_path / f"memory-{n}"
        hold(root, name, age_s)
        began = time.monotonic()
        await ShellBackend(LocalShell(kind, tmp_path), str(root)).commit("c", [Put("a.md", b"x")])
        assert time.monotonic() - began < 3 and not (root / LOCK).exists()
    (tmp_path / "empty" / LOCK).mkdir(parents=True)
    await ShellBackend(LocalShell(kind, tmp_path), str(tmp_path / "empty")).commit("c", [Put("a.md", b"x")])


@pytest.mark.parametrize("kind", KINDS)
async def test_locks_of_the_living(kind: str, tmp_path: Path) -> None:
    """A lock is never taken from a process that lives, however old, nor from elsewhere while it is fresh; the wait has an end."""
    living = {"here": (owner(os.getpid()), 1000.0), "another container": (owner(1, born="5", space="other-[1]"), 2.0)}
    for n, (name, age_s) in enumerate(living.values()):
        root = tmp_path / f"memory-{n}"
        file = hold(root, name, age_s)
        backend = ShellBackend(LocalShell(kind, tmp_path), str(root), lock_timeout_s=1)
        with pytest.raises(Unavailable, match="held the memory's lock for 1 s; nothing was written"):
            await backend.commit("c", [Put("a.md", b"x")])
        assert file.exists() and not (root / "a.md").exists() and not list((root / ".mdmemory/shell/work").iterdir())


@pytest.mark.parametrize("kind", KINDS)
async def test_many_break_one_lock(kind: str, tmp_path: Path) -> None:
    """Of 6 writers that find a dead owner's lock at once, none takes it from another: every edit arrives."""
    for _ in range(3):
        hold(tmp_path / "memory", owner(dead_pid(), born="5"))
        assert await add_lines(kind, tmp_path, writers=6, times=1) == 6


@pytest.mark.parametrize("kind", KINDS)
async def test_leftovers_are_swept(kind: str, tmp_path: Path) -> None:
    """What dead commits left is removed by the next; what belongs to a living one, or one elsewhere, is not."""
    work = tmp_path / "memory/.mdmemory/shell/work"
    mine, gone, elsewhere = owner(os.getpid()), owner(dead_pid(), born="5"), owner(1, born="5", space="other-[1]")
    for name in (mine, gone, elsewhere):
        (work / name).mkdir(parents=True)
        (work / name / "ops").write_bytes(b"x")
    await ShellBackend(LocalShell(kind, tmp_path), str(tmp_path / "memory")).commit("c", [Put("a.md", b"x")])
    assert {path.name for path in work.iterdir()} == {mine, elsewhere}
