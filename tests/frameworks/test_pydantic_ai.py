"""pydantic-ai, the real one."""

from __future__ import annotations

from typing import Any

from adapter_suite import AdapterSuite
from hosts import Host
from openai_server import OpenAIServer
from pydantic_ai import Agent, ModelMessage
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from mdmemory import Memory
from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.adapters.pydantic_ai import MemoryCapability


class PydanticAI(Host):
    """An agent whose program keeps the messages."""

    def __init__(self, memory: Memory | BridgedMemory, server: OpenAIServer, **settings: Any) -> None:
        model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=server.base_url, api_key="none"))
        self.agent = Agent(model, instructions="Be kind.", capabilities=[MemoryCapability(memory, **settings)])
        self.histories: dict[str, list[ModelMessage]] = {}

    async def ask(self, text: str, conversation: str = "one") -> str:
        """The reply."""
        history = self.histories.get(conversation, [])
        result = await self.agent.run(text, message_history=history, conversation_id=conversation)
        self.histories[conversation] = result.all_messages()
        return result.output

    async def stream(self, text: str) -> list[str]:
        """The pieces."""
        async with self.agent.run_stream(text) as result:
            return [piece async for piece in result.stream_text(delta=True, debounce_by=None)]

    def ask_now(self, text: str) -> str:
        """The reply."""
        return self.agent.run_sync(text).output


class TestPydanticAI(AdapterSuite):
    """All of it."""

    host, name = PydanticAI, "pydantic_ai"
