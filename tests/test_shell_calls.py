"""What ShellBackend makes of its shell: how often it calls, what a lost or endless answer comes to, and who is refused."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from children import NOBODY, open_folder
from local_shell import CommandShell, LocalShell

from mdmemory import Create, Delete, MemoryFolder
from mdmemory.backends.protocol import ABSENT, LOG, Append, File, FileProblem, Op, Put, done_mark, etag_of
from mdmemory.backends.shell import Completed, LostConnection, ShellBackend
from mdmemory.errors import Conflict, Unavailable

NOTE = "---\nname: Note {n}\ndescription: what is known of {n}\ntype: project\n---\n\n{text}\n"


@pytest.fixture
def shell(tmp_path: Path) -> LocalShell:
    """A shell of this machine that notes each call."""
    return LocalShell("sh", tmp_path)


@pytest.fixture
def backend(shell: LocalShell, tmp_path: Path) -> ShellBackend:
    """The folder `memory`, over that shell."""
    return ShellBackend(shell, str(tmp_path / "memory"))


async def test_learning_all_headers_is_one_call(shell: LocalShell, backend: ShellBackend) -> None:
    """Of 1,000 files all headers are learnt by one call, and a look at what has not changed is one more, without a byte of them."""
    await backend.commit("fill", [Put(f"topic-{n // 50}/note-{n}.md", NOTE.format(n=n, text="x").encode()) for n in range(1000)])
    await asyncio.sleep(0.05)
    shell.verbs.clear()
    folder = MemoryFolder(backend)
    await folder.refresh()
    assert shell.verbs == ["scan"] and len(folder.files) == 1000 and all(known.header for known in folder.files.values())
    await folder.refresh()
    assert shell.verbs == ["scan", "scan"]


async def test_a_save_is_one_call(shell: LocalShell, backend: ShellBackend) -> None:
    """A save of 64 KB with its index and history is one commit, when nobody else wrote meanwhile."""
    folder = MemoryFolder(backend)
    await folder.refresh()
    shell.verbs.clear()
    await folder.apply([Create("a.md", NOTE.format(n=1, text="x" * 65_000).encode())], "person", "test")
    assert shell.verbs == ["commit"]


async def test_reads_at_once_share_a_call(shell: LocalShell, backend: ShellBackend) -> None:
    """Reads that are asked for while one is under way go together, and each gets its own answer."""
    await backend.commit("c", [Put(f"{n}.md", b"%d" % n) for n in range(20)])
    shell.verbs.clear()
    found = await asyncio.gather(*(backend.read({f"{n}.md": None}) for n in range(20)))
    assert [list(answer) for answer in found] == [[f"{n}.md"] for n in range(20)]
    assert [getattr(answer[f"{n}.md"], "data", None) for n, answer in enumerate(found)] == [b"%d" % n for n in range(20)]
    assert len(shell.verbs) <= 2


async def test_an_overtaken_commit_needs_no_call(shell: LocalShell, backend: ShellBackend) -> None:
    """E2: of commits that wait for each other, those whose file the first has replaced conflict with its etag, without a call."""
    await backend.commit("c", [Put("a.md", b"old")])
    shell.verbs.clear()
    commits = (backend.commit(f"c{n}", [Put("a.md", b"%d" % n, etag_of(b"old"))]) for n in range(5))
    results = await asyncio.gather(*commits, return_exceptions=True)
    (won,) = [result for result in results if isinstance(result, dict)]
    lost = [error.etag for error in results if isinstance(error, Conflict)]
    assert shell.verbs == ["commit"] and lost == [won["a.md"]] * 4


class Unsteady:
    """A shell that loses its answers, or the calls themselves.

    Args:
        losses: for each call, `call`, `answer` or None for neither; then none are lost.
    """

    def __init__(self, inner: LocalShell, *losses: str | None) -> None:
        self.inner, self.losses = inner, list(losses)

    async def run(self, argv: Sequence[str], stdin: bytes, *, timeout_s: float, max_output_bytes: int) -> Completed:
        """Run a command, maybe."""
        loss = self.losses.pop(0) if self.losses else None
        if loss == "call":
            raise LostConnection("the line is dead")
        done = await self.inner.run(argv, stdin, timeout_s=timeout_s, max_output_bytes=max_output_bytes)
        if loss == "answer":
            raise LostConnection("the line is dead")
        return done

    async def close(self) -> None:
        """Close."""
        await self.inner.close()


OPS: list[Op] = [
    Put("a.md", b"new", etag_of(b"old")),
    Append(LOG, b"intent c\n", "intent c"),
    Put("b.md", b"new", ABSENT),
    Append(LOG, f"{{{done_mark('c')}}}\n".encode(), done_mark("c")),
]


@pytest.mark.parametrize("loss", ["call", "answer"])
async def test_a_lost_answer_is_asked_for_again(shell: LocalShell, tmp_path: Path, loss: str) -> None:
    """E7: after a lost connection the call is repeated once, and what had happened is not done twice."""
    unsteady = Unsteady(shell, None, loss)
    backend = ShellBackend(unsteady, str(tmp_path / "memory"))
    await backend.commit("first", [Put("a.md", b"old")])
    assert await backend.commit("c", OPS) == {"a.md": etag_of(b"new"), "b.md": etag_of(b"new")}
    assert (tmp_path / "memory" / LOG).read_bytes().count(b"intent c") == 1


async def test_a_dead_line_is_unavailable(shell: LocalShell, tmp_path: Path) -> None:
    """After the second loss the call fails, and nothing is said to be absent."""
    backend = ShellBackend(Unsteady(shell, *["call"] * 6), str(tmp_path / "memory"))
    for call in (backend.scan(), backend.commit("c", [Put("a.md", b"x")])):
        with pytest.raises(Unavailable, match="the line is dead"):
            await call
    problem = (await backend.read({"a.md": None}))["a.md"]
    assert isinstance(problem, FileProblem) and problem.kind == "unavailable"
    await backend.commit("c", [Put("a.md", b"x")])


@pytest.mark.parametrize("command", ["yes", "cat /dev/zero", "yes >&2"])
async def test_endless_output_is_cut_off(shell: LocalShell, command: str) -> None:
    """A command that never stops talking ends in a clear error, at once and with bounded memory."""
    began = time.monotonic()
    with pytest.raises(Unavailable, match="more than 100000 bytes"):
        await CommandShell().run(["sh", "-c", command], b"", timeout_s=30, max_output_bytes=100_000)
    assert time.monotonic() - began < 10


async def test_an_impostor_as_a_tool(tmp_path: Path) -> None:
    """Where `find` has been replaced by one that never ends, a scan is killed there, and says so."""
    shims = tmp_path / "shims"
    shims.mkdir()
    (shims / "find").write_text("#!/bin/sh\nexec sleep 60\n")
    (shims / "find").chmod(0o755)
    (tmp_path / "memory").mkdir()
    backend = ShellBackend(LocalShell("sh", tmp_path, shims), str(tmp_path / "memory"), timeout_s=1)
    with pytest.raises(Unavailable, match="more than 1 s"):
        await backend.scan()


@pytest.mark.parametrize(("prefix", "reason"), [(["true"], "no answer"), (["echo"], "no answer"), (["false"], "no answer")])
async def test_a_place_that_is_no_shell(tmp_path: Path, prefix: list[str], reason: str) -> None:
    """An answer that is none says nothing about what is there: the error names what there must be."""
    backend = ShellBackend(CommandShell(*prefix), str(tmp_path / "memory"))
    with pytest.raises(Unavailable, match=reason) as caught:
        await backend.scan()
    assert "sh, stat, find" in str(caught.value) and str(tmp_path) not in str(caught.value)


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user can reach."""
    with open_folder() as folder:
        yield folder


def as_nobody(*command: str) -> CommandShell:
    """A shell of a user who may do little."""
    if os.getuid() == 0:
        command = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *command)
    return CommandShell(*command)


needs_setpriv = pytest.mark.skipif(os.getuid() == 0 and not shutil.which("setpriv"), reason="root needs setpriv to be nobody")


@needs_setpriv
async def test_what_can_not_be_read_is_not_absent(place: Path) -> None:
    """D1: a folder or file without permission is skipped as `could not look`, reading it is unavailable, and so is writing."""
    for path in ("open/a.md", "closed/b.md", "unsearchable/c.md", "secret.md"):
        (place / "memory" / path).parent.mkdir(parents=True, exist_ok=True)
        (place / "memory" / path).write_bytes(b"x")
    for path, mode in (("closed", 0o000), ("unsearchable", 0o444), ("secret.md", 0o000)):
        (place / "memory" / path).chmod(mode)
    backend = ShellBackend(as_nobody(), str(place / "memory"))
    scan = await backend.scan()
    assert list(scan.files) == ["open/a.md"]
    assert {path: reason[:14] for path, reason in scan.skipped.items()} == dict.fromkeys(
        ("closed", "unsearchable", "secret.md"), "could not look"
    )
    found = await backend.read(dict.fromkeys(["open/a.md", "closed/b.md", "unsearchable/c.md", "secret.md"]))
    assert [getattr(answer, "kind", "read") for answer in found.values()] == ["read", *["unavailable"] * 3]
    with pytest.raises(Unavailable, match="read-only") as caught:
        await backend.commit("c", [Put("open/a.md", b"y")])
    assert str(place) not in str(caught.value) and "nothing was written" in str(caught.value)


@needs_setpriv
async def test_a_closed_root(place: Path) -> None:
    """D1: a root that can't be entered, or lies in a folder that can't, could not be looked at."""
    (place / "closed/memory").mkdir(parents=True)
    for closed, root in ((place / "closed/memory", place / "closed/memory"), (place / "closed", place / "closed/memory")):
        closed.chmod(0o000)
        backend = ShellBackend(as_nobody(), str(root))
        with pytest.raises(Unavailable, match="could not look"):
            await backend.scan()
        problem = (await backend.read({"a.md": None}))["a.md"]
        assert isinstance(problem, FileProblem) and problem.kind == "unavailable"
        closed.chmod(0o755)


async def test_a_full_disk(place: Path) -> None:
    """A disk that is full stops a commit before the first file changes, and says so."""
    backend = ShellBackend(CommandShell("sh", "-c", 'ulimit -f 100; exec "$@"', "sh"), str(place / "memory"))
    await backend.commit("c", [Put("a.md", b"old")])
    with pytest.raises(Unavailable, match="nothing was written"):
        await backend.commit("d", [Put("a.md", b"new"), Put("b.md", b"x" * 200_000)])
    assert (place / "memory/a.md").read_bytes() == b"old" and not list((place / "memory/.mdmemory/shell/work").iterdir())


async def test_deleting_files(backend: ShellBackend) -> None:
    """Files are deleted with their tombstones and index lines, one and several at once."""
    folder = MemoryFolder(backend)
    await folder.apply([Create(f"{n}.md", NOTE.format(n=n, text="x").encode()) for n in range(4)], "person", "test")
    await folder.apply([Delete("0.md")], "person", "test")
    await folder.apply([Delete("1.md"), Delete("2.md")], "person", "test")
    await folder.refresh()
    assert list(folder.files) == ["3.md"] and "(1.md)" not in (await folder.index_file() or "")
    tombstones = (await folder.backend.read({".mdmemory/tombstones": None}))[".mdmemory/tombstones"]
    assert isinstance(tombstones, File) and tombstones.data.count(b"\n") == 3
