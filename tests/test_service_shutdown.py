"""How the service ends, and what a killed worker takes with it: nothing that was answered."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx2
import pytest
from command import REPOSITORY, environment, mdmemory, note, write
from service_server import ask, call, is_alive, new_token, running, until
from web_server import Visitor

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("service-shutdown")]
PROGRAM = '''
"""A program that serves more than the service: turns of its own, in the memories that the service has open."""
import asyncio, json, os, sys
from pathlib import Path
import uvicorn
from conversations import memory, reply
from mdmemory.models import ScriptedModel
from mdmemory.service.app import ServiceApp
from mdmemory.service.serving import Serving
from mdmemory.service.users import User
from mdmemory.settings import Settings
from mdmemory.config import Config

async def authenticate(token):
    return User(token) if token in ("alice", "bob") else None

async def slow(messages):
    if "long-term memory" not in messages[0]["content"]:
        return {"files": []}
    Path("asked").touch()
    await asyncio.sleep(1.5)
    return reply(memory("Harbour", "The boat lies in Lisbon."))

async def main():
    settings = Settings(config=Config(extract_every=1, summary_over=0, cache=False))
    app = ServiceApp(Serving("memories/{user}", "x" * 40, settings, idle_s=0.2), authenticate, ScriptedModel([slow] * 9))
    server = uvicorn.Server(uvicorn.Config(app, port=int(sys.argv[1]), log_level="error", timeout_graceful_shutdown=5))
    task = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.02)
    async with app.memory(User("alice")) as alices:
        turn = await alices.session("monday").turn("The boat lies in Lisbon.")
        await turn.finish("I will remember that.")
    print("answered", flush=True)
    await task

asyncio.run(main())
'''
HURRIED = """
import socket
from pathlib import Path
from mdmemory.service.serving import Serving
from mdmemory.service.workers import Supervisor

with socket.create_server(("127.0.0.1", 0)) as listener:
    port = listener.getsockname()[1]
    Supervisor(Serving("memories/{user}", "x" * 40, end_s=1), listener, Path("tokens"), 2).run(lambda: print(port, flush=True))
"""


def test_what_runs_is_answered_and_then_it_ends(tmp_path: Path) -> None:
    """SIGTERM in the middle of many writes: each that was answered is on the disk, none half, and all processes are gone."""
    with running(tmp_path, "--at-once", "64", "--per-minute", "100000") as service:
        answered: list[str] = []

        def work(worker: int) -> None:
            for n in range(1000):
                name = f"w{worker}-{n}"
                try:
                    call(service, service.tokens["alice"], "Write", file_path=f"user/{name}.md", content=note(name, "x"))
                except (httpx2.TransportError, AssertionError):
                    return
                answered.append(name)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for thread in threads:
            thread.start()
        until(lambda: len(answered) > 20)
        workers = service.workers()
        begun = time.monotonic()
        assert service.stop() == 0 and time.monotonic() - begun < 20
        for thread in threads:
            thread.join()
        assert len(workers) == 2 and not any(map(is_alive, workers))
        written = {path.stem for path in (service.folder("alice") / "user").glob("*.md")}
        assert set(answered) <= written and "MEMORY.md" in os.listdir(service.folder("alice"))
        assert [line for line in service.log() if line["level"] == "ERROR"] == []
    _is_whole(service.folder("alice"))


def test_open_pages_do_not_hold_it_up(tmp_path: Path) -> None:
    """A page that is told of changes hears the end of its stream, and the service need not wait for its bound."""
    write(tmp_path / "memories/alice/user/home.md", note("Home", "where I live"))
    with running(tmp_path) as service:
        alice = Visitor(f"{service.url}/?token={service.tokens['alice']}")
        with alice.http.stream("GET", "/changes") as stream:
            lines = stream.iter_lines()
            assert next(lines) == "retry: 1000"
            begun = time.monotonic()
            service.process.terminate()
            assert [line for line in lines if line and not line.startswith(":")] == []
        assert service.process.wait(10) == 0 and time.monotonic() - begun < 8
        alice.close()


def test_a_killed_worker_is_replaced_and_nothing_answered_is_lost(tmp_path: Path) -> None:
    """kill -9 of one of two workers while both write: the other goes on, another comes, and every answered write is there."""
    with running(tmp_path, "--at-once", "2", "--per-minute", "100000") as service:
        answered: list[str] = []
        over = threading.Event()

        def work(user: str) -> None:
            n = 0
            while not over.is_set():
                n += 1
                try:
                    text = call(service, service.tokens[user], "Write", file_path=f"user/n{n}.md", content=note(f"N{n}", "x"))
                except (httpx2.TransportError, AssertionError):
                    continue
                if "conflict" not in text.lower():
                    answered.append(f"{user}/user/n{n}.md")

        threads = [threading.Thread(target=work, args=(user,)) for user in ("alice", "bob")]
        for thread in threads:
            thread.start()
        until(lambda: len(answered) > 10)
        time.sleep(2)  # so that neither counts as one that dies as soon as it is started
        with open(service.home / "tokens", "a") as file:
            file.write("a slip of the pen\n")  # which keeps no worker from starting, and lets nobody in
        before = service.workers()
        killed = before.pop()
        os.kill(killed, signal.SIGKILL)
        at = len(answered)
        until(lambda: len(answered) > at + 10)
        until(lambda: len(service.workers()) == 2 and killed not in service.workers())
        assert before < service.workers()
        until(lambda: {line["worker"] for line in service.log(route="/mcp")} > {killed, *before})
        over.set()
        for thread in threads:
            thread.join()
        assert {ask(service, service.tokens["alice"]).status_code for _ in range(6)} == {200}, "what it had begun still counts"
        until(lambda: service.number("mdmemory_workers") == 2)
        assert any("another is started" in line["event"] for line in service.log(level="ERROR"))
    assert [path for path in answered if not (tmp_path / "memories" / path).exists()] == []
    for user in ("alice", "bob"):
        _is_whole(tmp_path / "memories" / user)


def test_a_client_that_stalls_holds_it_up_no_longer_than_its_bound(tmp_path: Path) -> None:
    """A request whose body never comes is given up after `end_s`, and the end goes on as ever."""
    (tmp_path / "memories").mkdir()
    token = new_token(tmp_path, "alice")
    command = [sys.executable, "-c", HURRIED]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as run:
        assert run.stdout is not None and run.stderr is not None
        url = f"http://127.0.0.1:{run.stdout.readline().strip()}"
        until(lambda: httpx2.get(f"{url}/health", trust_env=False).status_code == 200)
        with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as stalled:
            head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nContent-Length: 1000\r\n\r\n{{"
            stalled.sendall(head.encode())
            until(lambda: "mdmemory_requests_running 2.0" in httpx2.get(f"{url}/metrics", trust_env=False).text)
            begun = time.monotonic()
            run.terminate()
            assert run.wait(30) == 0 and 1 <= time.monotonic() - begun < 6
        assert "Cancel 1 running task(s)" in run.stderr.read()


def test_without_its_supervisor_no_worker_stays(tmp_path: Path) -> None:
    """kill -9 of the process that was started leaves nothing that holds the port."""
    with running(tmp_path) as service:
        workers = service.workers()
        service.process.kill()
        service.process.wait()
        until(lambda: not any(map(is_alive, workers)))
        with pytest.raises(httpx2.ConnectError):
            httpx2.get(service.url, trust_env=False)


def test_what_is_being_drawn_from_a_conversation_is_waited_for(tmp_path: Path) -> None:
    """A memory in which write-back runs is not closed while idle, and SIGTERM waits until what it draws is saved."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (tmp_path / "memories").mkdir()
    command, env = [sys.executable, "-c", PROGRAM, str(port)], environment(PYTHONPATH=f"{REPOSITORY}:{REPOSITORY}/tests")
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None and run.stderr is not None
        assert run.stdout.readline() == "answered\n", run.stderr.read()
        until(lambda: (tmp_path / "asked").exists())
        time.sleep(0.6)  # longer than a memory may be idle
        run.terminate()
        assert run.wait(20) in (0, -signal.SIGTERM)
        assert "Traceback" not in run.stderr.read()
    texts = [path.read_text() for path in (tmp_path / "memories/alice").rglob("*.md")]
    assert any("The boat lies in Lisbon." in text for text in texts), "the journal"
    assert any("name: Harbour" in text for text in texts), "what was drawn from it"


def test_it_is_said_when_it_can_not_start(tmp_path: Path) -> None:
    """A missing file of tokens, a location or a model that is none and a port that is taken end it at once, with a line."""
    (tmp_path / "memories").mkdir()
    for name, text in (("model", "model: nosuch:x"), ("mount", "mounts: {team: {location: 'nosuch://x'}}")):
        (tmp_path / name).write_text(text)
    with running(tmp_path) as service:
        port = service.url.rpartition(":")[2]
        for arguments, said in (
            ((f"{tmp_path}/memories/{{user}}", "--tokens", "tokens", "--config", "model"), "nosuch"),
            ((f"{tmp_path}/memories/{{user}}", "--tokens", "tokens", "--config", "mount"), "no backend"),
            ((f"{tmp_path}/memories/{{user}}", "--tokens", "none"), "none can't be read"),
            ((f"{tmp_path}/memories", "--tokens", "tokens"), "{user}"),
            (("nosuch://{user}", "--tokens", "tokens"), "no backend"),
            ((f"{tmp_path}/memories/{{user}}", "--tokens", "tokens", "--port", port), "can't be listened on"),
            ((f"{tmp_path}/memories/{{user}}", "--tokens", "tokens", "--host", "0.0.0.0"), "--allow-host"),
            ((f"{tmp_path}/memories/{{user}}", "--tokens", "tokens", "--secret", "short"), "32 characters"),
        ):
            done = mdmemory("service", *arguments, cwd=tmp_path)
            assert done.returncode == 1 and said in done.stderr and len(done.stderr.splitlines()) == 1


def _is_whole(folder: Path) -> None:
    """The doctor finds nothing broken, and the history no save that was left in its middle."""
    done = mdmemory("doctor", "-f", folder, "--json", cwd=folder.parent)
    assert '"error"' not in done.stdout, done.stdout
