"""LangChain's agents, the real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from adapter_suite import AdapterSuite
from hosts import SAVE, Host
from journaling import said_in
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessageChunk
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from openai_server import OpenAIServer

from mdmemory import Memory, open_memory
from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.adapters.langchain import MemoryMiddleware
from mdmemory.errors import ConfigError


class LangChain(Host):
    """An agent with LangGraph's threads."""

    def __init__(self, memory: Memory | BridgedMemory, server: OpenAIServer, **settings: Any) -> None:
        middleware = MemoryMiddleware(memory, **settings)
        self.agent = create_agent(_model(server), system_prompt="Be kind.", middleware=[middleware], checkpointer=InMemorySaver())

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


class TestLangChain(AdapterSuite):
    """All of it."""

    host, name = LangChain, "langchain"

    async def test_a_person_is_asked_in_the_middle(self, root: Path) -> None:
        """C8: a run that waits for an approval goes on in another process, and the journal has each message once."""
        saver, approved = InMemorySaver(), Command(resume={"decisions": [{"type": "approve"}]})
        with OpenAIServer([SAVE, "Saved."]) as server:
            for step in (_asked("Remember Tuesdays.", "one")[0], approved):
                async with open_memory(root) as memory:
                    ask = HumanInTheLoopMiddleware(interrupt_on={"Write": True})
                    agent = create_agent(_model(server), middleware=[MemoryMiddleware(memory), ask], checkpointer=saver)
                    state = await agent.ainvoke(step, {"configurable": {"thread_id": "one"}})
                    assert (root / "deploy.md").exists() == (step is approved)
        assert state["messages"][-1].text == "Saved."
        assert [role for role, _ in said_in(root, "one")] == ["user", "assistant", "tool", "assistant"]

    async def test_a_synchronous_call_wants_the_bridge(self, root: Path) -> None:
        """On a memory of the event loop `invoke` says what to do."""
        with OpenAIServer(["Hello."]) as server:
            async with open_memory(root) as memory:
                with pytest.raises(ConfigError, match=r"mdmemory\.adapters\.bridge\.open_memory"):
                    self.host(memory, server).ask_now("Hello")
