"""The server that stands in for E2B, as the real SDK sees it: what a real sandbox was seen to do, it does."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from e2b import AsyncSandbox, SandboxQuery
from e2b.exceptions import (
    AuthenticationException,
    FileNotFoundException,
    NotEnoughSpaceException,
    RateLimitException,
    SandboxException,
    SandboxNotFoundException,
    SandboxNotRunningException,
    SandboxUnreachableException,
    ServiceBusyException,
    TimeoutException,
)
from e2b.sandbox.commands.command_handle import CommandExitException
from e2b_server import START, E2BServer


async def test_commands_run_in_the_home_of_the_sandbox(server: E2BServer) -> None:
    """A command runs under a login shell in the sandbox's own home, and its outputs and exit code come back."""
    sandbox = await AsyncSandbox.create("base")
    result = await sandbox.commands.run(
        "cd /home/user && echo hello > a.txt; cat ~/a.txt; echo oops >&2; shopt -q login_shell && pwd"
    )
    assert result.stdout == f"hello\n{server.sandbox.home}\n" and result.stderr == "oops\n"
    with pytest.raises(CommandExitException) as caught:
        await sandbox.commands.run("exit 7")
    assert caught.value.exit_code == 7


async def test_files_are_written_and_read(server: E2BServer) -> None:
    """Files of any bytes go in as multipart and as an octet stream, and come out as they were; a missing one is not found."""
    sandbox = await AsyncSandbox.create("base")
    data = bytes(range(256)) * 5 + b"\r\n--\r\n\n"
    for stream in (False, True):
        await sandbox.files.write("a/b.bin", data, use_octet_stream=stream)
        assert bytes(await sandbox.files.read("/home/user/a/b.bin", format="bytes")) == data
    with pytest.raises(FileNotFoundException):
        await sandbox.files.read("no")


async def test_sandboxes_are_listed_by_metadata(server: E2BServer) -> None:
    """A sandbox is found by its metadata, running or paused, and not when it is killed."""
    one = await AsyncSandbox.create("base", metadata={"memory": "a & b"})
    await AsyncSandbox.create("base", metadata={"memory": "c"})

    async def found() -> list[str]:
        listed = await AsyncSandbox.list(SandboxQuery(metadata={"memory": "a & b"})).next_items()
        return [sandbox.sandbox_id for sandbox in listed]

    assert await found() == [one.sandbox_id]
    await one.pause()
    assert await found() == [one.sandbox_id]
    await one.kill()
    assert await found() == []


@pytest.mark.parametrize("action", ["pause", "kill"])
async def test_the_end_of_the_timeout(server: E2BServer, action: Any) -> None:
    """When its time is over a sandbox is paused or killed as it was told; only a paused one can be connected to again."""
    sandbox = await AsyncSandbox.create("base", timeout=60, lifecycle={"on_timeout": {"action": action}})
    await sandbox.files.write("a", "kept")
    server.sandbox.end_at = 0
    with pytest.raises(SandboxNotRunningException):
        await sandbox.commands.run("true")
    if action == "kill":
        with pytest.raises(SandboxNotFoundException):
            await AsyncSandbox.connect(sandbox.sandbox_id)
    else:
        again = await AsyncSandbox.connect(sandbox.sandbox_id, timeout=60)
        assert await again.files.read("a") == "kept"


async def test_a_command_goes_on_after_a_pause(server: E2BServer) -> None:
    """A pause breaks the stream of a running command; once the sandbox is resumed, the command goes on."""
    sandbox = await AsyncSandbox.create("base")
    running = await sandbox.commands.run("until [ -e go ]; do sleep 0.01; done; echo done > b", background=True)
    await sandbox.pause()
    with pytest.raises(SandboxNotRunningException):
        await running.wait()
    await sandbox.connect()
    await sandbox.files.write("go", "")
    for _ in range(100):
        if (server.sandbox.home / "b").exists():
            return
        await asyncio.sleep(0.05)
    pytest.fail("the command did not go on")


async def test_a_command_is_killed(server: E2BServer) -> None:
    """A command ends by its time-out, and by a kill."""
    sandbox = await AsyncSandbox.create("base")
    with pytest.raises(TimeoutException):
        await sandbox.commands.run("sleep 60", timeout=0.2)
    running = await sandbox.commands.run("sleep 60", background=True)
    assert await running.kill()
    with pytest.raises(CommandExitException):
        await running.wait()


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("/sandboxes", 401, AuthenticationException),
        ("/sandboxes", 429, RateLimitException),
        ("/sandboxes", 503, ServiceBusyException),
        ("/files", 401, AuthenticationException),
        ("/files", 429, RateLimitException),
        ("/files", 502, SandboxUnreachableException),
        ("/files", 503, SandboxException),
        ("/files", 507, NotEnoughSpaceException),
        (START, 401, AuthenticationException),
        (START, 429, RateLimitException),
        (START, 503, SandboxUnreachableException),
    ],
)
async def test_faults(server: E2BServer, path: str, status: int, error: type[Exception]) -> None:
    """Each injected fault is what the SDK raises for it."""
    sandbox = await AsyncSandbox.create("base")
    server.fail(path, status)
    with pytest.raises(error):
        match path:
            case "/sandboxes":
                await AsyncSandbox.create("base", retries=0)
            case "/files":
                await sandbox.files.write("a", "b")
            case _:
                await sandbox.commands.run("true")
    assert not [fault for fault in server.faults if fault.times]


async def test_a_lost_answer(server: E2BServer) -> None:
    """With status 0 a request is carried out, and its answer never comes."""
    sandbox = await AsyncSandbox.create("base")
    server.fail(START, 0)
    with pytest.raises(Exception, match=r"connection|sending"):
        await sandbox.commands.run("echo done > a")
    assert (server.sandbox.home / "a").read_text() == "done\n"


async def test_keys_are_checked(server: E2BServer) -> None:
    """A wrong key is refused by the control plane."""
    with pytest.raises(AuthenticationException):
        await AsyncSandbox.create("base", api_key="e2b_wrong")
    assert server.sandboxes == {}


async def test_requests_are_noted_and_slowed(server: E2BServer) -> None:
    """Every request is noted, and takes at least as long as the latency says."""
    sandbox = await AsyncSandbox.create("base")
    server.requests.clear()
    server.latency_s = 0.1
    start = time.monotonic()
    await sandbox.commands.run("true")
    assert time.monotonic() - start > 0.1 and server.requests == [f"POST {START}"]
