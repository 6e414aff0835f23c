"""Text at the end of files: many add at once and all of it stays, with a commit that reads nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from functools import partial
from pathlib import Path

import pytest
from children import end, start
from counting import CountingBackend
from folders import everything, log_of, memory, on_disk
from local_shell import KINDS, LocalShell

from mdmemory.backends.local import LocalBackend
from mdmemory.backends.memory import MemoryBackend
from mdmemory.backends.protocol import MAX_FILE_BYTES
from mdmemory.backends.shell import ShellBackend
from mdmemory.errors import InvalidArguments, InvalidMemoryFile, InvalidPath, MdmemoryError, NotThere
from mdmemory.files.changes import Append, Change, Create, Delete, Replace
from mdmemory.folder.memory_folder import MemoryFolder

BOARD = memory("Board", "what happens", body="The first line.")
PROCESSES, ENTRIES = 8, 500


@pytest.mark.slow
def test_eight_processes_write_on_one_blackboard(tmp_path: Path) -> None:
    """C5, E5: of 8 processes that each add 500 entries to one file, 4,000 of 4,000 are kept, whole and in each one's order."""
    on_disk(tmp_path, {"board.md": BOARD})

    async def add(process: int) -> None:
        folder = on_disk(tmp_path)
        for n in range(ENTRIES):
            await folder.apply([Append("board.md", f"- {process} {n:03}\n".encode())], f"agent:{process}", "entry")
        await folder.close()

    children = [start(lambda process=process: asyncio.run(add(process))) for process in range(PROCESSES)]
    assert [end(pid) for pid in children] == [0] * PROCESSES
    text = (tmp_path / "board.md").read_bytes()
    assert text.startswith(BOARD)
    entries = text.removeprefix(BOARD).decode().splitlines()
    for process in range(PROCESSES):
        own = [entry for entry in entries if entry.startswith(f"- {process} ")]
        assert own == [f"- {process} {n:03}" for n in range(ENTRIES)]
    assert len(entries) == PROCESSES * ENTRIES
    assert sum("added" in entry for entry in log_of(tmp_path)) == PROCESSES * ENTRIES


async def test_adding_costs_one_commit(tmp_path: Path) -> None:
    """C5: in a folder that was looked at, an entry is one round trip that reads nothing, however long the file is."""
    on_disk(tmp_path, {"board.md": BOARD + b"- entry\n" * 50_000})
    backend = CountingBackend(LocalBackend(tmp_path))
    folder = MemoryFolder(backend)
    await folder.refresh()
    backend.calls.clear()
    for n in range(3):
        await folder.apply([Append("board.md", f"- {n}".encode())], "agent:a", "entry")
    assert backend.calls == ["commit"] * 3
    assert (tmp_path / "board.md").read_bytes().endswith(b"- entry\n- 0\n- 1\n- 2\n")
    assert not (tmp_path / ".mdmemory/objects").exists()


async def test_what_processes_add_is_not_taken_for_a_persons_edit(tmp_path: Path) -> None:
    """C5: the history names who added; a person's edit in between is still a person's, and everything is found."""
    one, other = on_disk(tmp_path, {"board.md": BOARD}), on_disk(tmp_path)
    await one.refresh()
    for n in range(3):
        await other.apply([Append("board.md", f"- kiwi {n}\n".encode())], "agent:other", "entry")
    await one.apply([Append("board.md", b"- plum\n")], "agent:one", "entry")
    assert await one.refresh() == {"board.md"} and [match.path for match in await one.search("kiwi plum")] == ["board.md"]
    await one.apply([Create("a.md", memory("A"))], "agent:one", "Write")
    assert [entry["author"] for entry in log_of(tmp_path) if "id" in entry] == ["agent:other"] * 3 + ["agent:one"] * 2
    (tmp_path / "board.md").write_bytes((tmp_path / "board.md").read_bytes().replace(b"plum", b"prune"))
    await other.apply([Append("board.md", b"- pear\n")], "agent:other", "entry")
    await one.refresh()
    await one.apply([Create("b.md", memory("B"))], "agent:one", "Write")
    assert [entry["author"] for entry in log_of(tmp_path) if "id" in entry][5:] == ["agent:other", "outside", "agent:one"]


async def test_an_edit_and_additions_meet(tmp_path: Path) -> None:
    """E1, C5: who edits a line on what he read before others added keeps theirs and his."""
    one, other = on_disk(tmp_path, {"board.md": BOARD}), on_disk(tmp_path)
    base = await one.read("board.md")
    await one.refresh()
    await other.apply([Append("board.md", b"\n- theirs\n")], "agent:other", "entry")
    from mdmemory.backends.protocol import etag_of

    edited = base.replace(b"first", b"very first")
    await one.apply([Replace("board.md", edited, etag_of(base), base)], "agent:one", "Edit")
    assert (tmp_path / "board.md").read_bytes() == edited + b"\n- theirs\n"


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ([Append("none.md", b"x")], NotThere, r"no none\.md to add to.*create it first"),
        ([Append("board.md", b" \n")], InvalidPath, "nothing to add"),
        ([Append("MEMORY.md", b"x")], InvalidPath, "memory file"),
        ([Append("notes.txt", b"x")], InvalidPath, r"\.md"),
        ([Append("board.md", b"caf\xe9")], InvalidMemoryFile, "UTF-8"),
        ([Append("board.md", b"x" * MAX_FILE_BYTES)], InvalidMemoryFile, "no room"),
        ([Append("empty.md", b"---\nname: [\n---\n")], InvalidMemoryFile, "line"),
        ([Append("board.md", b"x"), Delete("board.md")], InvalidArguments, "a commit of its own"),
    ],
)
async def test_what_cannot_be_added_is_refused(
    changes: list[Change], error: type[MdmemoryError], said: str, tmp_path: Path
) -> None:
    """C5: an addition that can't be made says why, and changes no byte."""
    folder = on_disk(tmp_path, {"board.md": BOARD, "empty.md": b""})
    before = everything(tmp_path)
    with pytest.raises(error, match=said):
        await folder.apply(changes, "person", "test")
    assert everything(tmp_path) == before


async def test_a_dry_run_adds_nothing(tmp_path: Path) -> None:
    """C5: a dry run says what would be added."""
    folder = on_disk(tmp_path, {"board.md": BOARD})
    applied = await folder.apply([Append("board.md", b"- x")], "person", "test", dry_run=True)
    assert applied.commit_id is None and applied.files[0].after == b"- x\n"
    assert (tmp_path / "board.md").read_bytes() == BOARD


async def test_additions_to_files_that_were_never_looked_at(tmp_path: Path) -> None:
    """C5: a file that came after the last look can be added to, on every backend; a missing final newline is put in."""
    folder = on_disk(tmp_path, {"other.md": BOARD})
    await folder.refresh()
    (tmp_path / "late.md").write_bytes(BOARD.rstrip())
    await folder.apply([Append("late.md", b"- x"), Append("other.md", b"- y")], "person", "test")
    assert (tmp_path / "late.md").read_bytes() == BOARD + b"- x\n" and (tmp_path / "other.md").read_bytes() == BOARD + b"- y\n"
    inside = MemoryFolder(MemoryBackend())
    await inside.apply([Create("a.md", BOARD)], "person", "test")
    await inside.apply([Append("a.md", b"- x")], "person", "test")
    assert await inside.read("a.md") == BOARD + b"- x\n"


@pytest.mark.parametrize("kind", KINDS)
async def test_additions_where_a_shell_runs(kind: str, tmp_path: Path) -> None:
    """C5: in a sandbox an entry is one call too, and the same text twice is two entries."""
    place, root = tmp_path / "place", tmp_path / "root"
    place.mkdir()
    on_disk(root, {"board.md": BOARD})
    shell = LocalShell(kind, place)
    folder = MemoryFolder(ShellBackend(shell, str(root)))
    await folder.refresh()
    shell.verbs.clear()
    for _ in range(2):
        await folder.apply([Append("board.md", b"- the same\n")], "agent:a", "entry")
    assert shell.verbs == ["commit"] * 2
    assert (root / "board.md").read_bytes() == BOARD + b"- the same\n" * 2


async def _add_until_killed(root: Path, said: int) -> None:
    folder = on_disk(root)
    for n in range(10_000):
        await folder.apply([Append("board.md", f"- entry {n:05}\n".encode())], "agent:a", "entry")
        os.write(said, f"{n}\n".encode())


async def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """C5: after kill -9 every acknowledged entry is there once, and the next writer goes on."""
    on_disk(tmp_path, {"board.md": BOARD})
    said, saying = os.pipe()
    pid = start(lambda: asyncio.run(partial(_add_until_killed, tmp_path, saying)()))
    os.close(saying)
    got = b""
    while got.count(b"\n") < 20:
        got += os.read(said, 4096)
    time.sleep(0.005)
    os.kill(pid, signal.SIGKILL)
    assert end(pid) == -signal.SIGKILL
    while more := os.read(said, 4096):
        got += more
    folder = on_disk(tmp_path)
    await folder.recover()
    await folder.apply([Append("board.md", b"- after\n")], "agent:b", "entry")
    entries = (tmp_path / "board.md").read_bytes().removeprefix(BOARD).decode().splitlines()
    acknowledged = got.count(b"\n")
    assert entries[:acknowledged] == [f"- entry {n:05}" for n in range(acknowledged)]
    assert entries[-1] == "- after" and len(entries) - 1 - acknowledged in (0, 1)
