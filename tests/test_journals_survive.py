"""Appends to a journal among kills and other processes, and at the end of files of any size."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from children import end, start
from folders import on_disk
from journaling import file_in, looked, said, texts
from local_shell import KINDS, LocalShell
from test_local_kill import die_before

from mdmemory.backends.local import LocalBackend
from mdmemory.backends.protocol import Append
from mdmemory.backends.shell import ShellBackend
from mdmemory.files.journal import entry_bytes, file_of, parse


def journal_of(size: int, root: Path) -> Path:
    """A journal that has one entry at its end and a hole of this size before it."""
    place = root / "journal/2026/11/s.md"
    place.parent.mkdir(parents=True)
    with open(place, "wb") as file:
        file.truncate(size)
        file.seek(size)
        file.write(b"\n" + entry_bytes(said("before", "m1")))
    return place


def bytes_read() -> int:
    """How many bytes this process has read so far."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


@pytest.mark.skipif(not os.path.exists("/proc/self/io"), reason="only Linux counts what a process reads")
async def test_an_append_costs_the_same_however_large_the_file_is(tmp_path: Path) -> None:
    """One more message at the end of 64 GiB reads what it reads at the end of 1 KiB: at most the last 64 KB."""
    costs = []
    for size in (1_024, 1 << 36):
        root = tmp_path / str(size)
        place = journal_of(size, root)
        backend = LocalBackend(root)
        await backend.commit("c0", [Append("journal/2026/11/s.md", entry_bytes(said("warm", "m2")), "<!-- end m2 ")])
        before = bytes_read()
        await backend.commit("c1", [Append("journal/2026/11/s.md", entry_bytes(said("after", "m3")), "<!-- end m3 ")])
        costs.append(bytes_read() - before)
        with open(place, "rb") as file:
            file.seek(size)
            assert [message.id for message in parse(file.read()).messages] == ["m1", "m2", "m3"]
    assert costs[1] - costs[0] < 70_000


@pytest.mark.parametrize("kind", KINDS)
async def test_an_append_over_a_shell_costs_the_same_however_large_the_file_is(kind: str, tmp_path: Path) -> None:
    """At the end of 64 GiB, which no tool can read in ten seconds, a message is added, and added again leaves it as it is."""
    place = journal_of(1 << 36, tmp_path / "memory")
    backend = ShellBackend(LocalShell(kind, tmp_path), str(tmp_path / "memory"), timeout_s=10)
    for n in range(2):
        await backend.commit(f"c{n}", [Append("journal/2026/11/s.md", entry_bytes(said("after", "m2")), "<!-- end m2 ")])
    with open(place, "rb") as file:
        file.seek(1 << 36)
        assert [message.id for message in parse(file.read()).messages] == ["m1", "m2"]


async def test_two_processes_on_one_session(tmp_path: Path) -> None:
    """Two processes that talk in one session at once keep each other's messages, in one file with one frontmatter."""

    async def talk(process: int) -> None:
        journals = await looked(on_disk(tmp_path))
        for n in range(50):
            await journals.append("s", [said(f"{process}-{n}"), said("x", f"shared-{n}")])

    children = [start(lambda process=process: asyncio.run(talk(process))) for process in range(4)]  # type: ignore[misc]  # typed above
    assert [end(pid) for pid in children] == [0] * 4
    data = file_in(tmp_path, "s").read_bytes()
    found = parse(data)
    own = [message.text for message in found.messages if not message.id.startswith("shared-")]
    assert sorted(own) == sorted(f"{process}-{n}" for process in range(4) for n in range(50)) and found.torn == ()
    assert data.count(b"started:") == 1 and data.count(b"<!-- end shared-") == 50


@pytest.fixture
def acknowledged() -> Iterator[tuple[int, int]]:
    """A pipe for what a child has been promised."""
    pipe = os.pipe()
    yield pipe
    for fd in pipe:
        os.close(fd)


@pytest.mark.parametrize("after_s", [0.05, 0.1, 0.2, 0.3, 0.4])
def test_every_acknowledged_message_survives_a_kill(after_s: float, acknowledged: tuple[int, int], tmp_path: Path) -> None:
    """G2: a process that is killed while it appends leaves every message whose append returned, and a file that goes on."""
    get, put = acknowledged
    os.set_blocking(get, False)

    async def talk() -> None:
        journals = await looked(on_disk(tmp_path))
        for n in range(100_000):
            await journals.append("s", [said(f"{n} " + "x" * 5_000, f"m{n}")])
            os.write(put, b"%d\n" % n)

    pid = start(lambda: asyncio.run(talk()))
    deadline = time.monotonic() + 20
    while not list(tmp_path.glob("journal/*/*/s.md")) and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(after_s)
    os.kill(pid, signal.SIGKILL)
    assert end(pid) == -signal.SIGKILL
    promised = os.read(get, 1 << 20).split() if after_s else []

    async def go_on() -> list[str]:
        journals = await looked(on_disk(tmp_path))
        await journals.append("s", [said("after", "after")])
        return [message.id for message in await journals.messages("s")]

    ids = asyncio.run(go_on())
    assert ids[: len(promised)] == [f"m{n.decode()}" for n in promised] and ids[-1] == "after"
    assert len(ids) in (len(promised) + 1, len(promised) + 2)


def test_a_kill_before_any_system_call_of_an_append(tmp_path: Path) -> None:
    """G2: whichever system call is the last, the first message stays, the second is whole or absent, and the third is added."""
    call, code = 0, -signal.SIGKILL
    while code == -signal.SIGKILL:
        call += 1
        root = tmp_path / str(call)

        async def add(n: int, root: Path = root) -> list[str]:
            journals = await looked(on_disk(root))
            await journals.append("s", [said(f"text {n}", f"m{n}")])
            return texts(await journals.messages("s"))

        def work(root: Path = root, call: int = call) -> None:
            entry = Append(file_of("s", said("x").at), entry_bytes(said("text 2", "m2")), "<!-- end m2 ")
            backend = LocalBackend(root)
            die_before(call)
            backend._commit("c2", [entry])
            sys.setprofile(None)

        asyncio.run(add(1))
        code = end(start(work))
        assert asyncio.run(add(3)) in (["text 1", "text 2", "text 3"], ["text 1", "text 3"])
    assert code == 0 and call > 8
