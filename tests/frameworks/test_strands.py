"""Strands Agents, the real ones."""

from __future__ import annotations

from typing import Any

from adapter_suite import AdapterSuite
from hosts import Host
from openai_server import OpenAIServer
from strands import Agent
from strands.models.openai import OpenAIModel

from mdmemory import Memory
from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.adapters.strands import MemoryPlugin


class Strands(Host):
    """An agent a conversation, and one plugin for all of them."""

    def __init__(self, memory: Memory | BridgedMemory, server: OpenAIServer, **settings: Any) -> None:
        self.memory, self.settings = memory, settings
        self.client = {"base_url": server.base_url, "api_key": "none", "max_retries": 0}
        self.agents: dict[str, Agent] = {}

    def agent(self, conversation: str) -> Agent:
        """The agent that holds a conversation."""
        if conversation not in self.agents:
            plugin = MemoryPlugin(self.memory, session=conversation, **self.settings)
            model = OpenAIModel(client_args=self.client, model_id="m")
            agent = Agent(model, system_prompt="Be kind.", plugins=[plugin], callback_handler=None)
            self.agents[conversation] = agent
        return self.agents[conversation]

    async def ask(self, text: str, conversation: str = "one") -> str:
        """The reply."""
        return str(await self.agent(conversation).invoke_async(text)).strip()

    async def stream(self, text: str) -> list[str]:
        """The pieces."""
        return [event["data"] async for event in self.agent("one").stream_async(text) if "data" in event]

    def ask_now(self, text: str) -> str:
        """The reply."""
        return str(self.agent("one")(text)).strip()


class TestStrands(AdapterSuite):
    """All of it."""

    host, name = Strands, "strands"
