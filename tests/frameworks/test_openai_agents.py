"""The OpenAI Agents SDK, the real one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from adapter_suite import AdapterSuite
from agents import Agent, AgentHooks, OpenAIChatCompletionsModel, OpenAIResponsesModel, RunConfig, Runner, SQLiteSession, handoff
from hosts import LINE, Host
from journaling import said_in
from openai import AsyncOpenAI
from openai_server import Answer, ScriptedServer
from responses_server import ResponsesServer

from mdmemory import Memory, open_memory
from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.adapters.openai_agents import with_memory


class OpenAIAgents(Host):
    """An agent whose conversations are in the SDK's sessions."""

    def __init__(
        self, memory: Memory | BridgedMemory, server: ScriptedServer, *, model: Any = OpenAIChatCompletionsModel, **settings: Any
    ) -> None:
        client = AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0)
        self.agent = Agent("host", instructions="Be kind.", model=model("m", client))
        self.memory = memory
        self.settings = {"config": RunConfig(tracing_disabled=True), **settings}
        self.sessions: dict[str, SQLiteSession] = {}

    async def ask(self, text: str, conversation: str = "one") -> str:
        """The reply."""
        history = self.sessions.setdefault(conversation, SQLiteSession(conversation))
        async with with_memory(self.agent, self.memory, session=conversation, **self.settings) as (agent, config):
            return str((await Runner.run(agent, text, session=history, run_config=config)).final_output)

    async def stream(self, text: str) -> list[str]:
        """The pieces."""
        async with with_memory(self.agent, self.memory, **self.settings) as (agent, config):
            events = Runner.run_streamed(agent, text, run_config=config).stream_events()
            data = [event.data async for event in events if event.type == "raw_response_event"]
        return [event.delta for event in data if event.type == "response.output_text.delta"]


class TestOpenAIAgents(AdapterSuite):
    """All of it, save synchronous calls: `with_memory` is for `async with`."""

    host, name, server = OpenAIAgents, "openai_agents", ResponsesServer
    test_synchronous_calls = None

    @pytest.mark.parametrize("whole", [True, False])
    async def test_the_reply_of_another_agent_is_in_the_journal(self, root: Path, whole: bool) -> None:
        """C8: however far the conversation was handed on; the agents themselves, and their hooks, are as they were."""
        ended: list[str] = []

        class Hooks(AgentHooks[Any]):
            async def on_end(self, context: Any, agent: Agent[Any], output: Any) -> None:
                ended.append(agent.name)

        calls = [Answer(calls=[(f"transfer_to_{name}", {})]) for name in ("billing", "refunds")]
        with ResponsesServer([*calls, "Paid back."]) as server:
            async with open_memory(root) as memory:
                host = OpenAIAgents(memory, server, model=OpenAIResponsesModel)
                refunds = host.agent.clone(name="refunds", hooks=Hooks())
                billing = host.agent.clone(name="billing", handoffs=[refunds])
                host.agent.handoffs = [handoff(billing) if whole else billing]
                refunds.handoffs = [host.agent]
                assert await host.ask("Where is my money?") == "Paid back."
        assert said_in(root, "one")[0] == ("user", "Where is my money?") and said_in(root, "one")[-1] == ("assistant", "Paid back.")
        assert ended == ["refunds"] and billing.hooks is None and billing.handoffs == [refunds]
        assert [LINE in request.json["instructions"] for request in server.requests] == [True, False, False]
