"""Commits that were cut short: finished where the files are as they were, left alone where a person was there."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from children import NOBODY, end, open_folder, start
from folders import everything, index_of, log_of, memory, objects_of, on_disk, visible

from mdmemory.backends.local import LocalBackend
from mdmemory.backends.protocol import LOG, Append, etag_of
from mdmemory.files.changes import Change, Create, Delete, Rename, Replace
from mdmemory.files.history import FileChange, Intent, object_path
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.permissions import read_only

OLD, NEW, GONE, MADE = (memory(name, f"about {name.lower()}") for name in ("Old", "New", "Gone", "Made"))
INDEX = "# Mine\n\n- [Old](old.md) — about old\n- [Gone](gone.md) — about gone\n* [mine](dir/a.md) my words\n\nA note.\n".encode()
SEED = {
    "MEMORY.md": INDEX,
    "old.md": OLD,
    "gone.md": GONE,
    "dir/a.md": memory("A"),
    "dir/b.md": memory("B"),
}
EDITED = INDEX.replace(b"A note.", b"Another note.")
CHANGES: dict[str, Sequence[Change]] = {
    "files": (Create("new/made.md", MADE), Replace("old.md", NEW, etag_of(OLD)), Delete("gone.md")),
    "moves": (
        Rename("dir", "moved"),
        Replace("MEMORY.md", EDITED, etag_of(INDEX), INDEX),
        Create("made.md", MADE),
    ),
}
LOOKS = {"fspath", "_path_normpath", "getpid", "urandom", "stat", "lstat", "fstat", "listdir", "lseek", "read", "scandir", "close"}


def armed(call: int) -> Callable[[], None]:
    """What, once called, kills this process just before any of its threads calls the system for the n-th time."""
    left: int | None = None

    def count(_frame: FrameType, event: str, function: Any) -> None:
        nonlocal left
        if left is not None and event == "c_call" and function.__module__ in ("posix", "fcntl") and function.__name__ not in LOOKS:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    def arm() -> None:
        nonlocal left
        left = call

    threading.setprofile(count)  # before there is any thread
    return arm


@pytest.fixture
def places() -> Iterator[Path]:
    """Where many folders are made: in memory where possible, as a kill, unlike a power cut, needs no disk."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as name:
        yield Path(name)


async def applied(root: Path, changes: Sequence[Change], before: Callable[[], None] = lambda: None) -> MemoryFolder:
    """A folder as another process has it, after one commit."""
    folder = on_disk(root)
    await folder.recover()
    await folder.refresh()
    before()
    await folder.apply(changes, "agent:a", "all at once")
    return folder


async def healed(root: Path) -> MemoryFolder:
    """The folder as the next process opens it."""
    folder = on_disk(root)
    await folder.recover()
    await folder.refresh()
    return folder


def seeded(root: Path) -> Path:
    """A folder made by people, with an index that is in order."""
    on_disk(root, SEED)
    asyncio.run(applied(root, [Create("first.md", memory("First"))]))
    return root


def shown(root: Path) -> dict[str, list[bytes]]:
    """What a person sees, of the index whatever its order."""
    return {path: sorted(data.splitlines()) if path == "MEMORY.md" else [data] for path, data in visible(root).items()}


def cut_last_line(root: Path) -> None:
    """Put the log into the state that a kill just before `done` leaves."""
    lines = (root / LOG).read_bytes().splitlines(keepends=True)
    assert b'"done"' in lines[-1]
    (root / LOG).write_bytes(b"".join(lines[:-1]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", CHANGES)
def test_killed_before_every_system_call_of_a_save(kind: str, places: Path) -> None:
    """E6: whichever system call is the last, the next open finds all of the commit or nothing, and an index that agrees."""
    changes = CHANGES[kind]
    seed = seeded(places / "seed")
    shutil.copytree(seed, places / "whole")
    asyncio.run(applied(places / "whole", changes))
    nothing, whole = shown(seed), shown(places / "whole")
    assert nothing != whole
    call, code, halfway = 0, -signal.SIGKILL, 0
    while code == -signal.SIGKILL:
        call += 1 if call < 40 else 3
        root = shutil.copytree(seed, places / str(call))
        code = end(start(lambda root=root, call=call: asyncio.run(applied(root, changes, armed(call)))))  # type: ignore[misc]  # each its own
        halfway += shown(root) not in (nothing, whole)
        folder = asyncio.run(healed(root))
        log = log_of(root)
        assert shown(root) == (whole if len(log[-2]["files"]) > 1 else nothing), call
        assert set(folder.files) == visible(root).keys() - {"MEMORY.md"}
        assert [entry["done"] for entry in log if "done" in entry] == [entry["id"] for entry in log if "id" in entry]
        assert not list(root.glob(".mdmemory/tmp/*"))
        assert (root / ".mdmemory/tombstones").exists() == ("gone.md" not in visible(root))
    assert code == 0 and call > 100 and halfway > 0


async def test_a_cut_short_commit_spares_what_a_person_changed(tmp_path: Path) -> None:
    """What a person changed between the kill and the next open stays; the rest of the commit is finished."""
    await applied(
        await asyncio.to_thread(seeded, tmp_path),
        [Replace("old.md", NEW, etag_of(OLD)), Delete("gone.md"), Create("made.md", MADE)],
    )
    cut_last_line(tmp_path)
    mine = memory("Mine", "by a person")
    (tmp_path / "old.md").write_bytes(mine)
    (tmp_path / "gone.md").write_bytes(GONE)
    (tmp_path / "made.md").unlink()
    found = await healed(tmp_path)
    assert visible(tmp_path)["old.md"] == mine and visible(tmp_path)["made.md"] == MADE and "gone.md" not in found.files
    assert log_of(tmp_path)[-1] == {"done": log_of(tmp_path)[-2]["id"]}
    line = "- [Mine](old.md) — by a person"
    assert line in (await found.prompt_index()).text.splitlines() and line not in index_of(tmp_path).splitlines()
    await found.apply([Create("more.md", memory("More"))], "agent:a", "Write")
    assert line in index_of(tmp_path).splitlines() and "(old.md) — about" not in index_of(tmp_path)


async def test_old_bytes_that_a_person_put_back_stay(tmp_path: Path) -> None:
    """After a finished commit, a person who puts the old bytes back has the last word, however often the folder is opened."""
    folder = await applied(tmp_path, [Create("a.md", OLD)])
    await folder.apply([Replace("a.md", NEW, etag_of(OLD))], "agent:a", "Edit")
    (tmp_path / "a.md").write_bytes(OLD)
    for _ in range(3):
        await healed(tmp_path)
    assert visible(tmp_path)["a.md"] == OLD


async def test_a_commit_under_way_elsewhere_is_waited_for(tmp_path: Path) -> None:
    """Whoever comes to another process's commit between intent and done finishes it first."""
    await applied(tmp_path, [Create("a.md", OLD)])
    backend = LocalBackend(tmp_path)
    intent = Intent("c9", datetime.now(UTC), "agent:b", "Edit", (FileChange("a.md", etag_of(OLD), etag_of(NEW)),))
    folder = await healed(tmp_path)
    (tmp_path / object_path(etag_of(NEW))).write_bytes(NEW)
    await backend.commit("other", [Append(LOG, intent.line(), '"id":"c9"')])
    await folder.recover()
    assert visible(tmp_path)["a.md"] == NEW and "- [New](a.md) — about new" in index_of(tmp_path).splitlines()
    assert "[Old]" not in index_of(tmp_path)
    authors = [entry.get("author") or entry["done"] for entry in log_of(tmp_path)]
    assert authors[2:4] == ["agent:b", "c9"] and "outside" not in authors


@pytest.mark.parametrize(
    "line",
    [
        b'{"id":"x","at":"2026-01-01T00:00:00.000000Z","author":"a","reason":"r","files":[{"path":"../x","before":null,"after":"%s"}]}\n',
        b'{"id":"x","at":"2026-01-01T00:00:00.000000Z","author":"a","reason":"r","files":[{"path":"%s/x","before":null,"after":null}]}\n',
        b'{"id":"x","at":"now","author":"a","reason":"r","files":[]} %s\n',
        b'{"id":"torn %s',
        b"\xff\xfe%s\n",
    ],
)
async def test_a_log_that_makes_no_sense(line: bytes, tmp_path: Path) -> None:
    """Whatever stands in the log, the folder opens, nothing outside of it is touched, and a save goes through."""
    root = tmp_path / "memory"
    await applied(root, [Create("a.md", OLD)])
    with (root / LOG).open("ab") as log:
        log.write(line % etag_of(OLD).encode())
    folder = await healed(root)
    await folder.apply([Create("b.md", MADE)], "agent:a", "Write")
    assert set(visible(root)) == {"a.md", "b.md", "MEMORY.md"} and [path.name for path in tmp_path.iterdir()] == ["memory"]


async def test_a_very_long_line_of_intent(places: Path) -> None:
    """A commit of so many files that its line is longer than the log's tail is finished as well."""
    names = [f"{'long-' * 30}{n}.md" for n in range(400)]
    await applied(places, [Create(name, memory(name)) for name in names])
    cut_last_line(places)
    assert max(map(len, (places / LOG).read_bytes().splitlines())) > 100_000
    (places / names[7]).unlink()
    folder = await healed(places)
    assert names[7] in folder.files and len(folder.files) == 400


async def test_much_news_since_the_last_look(places: Path) -> None:
    """A process that slept while the log grew by hundreds of commits learns of all of them, and takes none for cut short."""
    sleeper = await applied(places, [Create("a.md", OLD)])
    busy = await healed(places)
    for n in range(260):
        await busy.apply([Create(f"n{n}.md", memory(f"N{n}", "x" * 200))], "agent:b", "Write")
    await busy.apply([Delete("n0.md")], "agent:b", "Delete")
    await busy.apply([Replace("a.md", NEW, etag_of(OLD))], "agent:b", "Edit")
    (places / "a.md").write_bytes(OLD)
    await sleeper.apply([Create("b.md", MADE)], "agent:a", "Write")
    assert visible(places)["a.md"] == OLD and len(sleeper.files) == 261 and "n0.md" not in sleeper.files
    assert await sleeper.refresh() == frozenset()


def test_a_folder_that_can_only_be_read(caplog: pytest.LogCaptureFixture) -> None:
    """A read-only folder with a cut-short commit opens with a warning, shows what is there and is not changed."""

    async def look(root: Path) -> None:
        caplog.set_level(logging.WARNING)
        folder = await healed(root)
        assert "a.md" in folder.files and "read-only" in caplog.text

    with open_folder() as root:
        asyncio.run(applied(root, [Create("a.md", OLD)]))
        cut_last_line(root)
        for path in (root, *root.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        before = everything(root)
        assert end(start(lambda: asyncio.run(look(root)), uid=NOBODY)) == 0
        assert everything(root) == before


async def test_a_read_only_policy_finishes_nothing(tmp_path: Path) -> None:
    """Under the read-only policy not even a cut-short commit is finished."""
    await applied(tmp_path, [Create("a.md", OLD)])
    cut_last_line(tmp_path)
    before = everything(tmp_path)
    await on_disk(tmp_path, policy=read_only).recover()
    assert everything(tmp_path) == before
    await on_disk(tmp_path).recover()
    assert json.loads((tmp_path / LOG).read_bytes().splitlines()[-1]).keys() == {"done"} and OLD in objects_of(tmp_path)


async def test_a_deletion_that_was_cut_short_is_still_forgotten(tmp_path: Path) -> None:
    """D3: a deletion killed before its tombstone is finished with it, and one that was not gets no second one."""
    folder = await applied(tmp_path, [Create("a.md", memory("Secret name", source="s1#4"))])
    await folder.apply([Delete("a.md")], "agent:a", "Delete")
    tombstones = tmp_path / ".mdmemory/tombstones"
    whole = tombstones.read_bytes()
    assert b'"source":["s1#4"]' in whole and b"Secret" not in whole
    for there in (True, False):
        tombstones.write_bytes(whole) if there else tombstones.unlink()
        cut_last_line(tmp_path)
        await healed(tmp_path)
        assert tombstones.read_bytes() == whole
