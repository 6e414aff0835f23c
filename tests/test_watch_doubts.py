"""When what the system tells of changes is not all, or nothing: the watcher knows it, and a scan sees the rest."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from children import end, start
from command import COMMAND, environment
from counting import CountingBackend
from folders import memory, on_disk
from watching import threads, watched

from mdmemory import Config
from mdmemory.backends.local import LocalBackend
from mdmemory.backends.mounts import is_own_disk
from mdmemory.errors import Unavailable
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.permissions import allow_all, read_only
from mdmemory.folder.watch import Watcher

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every look is a scan")
MAX_QUEUED = Path("/proc/sys/fs/inotify/max_queued_events")


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[tuple[MemoryFolder, CountingBackend]]:
    """A watched folder at `tmp_path / "memory"`, and what counts its calls."""
    folder, backend = await watched(tmp_path / "memory")
    yield folder, backend
    await folder.close()


Pair = tuple[MemoryFolder, CountingBackend]


async def test_hidden_folders_and_other_files_are_nobodys_concern(pair: Pair, tmp_path: Path) -> None:
    """N7: what changes in `.git` or in a picture is neither scanned nor read; the index, when people edit it, is."""
    folder, backend = pair
    (tmp_path / "memory/.git/objects").mkdir(parents=True)
    (tmp_path / "memory/.git/objects/x.md").write_bytes(b"x")
    (tmp_path / "memory/picture.png").write_bytes(b"x")
    assert await folder.refresh() == frozenset() and backend.calls == []
    (tmp_path / "memory/MEMORY.md").write_text("# Mine\n")
    assert await folder.refresh() == frozenset() and backend.calls == ["read"]
    assert await folder.index_file() == "# Mine\n"
    (tmp_path / "memory/MEMORY.md").unlink()
    await folder.refresh()
    assert await folder.index_file() is None


async def test_links_are_left_to_scans(pair: Pair, tmp_path: Path) -> None:
    """N3: a link that comes is listed with its reason; a file with a second name elsewhere, through which it changes, is seen."""
    folder, _ = pair
    (tmp_path / "memory/link.md").symlink_to(tmp_path / "memory/a.md")
    await folder.refresh()
    assert "link" in folder.skipped["link.md"]
    os.unlink(tmp_path / "memory/link.md")
    await folder.refresh()
    assert folder.skipped == {}
    (tmp_path / "second.md").write_bytes(memory("Second"))
    os.link(tmp_path / "second.md", tmp_path / "memory/c.md")
    assert await folder.refresh() == {"c.md"} and "hard link" in folder.skipped["c.md"]
    (tmp_path / "second.md").write_bytes(memory("Changed"))  # no event tells of it
    assert await folder.refresh() == {"c.md"}


def test_everything_is_looked_at_from_time_to_time(tmp_path: Path) -> None:
    """N3: what no event tells of, such as a second name that a file was given elsewhere, waits no longer than the time of trust."""
    (tmp_path / ".mdmemory").mkdir()
    watcher = Watcher(tmp_path, trust_s=0.3)
    assert watcher.changed() is watcher.changed() is None
    assert watcher.changed() == frozenset()
    time.sleep(0.3)
    assert watcher.changed() is None and watcher.changed() == frozenset()
    watcher.close()


async def test_a_folder_that_vanishes_is_not_emptied(pair: Pair, tmp_path: Path) -> None:
    """D1: a folder that is gone, or whose parent is, can't be looked at; nothing is forgotten, and what came back is seen."""
    folder, _ = pair
    for place in (tmp_path / "memory", tmp_path):
        os.rename(place, tmp_path.parent / "away")
        for _ in range(2):
            with pytest.raises(Unavailable):
                await folder.refresh()
        assert set(folder.files) == {"a.md", "sub/b.md"}
        moved = tmp_path.parent / "away" / ("memory" if place == tmp_path else "")
        (moved / "a.md").write_bytes(memory(f"Changed in {place.name}"))
        os.rename(tmp_path.parent / "away", place)
        assert await folder.refresh() == {"a.md"}


async def test_a_look_that_was_cut_off_is_made_up_for(pair: Pair, tmp_path: Path) -> None:
    """What the system told of to a look that did not end is found by the next one."""
    folder, _ = pair
    (tmp_path / "memory/a.md").write_bytes(memory("A2"))
    task = asyncio.create_task(folder.refresh())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert await folder.refresh() == {"a.md"}


async def test_a_dead_watcher_is_noticed(pair: Pair, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """W1: when the watcher's thread has died, one line says so, a scan finds what it missed, and a new one watches."""
    folder, backend = pair
    (thread,) = threads()
    thread.stop()  # type: ignore[attr-defined]  # watchdog's threads have it
    thread.join()
    (tmp_path / "memory/a.md").write_bytes(memory("A2"))
    with caplog.at_level(logging.WARNING, "mdmemory"):
        assert await folder.refresh() == {"a.md"} and backend.calls == ["scan"]
    assert [record.message for record in caplog.records] == ["the folder's watcher is begun anew after a scan: its thread has died"]
    backend.calls.clear()
    assert await folder.refresh() == frozenset() and backend.calls == [] and len(threads()) == 1


def test_lost_events_are_noticed(tmp_path: Path) -> None:
    """W1: when more happens than the system's queue holds, a line says so, and a scan finds what was lost."""
    ready, log, seen = tmp_path / "ready", tmp_path / "log", tmp_path / "seen"

    def work() -> None:
        logging.getLogger().addHandler(logging.FileHandler(log))

        async def look() -> None:
            folder, backend = await watched(tmp_path / "memory")
            ready.touch()
            _wait_for(lambda: log.exists() and "overflowed" in log.read_text())  # says watchdog
            seen.write_text(json.dumps([sorted(await folder.refresh()), backend.calls]))
            await folder.close()

        asyncio.run(look())

    child = start(work)
    _wait_for(ready.exists)
    os.kill(child, signal.SIGSTOP)  # so that nobody takes from the queue
    os.waitpid(child, os.WUNTRACED)
    try:
        for _ in range(int(MAX_QUEUED.read_text())):
            for path in ("a.md", "sub/b.md"):  # in turns, as the same event twice in a row is one
                os.utime(tmp_path / "memory" / path)
        (tmp_path / "memory/lost.md").write_bytes(memory("Lost"))
    finally:
        os.kill(child, signal.SIGCONT)
    assert end(child) == 0
    assert json.loads(seen.read_text()) == [["lost.md"], ["scan"]]
    assert "more changes than the system remembers" in log.read_text()


def _wait_for(happened: Callable[[], object]) -> None:
    """Wait for something that another process does, at most 20 s."""
    deadline = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


async def test_no_thread_when_nobody_asks(tmp_path: Path) -> None:
    """The thread begins with the second look and ends when the folder is closed, or is forgotten unclosed."""
    before = len(threads())
    folder = on_disk(tmp_path, {"a.md": memory("A"), ".mdmemory/.gitignore": "*\n"})
    counts = []
    for _ in range(3):
        counts.append(len(threads()) - before)
        await folder.refresh()
    assert counts == [0, 0, 1]
    await folder.close()
    assert len(threads()) == before
    folder = on_disk(tmp_path)
    for _ in range(2):
        await folder.refresh()
    del folder
    _wait_for(lambda: len(threads()) == before)  # a worker of asyncio may hold it a moment longer


@pytest.mark.parametrize("case", ["watch=False", "read_only", "no history", "no backend's root"])
async def test_when_nothing_is_watched(tmp_path: Path, case: str) -> None:
    """The switch, a policy that allows no writing, a folder nobody wrote to and a backend that names no root: each look scans."""
    on_disk(tmp_path, {"a.md": memory("A")} | ({} if case == "no history" else {".mdmemory/.gitignore": "*\n"}))
    backend = CountingBackend(LocalBackend(tmp_path))
    if case == "no backend's root":
        backend.watchable_root = None
    before = len(threads())
    folder = MemoryFolder(backend, Config(watch=case != "watch=False"), read_only if case == "read_only" else allow_all)
    for _ in range(4):
        await folder.refresh()
    assert backend.calls == ["scan"] * 4 and len(threads()) == before
    await folder.close()


LOCAL = "/dev/vda / ext4 rw 0 0\ntmpfs /media/me/my\\040notes tmpfs rw 0 0\n"


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "virtiofs", "vfat", "exfat", "unheard-of"])
def test_network_mounts_are_not_watched(tmp_path: Path, kind: str) -> None:
    """W4: a folder on a network's file system, or a stick's whose folders may keep their times, is looked at by scans alone."""
    mounts, root = tmp_path / "mounts", Path("/media/me/my notes")
    mounts.write_text(LOCAL)
    assert is_own_disk(root, mounts) and is_own_disk(root / "memory", mounts)
    for place in ("/media/me/my\\040notes", "/media/me/my\\040notes/memory/shared"):
        mounts.write_text(f"{LOCAL}server {place} {kind} rw 0 0\n")
        assert not is_own_disk(root / "memory", mounts)
        mounts.write_text(f"server {place} {kind} rw 0 0\n{LOCAL}")
        assert is_own_disk(root / "memory", mounts) is (place == "/media/me/my\\040notes")  # what is mounted last covers it
    mounts.write_text(f"{LOCAL}server /media/me/my {kind} rw 0 0\n")
    assert is_own_disk(root, mounts)
    assert not is_own_disk(root, tmp_path / "none")


async def test_the_command_shows_changes_as_they_happen(tmp_path: Path) -> None:
    """`mdmemory watch` prints a line a change, as text or JSON, and Ctrl-C ends it well."""
    for options in ([], ["--json"]):
        root = tmp_path / f"memory{len(options)}"
        on_disk(root, {"a.md": memory("Alpha")})
        command = [*COMMAND, "watch", "-f", str(root), *options]
        pipe = asyncio.subprocess.PIPE
        child = await asyncio.create_subprocess_exec(*command, env=environment(), stdout=pipe, stderr=pipe, cwd=tmp_path)
        assert child.stdout and child.stderr
        assert b"Ctrl-C" in await child.stderr.readline()
        lines = []
        for change in (b"---\nname: Beta\n---\n", b"---\nname: Gamma\n---\n", None):
            (root / "b.md").unlink() if change is None else (root / "b.md").write_bytes(change)
            lines.append((await asyncio.wait_for(child.stdout.readline(), 20)).decode())
        child.send_signal(signal.SIGINT)
        rest, errors = await child.communicate()
        assert (child.returncode, rest, errors) == (0, b"", b"")
        told = [tuple(json.loads(line).values()) if options else tuple(line.split()) for line in lines]
        assert told == [("created", "b.md", "Beta"), ("changed", "b.md", "Gamma"), ("deleted", "b.md", "Gamma")]
