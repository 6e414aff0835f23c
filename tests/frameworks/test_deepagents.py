"""deepagents, the real ones: the middleware beside their own, and the memory's folder as their files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from adapter_suite import AdapterSuite
from deepagents import create_deep_agent
from hosts import DEPLOY, HOME, Host, sent, text, written
from langchain_core.messages import AIMessageChunk
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from openai_server import Answer, OpenAIServer
from responses_server import ResponsesServer

from mdmemory import Memory
from mdmemory.adapters import bridge
from mdmemory.adapters.deepagents import FolderBackend
from mdmemory.adapters.langchain import MemoryMiddleware


class DeepAgent(Host):
    """A deep agent whose files are in its state."""

    def __init__(self, memory: Memory | bridge.BridgedMemory, server: OpenAIServer, **settings: Any) -> None:
        self.agent = create_deep_agent(
            _model(server),
            system_prompt="Be kind.",
            middleware=[MemoryMiddleware(memory, **settings)],
            checkpointer=InMemorySaver(),
        )

    async def ask(self, text: str, conversation: str = "one") -> str:
        """The reply."""
        state = await self.agent.ainvoke(*_asked(text, conversation))
        return str(state["messages"][-1].text)

    async def stream(self, text: str) -> list[str]:
        """The pieces."""
        messages = self.agent.astream(*_asked(text, "one"), stream_mode="messages")
        return [message.text async for message, _ in messages if isinstance(message, AIMessageChunk) and message.text]

    def ask_now(self, text: str) -> str:
        """The reply."""
        return str(self.agent.invoke(*_asked(text, "one"))["messages"][-1].text)


def _model(server: OpenAIServer) -> ChatOpenAI:
    return ChatOpenAI(model="m", base_url=server.base_url, api_key="none", max_retries=0)


def _asked(text: str, thread: str) -> tuple[Any, Any]:
    return {"messages": [{"role": "user", "content": text}]}, {"configurable": {"thread_id": thread}}


class TestDeepAgent(AdapterSuite):
    """All of it."""

    host, name, server = DeepAgent, "deepagents", ResponsesServer


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with one memory file."""
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/home.md").write_text(HOME)
    return tmp_path / "memory"


@pytest.fixture
def files(root: Path) -> Iterator[FolderBackend]:
    """The folder as a deep agent has it."""
    with bridge.open_memory(root) as memory:
        yield FolderBackend(memory)


def _call(name: str, **arguments: object) -> Answer:
    return Answer(calls=[(name, arguments)])


def _answers(server: OpenAIServer) -> list[str]:
    return [text(message) for message in sent(server)[-1] if message["role"] == "tool"]


def test_a_deep_agents_own_tools_keep_the_memory(root: Path) -> None:
    """What `write_file` and `edit_file` write is validated, indexed and in the history; what is refused, the model is told."""
    script = [
        _call("ls", path="/"),
        _call("write_file", file_path="/project/deploy.md", content=DEPLOY),
        _call("edit_file", file_path="/home.md", old_string="Hangzhou", new_string="Suzhou"),
        _call("write_file", file_path="/bad.md", content="---\nname: [\n---\n"),
        _call("read_file", file_path="/home.md"),
        _call("grep", pattern="Tuesdays", output_mode="content"),
        _call("glob", pattern="**/*.md"),
        "Done.",
    ]
    with OpenAIServer(script) as server, bridge.open_memory(root) as memory:
        agent = create_deep_agent(_model(server), backend=FolderBackend(memory))
        assert agent.invoke(_asked("Go on.", "one")[0])["messages"][-1].text == "Done."
    listed, wrote, edited, refused, read, found, globbed = _answers(server)
    assert "/home.md" in listed and "/project/deploy.md" in wrote and "/home.md" in edited
    assert "bad.md" in refused and "line" in refused and not (root / "bad.md").exists()
    assert "Lives in Suzhou." in read and "Only on Tuesdays." in found and "/project/deploy.md" in globbed
    assert "[Deploys](project/deploy.md)" in (root / "MEMORY.md").read_text()
    assert written(root) >= {("agent:deepagents", "project/deploy.md"), ("agent:deepagents", "home.md")}


def test_an_edit_meets_the_edit_of_a_person(root: Path, files: FolderBackend) -> None:
    """E4: edits of different lines are both kept; of the same line, the agent's is refused."""
    (root / "home.md").write_text(HOME + "\nLikes walks.\n\nHas a dog.\n")
    files._read_files()
    (root / "home.md").write_text(HOME + "\nLikes long walks.\n\nHas a dog.\n")
    told = {"content": HOME + "\nLikes walks.\n\nHas two dogs.\n"}
    files._send_files_update({"/home.md": told})
    assert (root / "home.md").read_text() == HOME + "\nLikes long walks.\n\nHas two dogs.\n"


def test_what_can_not_be_done_is_an_answer(root: Path, files: FolderBackend) -> None:
    """A path that no memory may have, and a folder that is gone, are told as deepagents tells errors."""
    assert "hidden" in (files.write("/.git/config", "x").error or "")
    assert files.delete("/nope.md").error and files.delete("/home.md").path == "/home.md"
    assert not (root / "home.md").exists()
    (root / "home.md").write_text(HOME)
    assert json.dumps(files.download_files(["/home.md"])[0].content.decode()) == json.dumps(HOME)
