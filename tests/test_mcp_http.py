"""The MCP server over HTTP: who is let in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
from command import mdmemory, write
from mcp_clients import over_http, serving

from mdmemory.mcp_server.http import MAX_SESSIONS

pytestmark = pytest.mark.xdist_group("mcp-http")
TOKEN = "long-and-random"
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


def post(url: str, headers: Mapping[str, Any] = {}, method: str = "initialize", params: Any = HELLO) -> httpx2.Response:
    """Ask the server, as any program can."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    with httpx2.Client(trust_env=False, verify=False, timeout=30) as client:
        return client.post(url, json=body, headers={**JSON, **headers})


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server for everyone on this machine."""
    with serving(tmp_path_factory.mktemp("http") / "memory") as url:
        yield url


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server that wants a token, which its clients also reach as notes.example.org."""
    options = ("--allow-host", "notes.example.org")
    with serving(tmp_path_factory.mktemp("http") / "memory", *options, MDMEMORY_TOKEN=TOKEN) as url:
        yield url


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": "localhost:9"}, 200),
        ({"host": "evil.example"}, 421),
        ({"host": "evil.example:8765"}, 421),
        ({"host": "127.0.0.1.evil.example"}, 421),
        ({"host": "notes.example.org"}, 421),
        ({"origin": "http://localhost:3000"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://localhost.evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"mcp-protocol-version": "2026-07-28", "host": "evil.example"}, 421),
        ({"mcp-protocol-version": "2026-07-28", "origin": "https://evil.example"}, 403),
    ],
)
def test_the_pages_of_strangers_are_not_answered(url: str, headers: Mapping[str, str], status: int) -> None:
    """V8: a request with the Host or the Origin of another site is refused, in both generations of the protocol."""
    assert post(url, headers).status_code == status


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (f"Bearer {TOKEN}", 200),
        (None, 401),
        ("Bearer", 401),
        (f"Bearer {TOKEN}x", 401),
        (f"bearer {TOKEN}", 200),
        (f"Bearer  {TOKEN}", 401),
        (f"Basic {TOKEN}", 401),
        ("Bearer \u00fc", 401),
    ],
)
def test_without_the_token_nobody_is_let_in(guarded: str, given: str | None, status: int) -> None:
    """V8: only the token itself opens the door; what else is asked makes no difference."""
    headers = {} if given is None else {"authorization": given.encode("latin-1")}
    answer = post(guarded, headers)
    assert answer.status_code == status and (status == 200 or answer.headers["www-authenticate"] == "Bearer")
    if status == 401:
        assert post(guarded, {**headers, "host": "evil.example"}).status_code == 401
        assert post(guarded.removesuffix("/mcp"), headers).status_code == 401


async def test_a_client_with_the_token(guarded: str) -> None:
    """A client that sends it as the SDK does is served, also under the further name."""
    async with over_http(guarded, token=TOKEN) as client:
        assert (await client.list_tools()).tools
    token = {"authorization": f"Bearer {TOKEN}"}
    assert post(guarded, {**token, "host": "notes.example.org"}).status_code == 200
    assert post(guarded, {**token, "origin": "https://notes.example.org"}).status_code == 200
    assert post(guarded, {**token, "host": "other.example.org"}).status_code == 421


def test_sessions_are_limited(tmp_path: Path) -> None:
    """V8: a client that opens one session after another is stopped, and others that have one are still served."""
    with serving(tmp_path / "memory") as url:
        answers = [post(url) for _ in range(MAX_SESSIONS + 2)]
        assert [answer.status_code for answer in answers] == [200] * MAX_SESSIONS + [503] * 2
        session = {"mcp-session-id": answers[0].headers["mcp-session-id"], "mcp-protocol-version": "2025-06-18"}
        assert post(url, session, "tools/list", {}).status_code == 200


def test_a_large_request_is_refused(url: str) -> None:
    """A body of more than 4 MiB is not taken in."""
    assert post(url, params={"x": "y" * 5_000_000}).status_code == 413


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--http", "0.0.0.0:0"], "a token is needed"),
        (["--http", "192.0.2.7:0"], "a token is needed"),
        (["--http", "0.0.0.0:0", "--token", TOKEN], "--allow-host"),
        (["--http", "192.0.2.7:0", "--token", TOKEN], "can't be listened on"),
        (["--http", "notes.invalid:0", "--token", TOKEN], "can't be listened on"),
        (["--http", "x"], "a port or HOST:PORT"),
        (["--http", "70000"], "a port or HOST:PORT"),
        (["--config", "nosuch"], "claude-code, claude-desktop, codex, cursor"),
    ],
)
def test_what_is_not_served(arguments: list[str], words: str, tmp_path: Path) -> None:
    """V8: other machines are served with a token only, and what can't be is said in one line."""
    done = mdmemory("mcp", "memory", *arguments, cwd=tmp_path)
    assert done.returncode and words in done.stderr and done.stdout == "" and not (tmp_path / "memory").exists()


def test_a_port_in_use_and_a_file_in_place_of_the_folder(url: str, tmp_path: Path) -> None:
    """Each is said in one line."""
    port = url.rpartition(":")[2].removesuffix("/mcp")
    assert "choose another port" in mdmemory("mcp", "memory", "--http", port, cwd=tmp_path).stderr.lower()
    write(tmp_path / "memory", "a file")
    assert "is not a folder" in mdmemory("mcp", "memory", cwd=tmp_path).stderr
