"""A memory in an E2B sandbox: the real SDK against a server that speaks E2B's wire."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time

import pytest
from e2b_server import START, E2BServer
from shells import new_shell, run

from mdmemory.backends.e2b import INLINE_BYTES, E2BBackend, E2BShell
from mdmemory.backends.protocol import etag_of
from mdmemory.backends.shell import Completed
from mdmemory.errors import ConfigError, MdmemoryError, Unavailable

MIB = 1 << 20
NOISE = random.Random(0).randbytes(5 * MIB)  # does not get smaller
LARGE = NOISE[: INLINE_BYTES + 1]


async def test_bytes_go_in_and_out_as_they_are(shell: E2BShell) -> None:
    """Any bytes come back as they went in; the exit code and what was said beside come along."""
    data = bytes(range(256)) * 9
    assert await run(shell, "cat; echo 'läuft' >&2; exit 7", data) == Completed(7, data, "läuft\n".encode())
    assert await run(shell, "true", data) == Completed(0, b"", b"")


@pytest.mark.parametrize(
    ("data", "requests"),
    [(b"", 1), (NOISE[:INLINE_BYTES], 1), (NOISE[: INLINE_BYTES + 1], 2), (NOISE, 2), (b"a line of a log\n" * 65_536, 1)],
    ids=["nothing", "64 KB", "64 KB + 1", "5 MB", "1 MB that gets small"],
)
async def test_one_request_and_an_upload_above_64_kb(server: E2BServer, shell: E2BShell, data: bytes, requests: int) -> None:
    """Up to 64 KB, compressed, are given within the one request, more by one upload before it, of which nothing stays behind."""
    result = await run(shell, "sha256sum; #" + "x" * 20_000, data)
    assert (result.code, result.stdout.split()[0].decode()) == (0, etag_of(data))
    assert server.requests == ["POST /files", f"POST {START}"][-requests:]
    assert list(server.sandbox.home.iterdir()) == []


async def test_uploads_whose_command_never_came_are_swept(server: E2BServer, shell: E2BShell) -> None:
    """An upload left by a process that died goes with a later one, when it is an hour old."""
    for name, age_s in (("old", 7200), ("new", 60)):
        path = server.sandbox.home / f".mdmemory-{name}"
        path.write_bytes(b"x")
        os.utime(path, (time.time() - age_s,) * 2)
    await run(shell, "cat", LARGE)
    assert [path.name for path in server.sandbox.home.iterdir()] == [".mdmemory-new"]


async def test_a_greeting_is_no_answer(server: E2BServer, shell: E2BShell) -> None:
    """What a login shell says before the command is not taken for its output."""
    (server.sandbox.home / ".profile").write_text("echo 'Welcome!'\n")
    assert (await run(shell, "echo yes")).stdout == b"yes\n"


async def test_too_much_output_is_refused(shell: E2BShell) -> None:
    """Output beyond the limit ends in a clear error, at once, though it never ends."""
    assert (await run(shell, "head -c 1000 /dev/zero", at_most=1000)).stdout == bytes(1000)
    for script in ("head -c 1001 /dev/zero", "yes", "yes >&2"):
        with pytest.raises(Unavailable, match="more than"):
            await run(shell, script, at_most=1000)


async def test_a_command_that_hangs_is_left(shell: E2BShell) -> None:
    """A command that takes longer than it may is an error that says so."""
    with pytest.raises(Unavailable, match="no answer in time"):
        await run(shell, "sleep 60", timeout_s=1)


async def test_an_expired_sandbox_is_resumed(server: E2BServer, shell: E2BShell) -> None:
    """A sandbox that E2B paused meanwhile is resumed by the next command, with what is in it."""
    await run(shell, "echo hello > file")
    server.sandbox.end_at = 0
    assert (await run(shell, "cat file")).stdout == b"hello\n"


async def test_a_pause_under_way_does_nothing_twice_in_the_sandbox(server: E2BServer, shell: E2BShell) -> None:
    """When the sandbox is paused while a command runs, it is resumed and the command asked for again; the first goes on too."""
    task = asyncio.create_task(run(shell, "echo x >> file; until [ -e go ]; do sleep 0.01; done; wc -l < file"))
    while not (server.sandbox.home / "file").exists():
        await asyncio.sleep(0.01)
    server.sandbox.pause()
    await asyncio.sleep(0.2)
    (server.sandbox.home / "go").touch()
    assert int((await task).stdout) == 2


async def test_a_lost_answer_is_asked_for_again(server: E2BServer, shell: E2BShell) -> None:
    """When the answer to a command or an upload is lost, it is asked for once more on a new connection, and no oftener."""
    for path, stdin in ((START, b""), ("/files", LARGE)):
        server.fail(path, 0)
        assert (await run(shell, "echo x >> file; wc -l < file", stdin)).code == 0
    assert (server.sandbox.home / "file").read_text() == "x\nx\nx\n"
    server.fail(START, 0, times=2)
    with pytest.raises(Unavailable, match="may have been done or not"):
        await run(shell, "true")


FAULTS = [
    ("/sandboxes", 400, ConfigError, "these settings"),
    ("/sandboxes", 401, ConfigError, "Set E2B_API_KEY"),
    ("/sandboxes", 404, ConfigError, "no such template"),
    ("/sandboxes", 429, Unavailable, "no more requests"),
    ("/sandboxes", 500, Unavailable, "status 500"),
    ("/sandboxes", 503, Unavailable, "busy"),
    ("/files", 400, Unavailable, "could not do"),
    ("/files", 401, Unavailable, "does not know us"),
    ("/files", 404, Unavailable, "could not do"),
    ("/files", 429, Unavailable, "no more requests"),
    ("/files", 500, Unavailable, "E2B failed"),
    ("/files", 502, Unavailable, "may have been done"),
    ("/files", 503, Unavailable, "E2B failed"),
    ("/files", 507, Unavailable, "disk is full"),
    (START, 400, Unavailable, "could not do"),
    (START, 401, Unavailable, "does not know us"),
    (START, 429, Unavailable, "no more requests"),
    (START, 500, Unavailable, "E2B failed"),
    (START, 502, Unavailable, "may have been done"),
    (START, 503, Unavailable, "may have been done"),
    (START, 504, Unavailable, "no answer in time"),
]


@pytest.mark.parametrize(("path", "status", "kind", "words"), FAULTS)
async def test_every_fault_in_plain_words(
    server: E2BServer,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    path: str,
    status: int,
    kind: type[MdmemoryError],
    words: str,
) -> None:
    """A fault that stays is one of our errors, in plain words, and no key or token stands in it, in a repr or in the log."""
    monkeypatch.setattr("mdmemory.backends.e2b._WAITS_S", (0.01, 0.01))
    caplog.set_level(logging.DEBUG)
    shell = new_shell()
    if path != "/sandboxes":
        await run(shell, "true")
    server.fail(path, status, times=99, message=f"secret {server.api_key}")
    with pytest.raises(kind, match=words) as caught:
        await run(shell, "true", LARGE)
    said = f"{caught.value}{caught.value!r}{shell!r}{vars(shell)}{E2BBackend(memory='m', api_key=server.api_key)!r}{caplog.text}"
    assert server.api_key not in said and not any(sandbox.token in said for sandbox in server.sandboxes.values())


@pytest.mark.parametrize("path", ["/files", START])
async def test_too_many_requests_are_waited_out(
    server: E2BServer, shell: E2BShell, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """A 429 is tried again after a while, some times; nothing was done meanwhile."""
    monkeypatch.setattr("mdmemory.backends.e2b._WAITS_S", (0.05, 0.1))
    server.fail(path, 429, times=2)
    start = time.monotonic()
    assert (await run(shell, "echo x >> file; cat file", LARGE)).stdout == b"x\n"
    assert time.monotonic() - start >= 0.15


async def test_an_unreachable_server(server: E2BServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a network the error says that the connection broke."""
    monkeypatch.setenv("E2B_API_URL", "http://127.0.0.1:9")
    with pytest.raises(Unavailable, match="connection"):
        await run(new_shell(), "true")


async def test_no_key(server: E2BServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key the error says where to put one."""
    monkeypatch.delenv("E2B_API_KEY")
    with pytest.raises(ConfigError, match="Set E2B_API_KEY"):
        await run(new_shell(), "true")
