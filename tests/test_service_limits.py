"""Limits per user: nobody takes more than their part, and nobody waits for who does."""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import pytest
from command import note, write
from mcp_clients import over_http
from service_server import HELLO, JSON, Service, ask, call, running, until

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("service-limits")]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Two workers, and users with bounds of their own."""
    home = tmp_path_factory.mktemp("limits")
    users = {"few": ("--per-minute", "40"), "alice": ("--per-minute", "100000", "--at-once", "2"), "bob": (), "carol": ()}
    for user in users:
        for n in range(30):
            write(home / f"memories/{user}/user/n{n}.md", note(f"Note {n}", f"number {n} of {user}", f"harbour {n}"))
    with running(home, "--per-minute", "100000", users=users) as service:
        lines = (home / "tokens").read_text().replace(" carol\n", " results=3 answer-tokens=60 streams=1 body-bytes=2000 carol\n")
        (home / "tokens").write_text(lines)
        until(lambda: {ask(service, service.tokens["carol"], params={"x": "x" * 3000}).status_code for _ in range(6)} == {413})
        yield service


def test_requests_per_minute_are_counted_over_all_workers(service: Service) -> None:
    """A quarter of a minute's requests come through, however they are spread; then it is said when to come again."""
    answers = [ask(service, service.tokens["few"]) for _ in range(25)]
    good = [answer for answer in answers if answer.status_code == 200]
    late = [answer for answer in answers if answer.status_code == 429]
    assert len(good) + len(late) == 25 and 10 <= len(good) <= 10 + 25 * 40 / 60
    assert answers[9].status_code == 200 and all(1 <= int(answer.headers["retry-after"]) <= 2 for answer in late)
    assert ask(service, service.tokens["bob"]).status_code == 200
    assert service.number("mdmemory_refused_total", limit="per_minute") == len(late)


def test_no_more_run_at_once_than_may(service: Service) -> None:
    """Of forty requests at the same time, two run at any time over all workers; the rest are told to come again at once."""
    statuses: list[int] = []
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "recall", "arguments": {"query": "harbour"}}}
    headers = {**JSON, "authorization": f"Bearer {service.tokens['alice']}"}

    def flood() -> None:
        for _ in range(5):
            with httpx2.Client(trust_env=False, timeout=30) as client:
                statuses.append(client.post(service.mcp, json=body, headers=headers).status_code)

    _together(flood, 12)
    assert len(statuses) == 60 and set(statuses) == {200, 429}
    assert ask(service, service.tokens["alice"]).status_code == 200


def test_a_flood_of_one_user_does_not_slow_another(service: Service) -> None:
    """While alice sends all that she can, each of bob's requests waits for no more of hers than may run at once."""
    over = threading.Event()
    headers = {**JSON, "authorization": f"Bearer {service.tokens['alice']}"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "recall", "arguments": {"query": "harbour"}}}

    def flood() -> None:
        with httpx2.Client(trust_env=False, timeout=30) as client:
            while not over.is_set():
                client.post(service.mcp, json=body, headers=headers)

    threads = [threading.Thread(target=flood) for _ in range(32)]
    for thread in threads:
        thread.start()
    try:
        until(lambda: len(service.log(user="alice", status=429)) > 50)
        for _ in range(30):
            assert ask(service, service.tokens["bob"]).status_code == 200
    finally:
        over.set()
        for thread in threads:
            thread.join()
    hers = [_span(line)[1] for line in service.log(user="alice", status=200)]
    waited = []
    for line in service.log(user="bob", status=200)[-30:]:
        begun, ended = _span(line)
        waited.append(sum(begun <= end <= ended for end in hers))
    print("alice's requests served during each of bob's:", waited)
    assert statistics.mean(waited) <= 1.5  # without that limit there are more than two


async def test_what_a_search_brings_is_bounded(service: Service) -> None:
    """However much is asked for, in whatever form or not at all, a user gets what is theirs; others get more."""
    async with over_http(service.mcp, token=service.tokens["carol"]) as client:
        result = await client.call_tool("Search", {"keywords": ["harbour"], "limit": 1000})
        assert len((result.structured_content or {})["files"]) == 3
        for asked in ({"max_tokens": 100_000}, {"max_tokens": "100000"}, {}):
            result = await client.call_tool("recall", {"query": "harbour", **asked})
            assert sum(len(passage["text"]) for passage in (result.structured_content or {})["passages"]) < 60 * 5
    for limit in (1000, 1000.0, "1000", "1000.0", None):
        assert call(service, service.tokens["carol"], "Search", keywords=["harbour"], limit=limit).count("number") == 3
    text = call(service, service.tokens["bob"], "Search", keywords=["harbour"], limit=20)
    assert text.count("number") == 20


@pytest.mark.parametrize("path", ["/mcp", "/new"])
def test_a_body_is_bounded(service: Service, path: str) -> None:
    """More than a user may send is refused, whether it says its length or not, and before it is read whole."""
    token = service.tokens["carol"]
    with httpx2.Client(trust_env=False, base_url=service.url, headers={"origin": service.url}) as client:
        client.get(f"/?token={token}")
        headers = {**JSON, "authorization": f"Bearer {token}"} if path == "/mcp" else {}
        assert client.post(path, content=b"x" * 2001, headers=headers).status_code == 413
        chunks = (b"x" * 500 for _ in range(5))
        assert client.post(path, content=chunks, headers=headers).status_code == 413
        assert client.post(path, content=b"x" * 500, headers=headers).status_code in (400, 415)


def test_one_request_is_one_call(service: Service) -> None:
    """Several calls in one body, which would count as one, are not taken, in neither generation of the protocol."""
    call_one = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    for headers in ({}, {"mcp-protocol-version": "2025-03-26"}, {"mcp-protocol-version": "2026-07-28"}):
        with httpx2.Client(trust_env=False) as client:
            sent = {**JSON, "authorization": f"Bearer {service.tokens['bob']}", **headers}
            assert client.post(service.mcp, json=[call_one, {**call_one, "id": 2}], headers=sent).status_code == 400


def test_no_call_counts_as_a_stream(service: Service) -> None:
    """A header of a later protocol, which older ones don't read, makes no request one that is not counted among those at once."""
    before = service.number("mdmemory_request_seconds_count", route="/mcp")
    for version in ({}, {"mcp_protocol_version": "2025-06-18"}):
        assert ask(service, service.tokens["bob"], mcp_method="subscriptions/listen", **version).status_code == 200
    assert service.number("mdmemory_request_seconds_count", route="/mcp") == before + 2


def test_streams_are_counted_apart(service: Service) -> None:
    """An open page leaves a user's requests alone, a second one is refused to who may have one, a closed one is no more."""
    with httpx2.Client(trust_env=False, base_url=service.url) as client:
        client.get(f"/?token={service.tokens['carol']}")
        with client.stream("GET", "/changes") as stream:
            lines = stream.iter_lines()  # which closes the stream when it is let go
            assert next(lines) == "retry: 1000"
            assert client.get("/changes").status_code == 429 and client.get("/").status_code == 200
        until(lambda: _opened(client)).close()


def test_a_memory_that_can_not_be_opened_is_not_the_users_fault(tmp_path: Path) -> None:
    """A file where the folder should be is told as what to try again later; the others are served, and it is logged."""
    (tmp_path / "memories").mkdir()
    (tmp_path / "memories/alice").write_text("a file")
    with running(tmp_path) as service:
        answer = ask(service, service.tokens["alice"], "tools/call", {"name": "Read", "arguments": {"file_path": "."}})
        assert str(tmp_path) not in answer.text
        assert ask(service, service.tokens["bob"], "initialize", HELLO).status_code == 200


def _span(line: dict[str, Any]) -> tuple[float, float]:
    """When a request began and ended, in seconds."""
    ended = datetime.fromisoformat(line["time"]).timestamp()
    return ended - line["duration_ms"] / 1000, ended


def _opened(client: httpx2.Client) -> httpx2.Response | None:
    stream = client.send(client.build_request("GET", "/changes"), stream=True)
    if stream.status_code == 200:
        return stream
    stream.close()
    return None


def _together(work: Callable[[], None], times: int) -> None:
    threads = [threading.Thread(target=work) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
