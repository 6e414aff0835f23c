"""MCP for many users over several workers: everyone gets their own memory, whichever worker answers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from command import note, write
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_clients import MODES, called, over_http, refused, text_of
from service_server import HELLO, JSON, Service, ask, call, running, until

pytestmark = pytest.mark.xdist_group("service-mcp")
SECRETS = {"alice": "ALICE-ONLY", "bob": "BOB-ONLY"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Two workers, and a memory for each of two users."""
    home = tmp_path_factory.mktemp("service")
    for user, secret in SECRETS.items():
        write(home / f"memories/{user}/user/home.md", note("Home", "where I live", f"{secret} is what {user} knows."))
    with running(home, "--per-minute", "100000", "--at-once", "64") as service:
        yield service


@pytest.mark.parametrize("mode", MODES)
async def test_everyone_works_in_their_own_memory(service: Service, mode: str) -> None:
    """Two official clients at once read, search, write and edit, and neither meets anything of the other."""
    alice, bob = service.tokens["alice"], service.tokens["bob"]
    async with over_http(service.mcp, mode, token=alice) as one, over_http(service.mcp, mode, token=bob) as other:
        for n in range(6):
            pair = ((one, "alice", "bob"), (other, "bob", "alice"))
            for client, own, foreign in pair:
                text = await called(client, "Read", file_path="user/home.md")
                assert SECRETS[own] in text and SECRETS[foreign] not in text
            results = await asyncio.gather(*(called(client, "Search", keywords=["alice", "bob"]) for client, _, _ in pair))
            for text, (_, own, foreign) in zip(results, pair, strict=True):
                assert own in text and foreign not in text, text
            for client, own, _ in pair:
                await called(client, "Write", file_path=f"user/{mode}{n}.md", content=note(f"N{n}", f"of {own}"))
    for own, foreign in (("alice", "bob"), ("bob", "alice")):
        written = sorted((service.folder(own) / "user").glob(f"{mode}*.md"))
        assert len(written) == 6 and all(f"of {own}" in path.read_text() for path in written)
        assert SECRETS[foreign] not in "".join(path.read_text(errors="replace") for path in service.folder(own).rglob("*.md"))


@pytest.mark.parametrize("mode", MODES)
async def test_a_file_is_written_as_it_was_read_whichever_worker_answers(service: Service, mode: str) -> None:
    """What was read on one worker is replaced on another by the etag that Read gave; an old etag is refused."""
    async with over_http(service.mcp, mode, token=service.tokens["alice"]) as client:
        path = f"user/etag-{mode}.md"
        await called(client, "Write", file_path=path, content=note("Etag", "before"))
        for n in range(8):
            etag = (await called(client, "Read", file_path=path)).rpartition("(etag ")[2].rstrip(")")
            await called(client, "Write", file_path=path, content=note("Etag", f"round {n}"), etag=etag)
            await refused(client, "Write", file_path=path, content=note("Etag", "stale"), etag=etag)
        assert "round 7" in (service.folder("alice") / path).read_text()


def test_both_workers_answer(service: Service) -> None:
    """Connections reach all processes, and what one of them wrote is there for the next request, wherever it goes."""
    workers: set[int] = set()
    for n in range(300):
        call(
            service,
            service.tokens["bob"],
            "Write",
            file_path=f"user/n{n}.md",
            content=note(f"N{n}", "x"),
        )
        assert f"N{n}" in call(service, service.tokens["bob"], "Read", file_path=f"user/n{n}.md")
        workers = {line["worker"] for line in service.log(user="bob", route="/mcp")}
        if n >= 3 and len(workers) == 2:
            break
    assert workers == service.workers()


@pytest.mark.parametrize(
    "path",
    [
        *("../bob/user/home.md", "../../memories/bob/user/home.md", "/etc/passwd", "{bob}/user/home.md"),
        *("user/../../bob/user/home.md", "..\\bob\\user\\home.md", "%2e%2e/bob/user/home.md"),
    ],
)
def test_no_path_leads_to_another_user(service: Service, path: str) -> None:
    """Paths out of the folder, and the whole path of another's file, bring nothing of it."""
    path = path.replace("{bob}", str(service.folder("bob")))
    for answer in (
        call(service, service.tokens["alice"], "Read", file_path=path),
        call(service, service.tokens["alice"], "Write", file_path=path, content=note("Mine", "now")),
        ask(service, service.tokens["alice"], "resources/read", {"uri": f"mdmemory:///{path}"}).text,
    ):
        assert SECRETS["bob"] not in answer and (str(service.home) in path or str(service.home) not in answer)
    assert SECRETS["bob"] in (service.folder("bob") / "user/home.md").read_text()


def test_nothing_but_the_token_says_who_it_is(service: Service) -> None:
    """Headers, queries, cookies and session ids that name another user change nothing."""
    forged = {"x-user": "bob", "x-forwarded-user": "bob", "mcp-session-id": "bob", "cookie": "user=bob"}
    params = {"name": "Read", "arguments": {"file_path": "user/home.md"}, "_meta": {"user": "bob"}}
    with httpx2.Client(trust_env=False, timeout=30) as client:
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {**JSON, "authorization": f"Bearer {service.tokens['alice']}", **forged}
        text = client.post(f"{service.mcp}?user=bob&token={service.tokens['bob']}", json=body, headers=headers).text
    assert SECRETS["alice"] in text and SECRETS["bob"] not in text
    assert ask(service, service.tokens["alice"], "initialize", HELLO).headers.get("mcp-session-id") is None


@pytest.mark.parametrize(
    ("given", "status"),
    [
        *((None, 401), ("Bearer", 401), ("Bearer x", 401), ("Bearer {alice}x", 401), ("Basic {alice}", 401)),
        *(("Bearer {alice}, Bearer {bob}", 401), ("bearer {alice}", 200)),
    ],
)
def test_without_a_token_nobody_is_let_in(service: Service, given: str | None, status: int) -> None:
    """Only a whole token of the file opens the door; a cookie of the page does not."""
    sent = {**JSON, **({"authorization": given.format(**service.tokens)} if given else {})}
    with httpx2.Client(trust_env=False) as client:
        client.get(f"{service.url}/?token={service.tokens['alice']}")
        assert client.cookies
        answer = client.post(service.mcp, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}, headers=sent)
    assert answer.status_code == status and ("www-authenticate" in answer.headers) == (status == 401)


@pytest.mark.parametrize("headers", [{"host": "evil.example"}, {"origin": "https://evil.example"}])
def test_the_pages_of_strangers_are_not_answered(service: Service, headers: dict[str, str]) -> None:
    """A page of another site gets nothing, even with a token."""
    assert ask(service, service.tokens["alice"], **headers).status_code in (403, 421)


def test_there_are_no_sessions(service: Service) -> None:
    """A stream of its own is not offered up to 2025: GET and DELETE say so, as the protocol has it."""
    with httpx2.Client(trust_env=False, headers={"authorization": f"Bearer {service.tokens['alice']}"}) as client:
        for method in ("GET", "DELETE"):
            answer = client.request(method, service.mcp, headers={"accept": "text/event-stream", "mcp-session-id": "x"})
            assert answer.status_code == 405 and answer.headers["allow"] == "POST"


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_who_listens_hears_what_another_process_did(service: Service) -> None:
    """From 2026 on a client listens, on whichever worker; up to 2025 it is told how, and not that something is broken."""
    uri = "mdmemory:///user/heard.md"
    write(service.folder("alice") / "user/heard.md", note("Heard", "before"))
    async with (
        over_http(service.mcp, token=service.tokens["alice"]) as client,
        client.listen(resource_subscriptions=[uri]) as changes,
        asyncio.timeout(30),
    ):
        write(service.folder("alice") / "user/heard.md", note("Heard", "after"))
        assert await anext(aiter(changes)) == ResourceUpdated(uri=uri)
    async with over_http(service.mcp, "legacy", token=service.tokens["alice"]) as client:
        with pytest.raises(MCPError, match="subscriptions/listen"):
            await client.subscribe_resource(uri)
        await client.unsubscribe_resource(uri)


@pytest.mark.slow
async def test_a_revoked_token_ends_what_it_began(tmp_path: Path) -> None:
    """Taken out of the file, a token opens nothing on any worker within seconds, and its open stream ends."""
    with running(tmp_path) as service:
        token, kept = service.token("alice"), service.tokens["alice"]
        until(lambda: {ask(service, token).status_code for _ in range(20)} == {200})  # by each worker
        async with over_http(service.mcp, token=token) as client, client.listen(resources_list_changed=True) as changes:
            file = service.home / "tokens"
            file.write_text("".join(line for line in file.read_text().splitlines(keepends=True) if "alice" not in line))
            for _ in range(2):
                until(lambda: {ask(service, token).status_code for _ in range(6)} == {401}, 5)
            async with asyncio.timeout(10):
                await _end_of(changes)
        assert ask(service, kept).status_code == 401 and ask(service, service.tokens["bob"]).status_code == 200


async def _end_of(changes: Any) -> None:
    try:
        async for _ in changes:
            pass
    except Exception:  # the SDK says in several ways that a stream broke off
        return


@pytest.mark.slow
async def test_a_token_that_only_reads_changes_nothing(tmp_path: Path) -> None:
    """It has no tools that write, and those that it calls all the same are refused; the other token of the user writes."""
    write(tmp_path / "memories/alice/user/home.md", note("Home", "where I live"))
    with running(tmp_path, users={"alice": ("--read-only",)}) as service:
        async with over_http(service.mcp, token=service.tokens["alice"]) as client:
            assert {tool.name for tool in (await client.list_tools()).tools} == {"Read", "Search", "recall"}
            assert "Home" in await called(client, "Read", file_path="user/home.md")
            result = await client.call_tool("Write", {"file_path": "user/new.md", "content": note("New", "x")})
            assert result.is_error, text_of(result)
        writer = service.token("alice")
        arguments = {"name": "Write", "arguments": {"file_path": "user/new.md", "content": note("New", "x")}}
        until(lambda: ask(service, writer, "tools/call", arguments).status_code == 200)  # whichever worker answers knows it by now
    assert (tmp_path / "memories/alice/user/new.md").exists()
