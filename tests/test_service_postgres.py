"""The service on a PostgreSQL server: the memories of all users in one database, and workers that share it."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import httpx2
import psycopg
import pytest
from command import note
from database import Server, as_admin
from mcp_clients import called, over_http
from service_server import ask, call, running, until
from web_server import Visitor

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("service-postgres")]


async def test_everyone_works_in_their_own_memory(tmp_path: Path, database: str) -> None:
    """Over MCP and in the browser, on whichever worker, each finds what they saved, and nothing of the other."""
    with running(tmp_path, location=f"{database}?folder=users/{{user}}") as service:
        for user in ("alice", "bob"):
            async with over_http(service.mcp, token=service.tokens[user]) as client:
                await called(client, "Write", file_path="user/home.md", content=note("Home", f"of {user}", f"{user} lives here"))
        for _ in range(4):
            for own, foreign in (("alice", "bob"), ("bob", "alice")):
                text = call(service, service.tokens[own], "Read", file_path="user/home.md")
                assert f"of {own}" in text and foreign not in text
                text = call(service, service.tokens[own], "Search", keywords=["alice", "bob"])
                assert own in text and foreign not in text
        visitor = Visitor(f"{service.url}/?token={service.tokens['alice']}")
        assert visitor.edit("user/home.md", body="edited by a person").status_code == 303
        visitor.close()
        assert "edited by a person" in call(service, service.tokens["alice"], "Read", file_path="user/home.md")
        assert service.number("mdmemory_storage_seconds_count", verb="commit") >= 3
    with psycopg.connect(as_admin(database)) as connection:
        names = {row[0] for row in connection.execute("SELECT name FROM mdmemory.folder")}
    assert names == {"users/alice", "users/bob"}, "looking for health makes none"


def test_a_killed_worker_loses_nothing_that_was_answered(tmp_path: Path, database: str) -> None:
    """kill -9 in the middle of writes: the other worker goes on, another comes, and all that was answered is there."""
    answered: list[str] = []
    over = threading.Event()
    with running(tmp_path, "--per-minute", "100000", location=f"{database}?folder=users/{{user}}") as service:

        def work(user: str) -> None:
            n = 0
            while not over.is_set():
                n += 1
                try:
                    call(service, service.tokens[user], "Write", file_path=f"user/n{n}.md", content=note(f"N{n}", "x"))
                except (httpx2.TransportError, AssertionError):
                    continue
                answered.append(f"{user} user/n{n}.md")

        threads = [threading.Thread(target=work, args=(user,)) for user in ("alice", "bob")]
        for thread in threads:
            thread.start()
        until(lambda: len(answered) > 10)
        time.sleep(2)
        before = service.workers()
        os.kill(before.pop(), signal.SIGKILL)
        at = len(answered)
        until(lambda: len(answered) > at + 20 and len(service.workers()) == 2)
        over.set()
        for thread in threads:
            thread.join()
        for line in answered:
            user, path = line.split()
            assert "N" in call(service, service.tokens[user], "Read", file_path=path)


def test_health_follows_the_database(tmp_path: Path) -> None:
    """While the server is away the service is alive and not ready, and users are told to come again; then it is as before."""
    server = Server()
    try:
        with running(tmp_path, location=f"{server.new_database()}?folder=users/{{user}}") as service:
            health = f"{service.url}/health"
            call(service, service.tokens["alice"], "Write", file_path="user/home.md", content=note("Home", "where I live"))
            assert httpx2.get(health, trust_env=False).status_code == 200
            server.kill()
            until(lambda: {httpx2.get(health, trust_env=False, timeout=20).status_code for _ in range(4)} == {503}, 60)
            assert httpx2.get(f"{health}/live", trust_env=False).status_code == 200
            assert service.number("mdmemory_storage_unavailable_total", verb="scan") >= 1
            assert "database" not in httpx2.get(health, trust_env=False, timeout=20).text
            time.sleep(20)  # the longer it is away, the longer are the pauses between tries, unless they have a bound
            server.start()
            until(lambda: {httpx2.get(health, trust_env=False, timeout=20).status_code for _ in range(4)} == {200}, 8)
            until(lambda: ask(service, service.tokens["alice"]).status_code == 200)
            assert "where I live" in call(service, service.tokens["alice"], "Read", file_path="user/home.md")
    finally:
        server.stop()
