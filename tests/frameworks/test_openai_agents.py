"""The OpenAI Agents SDK, the real one."""

from __future__ import annotations

from typing import Any

from adapter_suite import AdapterSuite
from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, SQLiteSession
from hosts import Host
from openai import AsyncOpenAI
from openai_server import OpenAIServer
from responses_server import ResponsesServer

from mdmemory import Memory
from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.adapters.openai_agents import with_memory


class OpenAIAgents(Host):
    """An agent whose conversations are in the SDK's sessions."""

    def __init__(self, memory: Memory | BridgedMemory, server: OpenAIServer, **settings: Any) -> None:
        client = AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0)
        self.agent = Agent("host", instructions="Be kind.", model=OpenAIChatCompletionsModel("m", client))
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
