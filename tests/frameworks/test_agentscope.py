"""AgentScope, the real one."""

from __future__ import annotations

import json
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from adapter_suite import AdapterSuite
from agentscope.agent import Agent
from agentscope.credential import OpenAICredential
from agentscope.event import TextBlockDeltaEvent
from agentscope.message import UserMsg
from agentscope.middleware import AgenticMemoryMiddleware
from agentscope.model import OpenAIChatModel
from agentscope.permission import PermissionContext, PermissionMode
from agentscope.state import AgentState
from agentscope.tool import BackendBase, LocalBackend, Read, Toolkit, Write
from hosts import BODY, DEPLOY, HOME, LINE, PICK_HOME, Host, sent, system, written
from journaling import said_in
from openai_server import Answer, OpenAIServer

from mdmemory import Memory
from mdmemory.adapters.agentscope import MemoryMiddleware
from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.errors import ConfigError


def _model(server: OpenAIServer, *, stream: bool = False) -> OpenAIChatModel:
    credential = OpenAICredential(api_key="none", base_url=server.base_url)
    return OpenAIChatModel(credential, "m", stream=stream, max_retries=0)


class AgentScope(Host):
    """An agent a conversation, and one middleware for all of them."""

    def __init__(self, memory: Memory | BridgedMemory, server: OpenAIServer, **settings: Any) -> None:
        self.server = server
        self.middleware = MemoryMiddleware(memory=memory, **settings)
        self.agents: dict[str, Agent] = {}

    async def agent(self, conversation: str, *, stream: bool = False) -> Agent:
        """The agent that holds a conversation."""
        if conversation not in self.agents:
            toolkit, state = Toolkit(tools=await self.middleware.list_tools()), AgentState(session_id=conversation)
            model = _model(self.server, stream=stream)
            self.agents[conversation] = Agent("host", "Be kind.", model, toolkit, [self.middleware], state)
        return self.agents[conversation]

    async def ask(self, text: str, conversation: str = "one") -> str:
        """The reply."""
        message = await (await self.agent(conversation)).reply(UserMsg("user", text))
        return message.get_text_content() or ""

    async def stream(self, text: str) -> list[str]:
        """The pieces."""
        events = (await self.agent("one", stream=True)).reply_stream(UserMsg("user", text))
        return [event.delta async for event in events if isinstance(event, TextBlockDeltaEvent)]


class TestAgentScope(AdapterSuite):
    """All of it, save synchronous calls, which AgentScope has none of."""

    host, name = AgentScope, "agentscope"
    test_synchronous_calls = None


class Elsewhere(BackendBase):
    """A workspace's backend that is not local to AgentScope, with real processes and files."""

    def __init__(self) -> None:
        self.here, self.commands = LocalBackend(), 0

    async def exec_shell(self, command: list[str], *, cwd: str | None = None, timeout: float | None = None) -> Any:
        """Run it."""
        self.commands += 1
        return await self.here.exec_shell(command, cwd=cwd, timeout=timeout)

    async def read_file(self, path: str) -> bytes:
        """Read it."""
        return await self.here.read_file(path)

    async def write_file(self, path: str, data: bytes) -> None:
        """Write it."""
        await self.here.write_file(path, data)


def test_it_is_made_as_the_middleware_whose_place_it_takes() -> None:
    """What AgenticMemoryMiddleware is given can be given to ours, with the same defaults save that of the folder."""
    theirs, ours = (signature(kind.__init__).parameters for kind in (AgenticMemoryMiddleware, MemoryMiddleware))
    for name in [name for name in theirs if name != "workdir"]:
        assert (ours[name].kind, ours[name].default) == (theirs[name].kind, theirs[name].default)
    assert MemoryMiddleware.Parameters is AgenticMemoryMiddleware.Parameters


@pytest.mark.parametrize("backend", [None, Elsewhere()], ids=["local", "workspace"])
async def test_replacing_one_import_is_enough(tmp_path: Path, backend: Elsewhere | None) -> None:
    """AM1, AM5, AM6: AgentScope's own Write goes through the memory, and the agent's model chooses for the hint."""
    folder = tmp_path / "Memory"
    folder.mkdir()
    (folder / "home.md").write_text(HOME)

    def answer(request: Any) -> Answer | str:
        asked = json.dumps(request["messages"])
        if "generate_structured_output" in json.dumps(request.get("tools", "")):
            return Answer(calls=[("generate_structured_output", PICK_HOME)])
        if '"tool"' in asked:
            return "Saved."
        paths = (folder / "deploy.md", tmp_path / "other.md")
        return Answer(calls=[("Write", {"file_path": str(path), "content": DEPLOY}) for path in paths])

    with OpenAIServer(answer) as server:
        middleware = MemoryMiddleware(workdir=str(tmp_path), backend=backend)
        allowed = AgentState(session_id="one", permission_context=PermissionContext(mode=PermissionMode.BYPASS))
        agent = Agent("host", "Be kind.", _model(server), Toolkit(tools=[Read(), Write()]), [middleware], allowed)
        message = await agent.reply(UserMsg("user", "Hello, we deploy on Tuesdays."))
        await middleware.close()
    assert message.get_text_content() == "Saved." and (tmp_path / "other.md").read_text() == DEPLOY
    assert written(folder) == {("agent:one", "deploy.md")} and "(deploy.md)" in (folder / "MEMORY.md").read_text()
    told = [messages for messages in sent(server) if "Be kind." in system(messages)]
    assert LINE in system(told[0]) and f"{folder}/user/role.md" in system(told[0]) and BODY in json.dumps(told[-1])
    assert said_in(folder, "one")[-1] == ("assistant", "Saved.") and (backend is None or backend.commands > 0)


async def test_instructions_for_the_choice_are_heeded(tmp_path: Path) -> None:
    """The user's own stand before the memory's, and only what is set is said."""
    (tmp_path / "Memory").mkdir()
    (tmp_path / "Memory/home.md").write_text(HOME)
    for own in (None, "Prefer what is about cities."):
        parameters = MemoryMiddleware.Parameters(**({"retrieval_instructions": own} if own else {}))
        with OpenAIServer(
            lambda request: Answer(calls=[("generate_structured_output", PICK_HOME)]) if _chooses(request) else "Hi."
        ) as server:
            middleware = MemoryMiddleware(workdir=str(tmp_path), parameters=parameters)
            agent = Agent("host", "Be kind.", _model(server), Toolkit(), [middleware], AgentState(session_id="one"))
            await agent.reply(UserMsg("user", "Hello"))
            await middleware.close()
        [chosen] = [request.json["messages"] for request in server.requests if _chooses(request.json)]
        assert json.dumps(chosen).count("Prefer what is about cities.") == bool(own)
        assert MemoryMiddleware.Parameters().retrieval_instructions[:40] not in json.dumps(chosen)


def _chooses(request: Any) -> bool:
    return "generate_structured_output" in json.dumps(request.get("tools", ""))


def test_what_can_not_be_set_is_said(tmp_path: Path) -> None:
    """A parameter that has no sense here is not passed over in silence; its default is."""
    parameters = MemoryMiddleware.Parameters(retrieval_max_tokens_per_frontmatter=64)
    with pytest.raises(ConfigError, match="retrieval_max_files limits"):
        MemoryMiddleware(workdir=str(tmp_path), parameters=parameters)
