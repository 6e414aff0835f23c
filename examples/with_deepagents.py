"""A deep agent with a memory: python examples/with_deepagents.py MODEL FOLDER MESSAGE ..."""

import asyncio
import sys
import uuid

from deepagents import create_deep_agent
from langgraph.checkpoint.memory import InMemorySaver

import mdmemory
from mdmemory.adapters.langchain import MemoryMiddleware


async def main(model: str, folder: str, *texts: str) -> None:
    """Hold a conversation; the key comes from OPENAI_API_KEY."""
    thread = {"configurable": {"thread_id": uuid.uuid4().hex}}
    async with mdmemory.open_memory(folder) as memory:
        agent = create_deep_agent(f"openai:{model}", middleware=[MemoryMiddleware(memory)], checkpointer=InMemorySaver())
        for text in texts:
            state = await agent.ainvoke({"messages": [{"role": "user", "content": text}]}, thread)
            print(state["messages"][-1].text)


asyncio.run(main(*sys.argv[1:]))
