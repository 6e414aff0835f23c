"""The real service, as processes of its own, and the users who come to it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from command import COMMAND, environment, mdmemory

HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


@dataclass(slots=True)
class Service:
    """A service that runs.

    Args:
        home: where its files lie: `memories/USER`, `tokens`, and its log.
    """

    home: Path
    process: subprocess.Popen[str]
    url: str = ""
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def mcp(self) -> str:
        """Where MCP clients connect."""
        return f"{self.url}/mcp"

    def folder(self, user: str) -> Path:
        """Where a user's memory lies."""
        return self.home / "memories" / user

    def log(self, **wanted: Any) -> list[dict[str, Any]]:
        """The lines of the log, or those of them with these fields."""
        lines = [json.loads(line) for line in self.text().splitlines() if line.startswith("{")]
        return [line for line in lines if all(line.get(key) == value for key, value in wanted.items())]

    def text(self) -> str:
        """All that it has written to stderr."""
        return (self.home / "log").read_text()

    def token(self, user: str, *options: str) -> str:
        """Another token of a user."""
        return new_token(self.home, user, *options)

    def metrics(self) -> str:
        """What Prometheus would read."""
        return httpx2.get(f"{self.url}/metrics", trust_env=False).text

    def number(self, name: str, **labels: str) -> float:
        """One of the metrics; 0 when it is not there."""
        given = ",".join(f'{key}="{value}"' for key, value in labels.items())
        found = re.search(rf"^{name}{re.escape('{' + given + '}') if given else ''} (\S+)$", self.metrics(), re.MULTILINE)
        return float(found[1]) if found else 0.0

    def workers(self) -> set[int]:
        """The processes that serve."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return {pid for pid in map(int, children) if b"resource_tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes()}

    def stop(self, wait_s: float = 60) -> int:
        """End it as a service manager does."""
        self.process.terminate()
        return self.process.wait(wait_s)


def new_token(home: Path, user: str, *options: str) -> str:
    """A token from the command line."""
    done = mdmemory("token", user, "--tokens", home / "tokens", *options, cwd=home)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@contextmanager
def running(
    home: Path, *options: str, users: Mapping[str, tuple[str, ...]] | None = None, location: str = "", **env: str
) -> Iterator[Service]:
    """A service on a free port, with a token for alice and one for bob; no traceback may come of it.

    Args:
        users: others, with the options of `mdmemory token`.
        location: with `{user}`; below `home` when none is given.
    """
    (home / "memories").mkdir(parents=True, exist_ok=True)
    tokens = {user: new_token(home, user, *given) for user, given in (users or {"alice": (), "bob": ()}).items()}
    template = [] if "--config" in options else [location or f"{home}/memories/{{user}}"]
    command = [*COMMAND, "service", *template, "--tokens", str(home / "tokens"), "--port", "0", "--json", *options]
    with open(home / "log", "a") as log:
        process = subprocess.Popen(
            command, env=environment(TMPDIR=str(home), **env), stdout=subprocess.PIPE, stderr=log, text=True, cwd=home
        )
    service = Service(home, process, tokens=tokens)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, service.text()
        service.url = json.loads(line)["url"]
        until(lambda: httpx2.get(f"{service.url}/health/live", trust_env=False))
        yield service
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(60)
        assert process.stdout is not None
        process.stdout.close()
        assert "Traceback" not in service.text(), service.text()


def until(condition: Callable[[], Any], wait_s: float = 20.0) -> Any:
    """Wait for something to become true; what it is then."""
    end = time.monotonic() + wait_s
    while True:
        try:
            if found := condition():
                return found
        except httpx2.TransportError:
            pass
        assert time.monotonic() < end, "it did not become true in time"
        time.sleep(0.05)


def ask(service: Service, token: str, method: str = "tools/list", params: Any = None, **headers: str) -> httpx2.Response:
    """One MCP request, as any program can send it, over a connection of its own."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    sent = {**JSON, "authorization": f"Bearer {token}", **{name.replace("_", "-"): value for name, value in headers.items()}}
    with httpx2.Client(trust_env=False, timeout=30) as client:
        return client.post(service.mcp, json=body, headers=sent)


def call(service: Service, token: str, name: str, **arguments: Any) -> str:
    """The text of a tool's result."""
    answer = ask(service, token, "tools/call", {"name": name, "arguments": arguments})
    assert answer.status_code == 200, answer.text
    return "\n".join(block["text"] for block in answer.json()["result"]["content"])


def is_alive(pid: int) -> bool:
    """Whether a process runs."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
