"""The history within its limits."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from folders import in_memory, log_of, memory, on_disk, visible
from local_shell import KINDS, LocalShell

from mdmemory import Config
from mdmemory.backends.local import LocalBackend
from mdmemory.backends.protocol import LOG, etag_of
from mdmemory.backends.shell import ShellBackend
from mdmemory.care import history
from mdmemory.errors import ConfigError, NotThere
from mdmemory.files.changes import Create, Replace
from mdmemory.files.history import FileChange, Intent, done_line, object_path
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.retention import RETAINED, shorten


def version(number: int, size: int = 20) -> bytes:
    """A memory file's bytes."""
    return memory("A", "about a", body=f"Version {number}.\n{'x' * size}\n")


async def with_versions(folder: MemoryFolder, count: int, size: int = 20) -> MemoryFolder:
    """A folder with a file that was saved so many times."""
    await folder.refresh()
    await folder.apply([Create("a.md", version(0, size))], "agent:s0", "Write")
    for number in range(1, count):
        before = version(number - 1, size)
        await folder.apply(
            [Replace("a.md", version(number, size), etag_of(before), before)], f"agent:s{number}", "Edit " + "x" * 1_000
        )
    return folder


def make_old(root: Path, entries: int, days: int) -> None:
    """Put the first entries of a log some days back."""
    lines = (root / LOG).read_text().splitlines(keepends=True)
    then = f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%d}"
    today = f'"at":"{datetime.now(UTC):%Y-%m-%d}'
    changed = [line.replace(today, f'"at":"{then}') if n < 2 * entries else line for n, line in enumerate(lines)]
    (root / LOG).write_text("".join(changed))


async def test_what_is_too_old_is_dropped_at_an_open(tmp_path: Path) -> None:
    """M3: events older than 90 days and contents that only they name go at an open, once a day; the rest is whole."""
    await with_versions(on_disk(tmp_path), 6)
    make_old(tmp_path, 3, 91)
    folder = on_disk(tmp_path)
    await folder.recover()
    await folder.close()
    assert [event.session for event in await history.events(on_disk(tmp_path))] == ["s5", "s4", "s3"]
    assert {path.name for path in tmp_path.glob(".mdmemory/objects/*")} == {etag_of(version(n)) for n in (2, 3, 4, 5)}
    assert datetime.now(UTC) - datetime.fromisoformat(json.loads((tmp_path / RETAINED).read_bytes())["at"]) < timedelta(minutes=1)
    folder = on_disk(tmp_path)
    await folder.refresh()
    lines = {line.text: line.event for line in await history.blame(folder, "a.md")}
    assert lines["name: A"] is None and lines["Version 5."] is not None
    with pytest.raises(NotThere):
        await history.find(folder, log_of(tmp_path)[0]["id"].replace(log_of(tmp_path)[0]["id"][:8], "00000000"))
    make_old(tmp_path, 1, 95)
    await folder.recover()
    await folder.close()
    assert len(await history.events(on_disk(tmp_path))) == 3  # not twice a day


async def test_what_is_too_much_is_dropped(tmp_path: Path) -> None:
    """M3: above the size, the oldest go until the rest fits; on every backend, whether it can list its objects or not."""
    for folder in (on_disk(tmp_path), in_memory()):
        await with_versions(folder, 160, 4_000)
        assert await shorten(folder.backend, Config(history_bytes=500_000))
        assert not await shorten(folder.backend, Config(history_bytes=500_000))
        events = await history.events(folder)
        assert 70 < len(events) < 110 and events[0].session == "s159"
        names = [object_path(etag_of(version(n, 4_000))) for n in (0, 40, 159)]
        found = await folder.backend.read(dict.fromkeys(names))
        assert [getattr(found[name], "kind", "there") for name in names] == ["absent", "absent", "there"]
        await history.restore(folder, "a.md", events[-2])
        assert await folder.read("a.md") != version(159, 4_000)


@pytest.mark.parametrize("kind", ["disk", *KINDS])
async def test_a_log_larger_than_any_file(kind: str, tmp_path: Path) -> None:
    """M3: a log of 8 MB is shortened in one commit, which is heeded by those that had read it before."""
    disk = LocalBackend(tmp_path / "memory")
    backend = disk if kind == "disk" else ShellBackend(LocalShell(kind, tmp_path), str(tmp_path / "memory"))
    other = await with_versions(MemoryFolder(disk), 1)
    then, lines = datetime.now(UTC) - timedelta(days=100), []
    for number in range(160):
        change = FileChange(f"n{number}.md", None, f"{number:064x}")
        lines.append(Intent(f"{number:032x}", then, "agent:x", "x" * 50_000, (change,)).line() + done_line(f"{number:032x}"))
    young = (tmp_path / "memory" / LOG).read_bytes()
    (tmp_path / "memory" / LOG).write_bytes(b"".join(lines) + young)
    while await shorten(backend, Config()):
        pass
    assert (tmp_path / "memory" / LOG).read_bytes().startswith(young)
    await other.apply([Replace("a.md", version(1), etag_of(version(0)), version(0))], "agent:s1", "Edit")
    assert [event.session for event in await history.events(other)] == ["s1", "s0"]


async def test_small_and_young_histories_are_not_looked_through(tmp_path: Path) -> None:
    """M3: an open of a folder with a short log of the last days writes nothing."""
    await with_versions(on_disk(tmp_path), 3)
    folder = on_disk(tmp_path)
    await folder.recover()
    await folder.close()
    assert not (tmp_path / RETAINED).exists()


async def test_two_processes_shorten_while_others_save(tmp_path: Path) -> None:
    """E6: the log that two shorten while a third writes loses no event that is young, and no content that one of those names."""
    await with_versions(on_disk(tmp_path), 40)
    make_old(tmp_path, 20, 100)

    async def drop() -> None:
        backend = LocalBackend(tmp_path)
        for _ in range(10):
            try:
                await shorten(backend, Config())
            except Exception as error:  # a conflict with the third is what may happen
                assert type(error).__name__ == "Conflict"

    async def save() -> None:
        folder = on_disk(tmp_path)
        await folder.refresh()
        for number in range(20):
            await folder.apply([Create(f"n{number}.md", memory(f"N{number}"))], "agent:other", "Write")

    await asyncio.gather(drop(), save(), drop())
    await shorten(LocalBackend(tmp_path), Config())
    events = await history.events(on_disk(tmp_path))
    assert len(events) == 40 and len(visible(tmp_path)) == 22
    named = {etag for event in events for file in event.files for etag in (file.before, file.after) if etag}
    assert {path.name for path in tmp_path.glob(".mdmemory/objects/*")} == named


def test_limits_are_more_than_nothing() -> None:
    """M3: a limit is a positive number, or None for ever."""
    assert Config(history_days=None, history_bytes=None).history_days is None
    with pytest.raises(ConfigError, match="history_days"):
        Config(history_days=0)
