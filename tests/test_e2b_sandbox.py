"""Which sandbox a memory is in, and what becomes of it."""

from __future__ import annotations

import asyncio

import pytest
from e2b_server import START, E2BServer
from shells import new_shell, run

from mdmemory.backends.e2b import E2BBackend, E2BShell
from mdmemory.backends.e2b_sandbox import settings_of
from mdmemory.errors import ConfigError, Unavailable


async def test_the_sandbox_is_found_again(server: E2BServer, shell: E2BShell) -> None:
    """A client that comes later, or another process, gets the sandbox of the same name with what is in it, and no other."""
    await run(shell, "echo hello > file")
    again, other = new_shell(), new_shell("other")
    assert (await run(again, "cat file")).stdout == b"hello\n"
    assert (await run(other, "cat file")).code == 1
    assert [sandbox.metadata for sandbox in server.sandboxes.values()] == [{"mdmemory": "m"}, {"mdmemory": "other"}]


async def test_a_sandbox_is_taken_by_its_id(server: E2BServer, shell: E2BShell) -> None:
    """With an id that sandbox is used, whatever its name."""
    await run(shell, "echo hello > file")
    assert (await run(new_shell("", server.sandbox.id), "cat file")).stdout == b"hello\n"
    assert len(server.sandboxes) == 1


async def test_two_sandboxes_of_one_name_are_not_guessed_between(server: E2BServer, shell: E2BShell) -> None:
    """When two sandboxes have the name, the error names both and says how to choose."""
    second = server.create({"templateID": "base", "metadata": {"mdmemory": "m"}})
    with pytest.raises(ConfigError, match=f"{second.id}.*sandbox=ID"):
        await run(new_shell(), "true")


async def test_processes_that_begin_together_share_one_sandbox(server: E2BServer) -> None:
    """Ten clients that all find no sandbox end up in the same one; the others made meanwhile are gone."""
    shells = [new_shell() for _ in range(10)]
    server.latency_s = 0.05
    await asyncio.gather(*(run(shell, f"echo {n} >> file") for n, shell in enumerate(shells)))
    assert sorted((server.sandbox.home / "file").read_text().split()) == [str(n) for n in range(10)]


async def test_a_new_sandbox_pauses_and_has_no_internet(server: E2BServer, shell: E2BShell) -> None:
    """A sandbox that we make is paused, not killed, when its time is over, and can't reach out."""
    assert server.sandbox.auto_pause and not server.sandbox.internet


async def test_a_killed_sandbox_is_said_to_be_gone(server: E2BServer, shell: E2BShell) -> None:
    """A sandbox killed by someone else is made anew, empty, when it goes by its name; by its id it can't be."""
    by_id = new_shell("", server.sandbox.id)
    await run(by_id, "true")
    server.sandboxes.pop(server.sandbox.id).kill()
    with pytest.raises(Unavailable, match="not running"):
        await run(by_id, "true")
    assert (await run(shell, "ls")).stdout == b""


async def test_only_kill_kills(server: E2BServer) -> None:
    """A pause writes to the disk first, closing leaves the sandbox as it is, and nothing but `kill` ends it."""
    backend = E2BBackend(memory="m")
    await backend.pause()
    assert server.requests == []
    await backend.scan()
    server.requests.clear()
    await backend.pause()
    assert server.sandbox.state == "paused"
    assert server.requests == [f"POST {START}", f"POST /sandboxes/{server.sandbox.id}/pause"]
    await backend.close()
    assert server.sandbox.state == "paused"
    await E2BBackend(memory="m").kill()
    assert server.sandboxes == {}


async def test_a_pause_of_a_paused_sandbox(server: E2BServer) -> None:
    """A pause of a sandbox that E2B has paused meanwhile leaves it so."""
    backend = E2BBackend(memory="m")
    await backend.scan()
    server.sandbox.end_at = 0
    await backend.pause()
    assert server.sandbox.state == "paused"


async def test_nothing_happens_before_the_first_call(server: E2BServer) -> None:
    """Making a backend asks for nothing."""
    await E2BBackend(memory="m").close()
    assert server.requests == []


def test_locations() -> None:
    """A URL names the template, the memory and what else is wanted; anything else is refused with words for it."""
    assert settings_of("e2b://team/my-template:v2?memory=n&timeout=60&root=/data/m&sandbox=i1") == {
        "template": "team/my-template:v2",
        "memory": "n",
        "timeout_s": 60,
        "root": "/data/m",
        "sandbox_id": "i1",
    }
    assert settings_of("e2b://?memory=n") == {"template": "base", "memory": "n"}
    for url, words in (
        ("e2b://base", "e2b://base"),
        ("e2b://a?memory=n&timeout=1h", "seconds"),
        ("e2b://a?api_key=x", "E2B_API_KEY"),
    ):
        with pytest.raises(ConfigError, match=words):
            E2BBackend.from_url(url)
