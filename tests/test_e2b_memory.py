"""The whole of a memory in an E2B sandbox: the conformance suite, and what a memory asks of the network."""

from __future__ import annotations

import asyncio
import random
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from e2b_server import START, E2BServer

from mdmemory import Create, MemoryFolder, open_memory
from mdmemory.backends.e2b import E2BBackend
from mdmemory.backends.protocol import ABSENT, LOG, Append, Backend, Op, Put, done_mark, etag_of
from mdmemory.errors import ConfigError, Unavailable
from mdmemory.testing.conformance import BackendConformance, done

RUN = f"POST {START}"
NOISE = random.Random(0).randbytes(200_000)  # does not get smaller
NOTE = "---\nname: {name}\ndescription: what is known of {name}\ntype: project\n---\n\n{text}\n"


class TestE2B(BackendConformance):
    """The backend, each time in a sandbox of its own."""

    @pytest.fixture(autouse=True)
    def _served(self, server: E2BServer) -> None:
        self.server = server

    async def make_backend(self, tmp_path: Path) -> Backend:
        """Make one whose sandbox is there and whose folder is not."""
        return E2BBackend(memory="m")

    async def plant(self, backend: Backend, path: str, data: bytes) -> None:
        """Write the file as a person in the sandbox does."""
        if not self.server.sandboxes:
            await backend.scan()
        file = self.server.sandbox.home / "memory" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def fill(server: E2BServer, files: int) -> None:
    """Put memory files into the only sandbox, as a person does."""
    for n in range(files):
        path = server.sandbox.home / "memory" / f"topic-{n // 50}" / f"note-{n}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(NOTE.format(name=f"Note {n}", text="word " * 200))


async def opened(server: E2BServer) -> E2BBackend:
    """A backend that has its sandbox; nothing of that is counted."""
    backend = E2BBackend(memory="m")
    await backend.scan()
    server.requests.clear()
    return backend


async def test_a_thousand_headers_are_one_request(server: E2BServer) -> None:
    """Learning the headers of 1,000 files is one command."""
    backend = await opened(server)
    fill(server, 1_000)
    folder = MemoryFolder(backend)
    await folder.refresh()
    assert len(folder.listed) == 1_000 and server.requests == [RUN]
    await folder.close()


async def test_a_quiet_turn_is_one_request(server: E2BServer) -> None:
    """A turn in which nothing changed is one scan and two additions to the journal; a hint is one read more."""
    backend = await opened(server)
    fill(server, 20)
    async with open_memory(backend) as memory:
        session = memory.session()
        for text in ("Hello", "Hello again"):
            await (await session.turn(text)).system_prompt()
            await asyncio.sleep(0.1)
        for text, requests in (("Xylophone", 3 * [RUN]), ("What is known of Note 7?", 4 * [RUN])):
            server.requests.clear()
            async with session.turn(text) as turn:
                await turn.system_prompt()
                await turn.take_hint()
                await turn.finish("Well.")
            assert server.requests == requests


async def test_what_each_verb_asks_for(server: E2BServer) -> None:
    """Each verb is one request; one that is given more than 64 KB has an upload before it."""
    backend = await opened(server)
    small, large = Put("a.md", b"x"), Put("b.md", NOISE)
    counts: list[list[str]] = []
    for work in (backend.scan(), backend.commit("1", [small]), backend.read({"a.md": None}), backend.commit("2", [large])):
        await work
        counts.append(server.requests.copy())
        server.requests.clear()
    assert counts == [[RUN], [RUN], [RUN], ["POST /files", RUN]]


async def test_a_save_is_one_command(server: E2BServer) -> None:
    """A save of a file with its index line and history is one command; of more than 64 KB, compressed, one upload more."""
    backend = await opened(server)
    async with open_memory(backend) as memory:
        await memory.folder.refresh()
        counts = []
        for n, text in enumerate(("word " * 10_000, "word " * 12_000, secrets.token_hex(120_000))):
            server.requests.clear()
            await memory.folder.apply([Create(f"{n}.md", NOTE.format(name=f"Note {n}", text=text).encode())], "person", "test")
            counts.append(len(server.requests))
    assert counts == [1, 1, 2]


async def test_an_answer_lost_in_a_save(server: E2BServer) -> None:
    """When the answer to a commit is lost, the retry finds it done: nothing is doubled, in the files or in the history."""
    backend = await opened(server)
    ops: list[Op] = [Put("a.md", b"x", ABSENT), Append("log.md", b"line\n", ""), Append(LOG, b'{"done":"c"}\n', done_mark("c"))]
    server.fail(START, 0)
    assert await backend.commit("c", ops) == {"a.md": etag_of(b"x")}
    home = server.sandbox.home / "memory"
    assert (home / "log.md").read_text() == "line\n" and (home / LOG).read_text() == '{"done":"c"}\n'


async def test_a_pause_in_the_middle_of_a_save(server: E2BServer) -> None:
    """A commit that is frozen by a pause goes on after the resume, beside its retry, and all is done exactly once."""
    backend = await opened(server)
    for n in range(10):
        await backend.scan()  # resumes the sandbox, where a save was quicker than its pause
        data = NOISE[n:]
        ops: list[Op] = [Append("log.md", b"line\n", ""), Put("a.md", data), done(f"c{n}")]
        task = asyncio.create_task(backend.commit(f"c{n}", ops))
        await asyncio.sleep(0.02 * n)
        server.sandbox.pause()
        assert await task == {"a.md": etag_of(data)}
        assert (server.sandbox.home / "memory/log.md").read_text() == "line\n" * (n + 1)


async def test_a_sandbox_that_was_killed(server: E2BServer) -> None:
    """When someone kills the sandbox of an open memory, its files are not taken for deleted: it can't be looked at, nor written."""
    backend = await opened(server)
    await backend.commit("c", [Put("a.md", b"x")])
    server.sandboxes.pop(server.sandbox.id).kill()
    with pytest.raises(Unavailable, match="was there and is gone"):
        await backend.scan()
    with pytest.raises(Unavailable, match="was there and is gone"):
        await backend.commit("d", [Put("b.md", b"x")])


async def test_a_disk_that_is_full(server: E2BServer) -> None:
    """When an upload finds no room, nothing was written, and the error says so."""
    backend = await opened(server)
    server.fail("/files", 507)
    with pytest.raises(Unavailable, match="nothing was written"):
        await backend.commit("c", [Put("a.md", NOISE)])
    assert (await backend.scan()).files == {}


async def test_a_turn_without_the_sandbox(server: E2BServer) -> None:
    """A turn whose memory can't be reached goes on without it, and says why."""
    async with open_memory(await opened(server)) as memory:
        server.fail("/", 500, times=999)
        async with memory.session().turn("Hello") as turn:
            await turn.finish("Hello.")
        assert "E2B failed" in str(turn.status.degraded)
        server.faults.clear()


async def test_a_refused_key(server: E2BServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A memory with a wrong key doesn't open, and the error says what to set."""
    monkeypatch.setenv("E2B_API_KEY", "e2b_wrong")
    with pytest.raises(ConfigError, match="Set E2B_API_KEY"):
        async with open_memory("e2b://base?memory=m"):
            pass


async def test_the_command_line(server: E2BServer) -> None:
    """`mdmemory` takes a location in E2B wherever it takes a folder."""
    location = "e2b://base?memory=m"
    for arguments, words in ((["init", location], "Made"), (["ls", "-f", location], ""), (["doctor", "-f", location], "")):
        command = [sys.executable, "-m", "mdmemory", *arguments]
        done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and words in done.stdout, done.stderr
    assert (server.sandbox.home / "memory/MEMORY.md").exists()
