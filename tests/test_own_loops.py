"""Loops of one's own on the plain SDKs: their pages and examples, over the real wire."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from anthropic_server import AnthropicServer
from command import REPOSITORY, environment
from journaling import said_in
from openai_server import Answer, OpenAIServer, Request, ScriptedServer
from pages import try_page
from responses_server import ResponsesServer

HOME = "---\nname: Home\ndescription: city, walks\ntype: user\n---\n\nLives in Hangzhou.\n"
BODY = "> Lives in Hangzhou."
SAVE = Answer(calls=[("Write", {"file_path": "home.md", "content": HOME})])


class BothServers(ResponsesServer):
    """A server of OpenAI's: chat completions and Responses."""

    def body(self, request: Request, answer: Answer) -> dict[str, Any]:
        """What the path asks for."""
        kind = OpenAIServer if request.path.endswith("/chat/completions") else ResponsesServer
        return kind.body(self, request, answer)  # type: ignore[arg-type]  # both are ScriptedServers


def endpoint(server: ScriptedServer) -> dict[str, str]:
    """The environment in which both SDKs ask this server."""
    names = ("OPENAI", "ANTHROPIC")
    places = {f"{name}_BASE_URL": server.base_url for name in names} | {f"{name}_API_KEY": "none" for name in names}
    return {**places, "NO_PROXY": "127.0.0.1"}


@pytest.mark.parametrize(("page", "kind", "requests"), [("openai", BothServers, 2), ("anthropic", AnthropicServer, 1)])
def test_a_page_does_what_it_says(
    page: str, kind: type[ScriptedServer], requests: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AM5: the loops on the page have the hint in their first call, and their model knows only what it is told."""
    monkeypatch.chdir(tmp_path)
    with kind(lambda request: "Around West Lake." if BODY in json.dumps(request) else "Where do you live?") as server:
        for name, value in endpoint(server).items():
            monkeypatch.setenv(name, value)
        try_page(REPOSITORY / f"docs/adapters/{page}.md", tmp_path)
    assert len(server.requests) == requests


@pytest.mark.parametrize(("example", "kind"), [("responses", ResponsesServer), ("anthropic", AnthropicServer)])
def test_an_example_runs(example: str, kind: type[ScriptedServer], tmp_path: Path) -> None:
    """AM3: what one process saves is in the prompt and in the first hint of the next, and stays where it stood."""
    with kind([SAVE, "Saved.", "Around West Lake.", "You are welcome."]) as server:
        assert _run(example, server, ["Remember where I live."], tmp_path) == "Saved.\n"
        assert _run(example, server, ["Any walks in my city?", "Thanks!"], tmp_path) == "Around West Lake.\nYou are welcome.\n"
    told = [json.dumps(request.json, ensure_ascii=False) for request in server.requests]
    assert (tmp_path / "memory/home.md").read_text() == HOME and "- [Home](home.md) — city, walks" in told[2]
    assert [request.count(BODY) for request in told[2:]] == [1, 1]
    assert [text for _, text in said_in(tmp_path / "memory", "own-loop")][-2:] == ["Thanks!", "You are welcome."]


def _run(example: str, server: ScriptedServer, texts: list[str], folder: Path) -> str:
    command = [sys.executable, str(REPOSITORY / f"examples/own_loop_{example}.py"), "m", "memory", *texts]
    env = environment(**endpoint(server))
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout
