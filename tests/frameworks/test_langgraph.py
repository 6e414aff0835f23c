"""LangGraph, the real one: a graph with a node that retrieves and one that saves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command import REPOSITORY, environment
from hosts import BODY, HOME, endpoint
from journaling import said_in
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from openai_server import OpenAIServer
from pages import try_page

from mdmemory import Memory, open_memory
from mdmemory.adapters import bridge
from mdmemory.adapters.langgraph import memory_nodes

TALK = [("user", "Any walks in my city?"), ("assistant", "By the lake."), ("user", "Thanks!"), ("assistant", "Welcome.")]


def _graph(memory: Memory | bridge.BridgedMemory, server: OpenAIServer) -> Any:
    model = ChatOpenAI(model="m", base_url=server.base_url, api_key="none", max_retries=0)
    nodes = memory_nodes(memory)
    builder = StateGraph(MessagesState)
    builder.add_node("retrieve", nodes.retrieve)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("save", nodes.save)
    for edge in ((START, "retrieve"), ("retrieve", "model"), ("model", "save"), ("save", END)):
        builder.add_edge(*edge)
    return builder.compile(checkpointer=InMemorySaver())


def _asked(text: str) -> tuple[Any, Any]:
    return {"messages": [{"role": "user", "content": text}]}, {"configurable": {"thread_id": "monday"}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with one memory file."""
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/home.md").write_text(HOME)
    return tmp_path / "memory"


def _check(root: Path, server: OpenAIServer) -> None:
    first, second = (request.json["messages"] for request in server.requests)
    assert BODY in first[-1]["content"] and second[: len(first)] == first and json.dumps(second).count(BODY) == 1
    assert said_in(root, "monday") == TALK


async def test_nodes_retrieve_and_save(root: Path) -> None:
    """V7: the hint is there before the model answers, once a thread, and what was said is in the thread's journal, once."""
    with OpenAIServer(["By the lake.", "Welcome."]) as server:
        async with open_memory(root) as memory:
            graph = _graph(memory, server)
            await graph.ainvoke(*_asked("Any walks in my city?"))
            state = await graph.ainvoke(*_asked("Thanks!"))
    assert state["messages"][-1].text == "Welcome."
    _check(root, server)


def test_nodes_in_synchronous_calls(root: Path) -> None:
    """V7: `invoke` does the same on a memory of the bridge."""
    with OpenAIServer(["By the lake.", "Welcome."]) as server, bridge.open_memory(root) as memory:
        graph = _graph(memory, server)
        graph.invoke(*_asked("Any walks in my city?"))
        graph.invoke(*_asked("Thanks!"))
    _check(root, server)


def test_its_page_does_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """V7: the page in docs/adapters, with a model that knows only what it is told."""
    monkeypatch.chdir(tmp_path)
    with OpenAIServer(lambda request: "Around West Lake." if BODY in json.dumps(request) else "Where do you live?") as server:
        for name, value in endpoint(server).items():
            monkeypatch.setenv(name, value)
        try_page(REPOSITORY / "docs/adapters/langgraph.md", tmp_path)
    assert server.requests


def test_its_example_runs(root: Path) -> None:
    """V7: the example holds a conversation with the hint in it."""
    with OpenAIServer(["By the lake.", "Welcome."]) as server:
        command = [sys.executable, str(REPOSITORY / "examples/with_langgraph.py"), "m", "memory", TALK[0][1], TALK[2][1]]
        env = environment(**endpoint(server))
        printed = subprocess.run(command, cwd=root.parent, env=env, capture_output=True, encoding="utf-8", check=True).stdout
    assert printed == "By the lake.\nWelcome.\n" and BODY in server.requests[0].json["messages"][-1]["content"]
