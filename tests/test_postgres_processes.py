"""Many processes with one PostgreSQL database, and its server killed in the middle of their commits."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from children import end, start
from database import Server, closing, execute
from folders import memory
from journaling import said

from mdmemory.backends.postgres import PostgresBackend
from mdmemory.backends.protocol import LOG, Append, File, etag_of
from mdmemory.errors import Conflict, MdmemoryError
from mdmemory.files.changes import Create, Replace
from mdmemory.files.journal import parse
from mdmemory.folder.memory_folder import MemoryFolder

pytestmark = pytest.mark.slow  # many processes, or the same again and again

_numbers = itertools.count()


@pytest.fixture(scope="module")
def url(postgres: Server) -> str:
    """A database for all of these tests."""
    return postgres.new_tables()


async def add_lines(url: str, folder: str, process: int, times: int) -> None:
    """Read a file, add a line, and save it, again when others were faster."""
    async with closing(url, folder) as backend:
        opened = MemoryFolder(backend)
        await opened.refresh()
        for n in range(times):
            while True:
                data = await opened.read("a.md")
                change = Replace("a.md", data + f"- {process} {n}\n".encode(), etag_of(data))
                try:
                    await opened.apply([change], f"agent:{process}", "test")
                    break
                except Conflict:
                    await opened.refresh()


async def content(url: str, folder: str) -> dict[str, bytes]:
    """Every file, and the log."""
    async with closing(url, folder) as backend:
        found = await backend.read(dict.fromkeys([*(await backend.scan()).files, LOG]))
    return {path: file.data for path, file in found.items() if isinstance(file, File)}


def test_two_processes_edit_one_file(url: str) -> None:
    """Two processes that change one file a hundred times each lose no change, and the log has each of them, done."""

    async def begin() -> None:
        async with closing(url, "edited") as backend:
            await MemoryFolder(backend).apply([Create("a.md", memory("a"))], "person", "test")

    asyncio.run(begin())
    children = [start(lambda n=n: asyncio.run(add_lines(url, "edited", n, 100))) for n in range(2)]
    assert [end(pid) for pid in children] == [0, 0]
    files = asyncio.run(content(url, "edited"))
    lines = [line for line in files["a.md"].decode().splitlines() if line.startswith("- ")]
    assert sorted(lines) == sorted(f"- {process} {n}" for process in range(2) for n in range(100))
    log = [json.loads(line) for line in files[LOG].splitlines()]
    assert len([line for line in log if "done" in line]) == 201


def test_eight_processes_append_to_one_file(url: str) -> None:
    """Of 8 processes that each append 100 entries to one file, 800 of 800 are there, in the order of each."""

    async def append(process: int) -> None:
        async with closing(url, "board") as backend:
            for n in range(100):
                await backend.commit(
                    f"{process}-{n}", [Append("board.md", f"{process} {n:03}\n".encode(), f"{process} {n:03}\n"[:-1])]
                )

    children = [start(lambda n=n: asyncio.run(append(n))) for n in range(8)]
    assert [end(pid) for pid in children] == [0] * 8
    lines = asyncio.run(content(url, "board"))["board.md"].decode().splitlines()
    assert len(lines) == 800
    for process in range(8):
        assert [line for line in lines if line[0] == str(process)] == [f"{process} {n:03}" for n in range(100)]


def test_a_fork_has_connections_of_its_own(url: str) -> None:
    """A backend that was open before a fork is used on both sides: neither takes the other's connection for its own."""

    async def use(backend: PostgresBackend, name: str) -> None:
        for n in range(20):
            await backend.commit(f"{name}{n}", [Append(f"{name}.md", f"{n}\n".encode(), "")])
        assert f"{name}.md" in (await backend.scan()).files

    async def run() -> None:
        backend = PostgresBackend(url, "forked")
        await use(backend, "before")
        child = start(lambda: in_new_loop(backend))
        await use(backend, "parent")
        assert await asyncio.to_thread(end, child) == 0
        assert set((await backend.scan()).files) == {"before.md", "parent.md", "child.md"}
        await backend.close()

    def in_new_loop(backend: PostgresBackend) -> None:
        asyncio.run(use(backend, "child"))

    asyncio.run(run())


def test_event_loops_come_and_go(url: str) -> None:
    """One backend that is used in one event loop after the other works in each, and leaves no connection behind."""
    backend = PostgresBackend(url + "?application_name=loops", "loops")

    async def use(n: int) -> None:
        await backend.commit(f"c{n}", [Append("a.md", f"{n}\n".encode(), "")])
        await backend.close()

    for n in range(3):
        asyncio.run(use(n))
    assert asyncio.run(content(url, "loops"))["a.md"] == b"0\n1\n2\n"
    assert asyncio.run(gone(url, "loops"))


async def gone(url: str, application: str) -> bool:
    """Whether no connection is left of an application, at once or within a second."""
    left = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
    for _ in range(100):
        if await execute(url, left, application) == [(0,)]:
            return True
        await asyncio.sleep(0.01)
    return False


async def test_the_last_one_closes_the_connections(url: str) -> None:
    """Folders of one address share their connections, which are closed with the last of them; no task is left."""
    named = url + "?application_name=shared"
    before = asyncio.all_tasks()
    backends = [PostgresBackend(named, f"shared/{n}") for n in range(50)]
    for backend in backends:
        await backend.commit("c", [Append("a.md", b"tea\n", "")])
    [(connections,)] = await execute(url, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'shared'")
    assert 1 <= connections <= 10
    for backend in backends[1:]:
        await backend.close()
    await backends[0].scan()
    await backends[0].close()
    await backends[0].close()
    assert await gone(url, "shared") and asyncio.all_tasks() == before


@pytest.fixture
def mortal() -> Iterator[Server]:
    """A server that may be killed."""
    server = Server()
    yield server
    server.stop()


async def work_through(url: str, process: int, answers: Path) -> None:
    """Save files and journal entries until told to stop, noting what was answered, through any number of kills."""
    with answers.open("w") as told:
        async with closing(url, "mortal") as backend:
            opened = MemoryFolder(backend)
            for n in itertools.count():
                if answers.with_suffix(".stop").exists():
                    return
                path, line = f"{process}/{n}.md", f"{process} {n}"
                try:
                    if n % 3:
                        await opened.apply([Create(path, memory(line))], f"agent:{process}", line)
                    else:
                        await opened.refresh()
                        await opened.journals.append(f"s{process}", [said(line, f"{process}-{n}")])
                    told.write(f"{n} done\n")
                except MdmemoryError as error:
                    told.write(f"{n} {error}\n")
                told.flush()


@pytest.mark.slow
def test_the_server_is_killed_in_the_middle_of_commits(mortal: Server, tmp_path: Path) -> None:
    """Kill -9 of the server three times while four processes save: what was answered is there, whole and once, as the log has it.

    The processes go on by themselves.
    """
    url = mortal.new_tables()
    answers = [tmp_path / str(process) for process in range(4)]
    children = [start(lambda n=n: asyncio.run(work_through(url, n, answers[n]))) for n in range(4)]
    for _ in range(3):
        time.sleep(0.7)
        mortal.kill()
        before = [file.read_text().count("done") for file in answers]
        mortal.start()
        wait_until(
            lambda before=before: all(
                file.read_text().count("done") > count + 2 for file, count in zip(answers, before, strict=True)
            )
        )
    for file in answers:
        file.with_suffix(".stop").touch()
    assert [end(pid) for pid in children] == [0] * 4
    files = asyncio.run(content(url, "mortal"))
    journals = [parse(data) for path, data in files.items() if path.startswith("journal/")]
    messages = [message.text for journal in journals for message in journal.messages]
    assert len(messages) == len(set(messages))
    log = [json.loads(line) for line in files[LOG].splitlines()]
    lines = [line for line in log if "files" in line]
    intents = {line["id"]: line for line in lines if not line["id"].endswith("-outside")}  # which tells, and does nothing
    done = [line["done"] for line in log if "done" in line]
    assert len(done) == len(set(done)) > 20 and set(done) == set(intents)
    for process, file in enumerate(answers):
        for line in file.read_text().splitlines():
            n, answer = line.split(" ", 1)
            there = f"{process}/{n}.md" in files if int(n) % 3 else f"{process} {n}" in messages
            assert there or answer != "done", line
    for path, data in files.items():
        if path[0].isdecimal():
            assert data == memory(path[:-3].replace("/", " "))
            assert sum(change["path"] == path for line in intents.values() for change in line["files"]) == 1


def wait_until(holds: object) -> None:
    """Wait up to a minute."""
    end_of_it = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end_of_it
        time.sleep(0.02)


def test_a_process_is_killed_in_the_middle_of_commits(url: str) -> None:
    """Kill -9 of a process that saves: no commit of it is half there, and no lock of it holds up the next one."""
    for n in range(10):
        child = start(lambda n=n: asyncio.run(add_many(url, f"killed/{n}")))
        time.sleep(0.25 + n * 0.013)
        os.kill(child, signal.SIGKILL)
        end(child)
        asyncio.run(whole(url, f"killed/{n}"))


async def add_many(url: str, folder: str) -> None:
    """Save files as fast as possible."""
    async with closing(url, folder) as backend:
        opened = MemoryFolder(backend)
        for n in itertools.count():
            await opened.apply([Create(f"{n}.md", memory(str(n)))], "agent:a", "test")


async def whole(url: str, folder: str) -> None:
    """Check that each intent of a folder is done and has its file, and that one more save works."""
    async with closing(url, folder) as backend:
        await MemoryFolder(backend).apply([Create("last.md", memory("last"))], "person", "test")
    files = await content(url, folder)
    log = [json.loads(line) for line in files[LOG].splitlines()]
    changed = {change["path"] for line in log for change in line.get("files", ())}
    assert changed - {"MEMORY.md"} == {path for path in files if path not in ("MEMORY.md", LOG)}
    assert sum("done" in line for line in log) == sum("files" in line for line in log)
