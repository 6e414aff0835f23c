"""An agent of pydantic-ai with a memory: python examples/with_pydantic_ai.py MODEL FOLDER MESSAGE ..."""

import asyncio
import sys

from pydantic_ai import Agent

import mdmemory
from mdmemory.adapters.pydantic_ai import MemoryCapability


async def main(model: str, folder: str, *texts: str) -> None:
    """Hold a conversation; the key comes from OPENAI_API_KEY."""
    async with mdmemory.open_memory(folder) as memory:
        agent = Agent(f"openai-chat:{model}", instructions="You are a helpful assistant.", capabilities=[MemoryCapability(memory)])
        history: list = []
        for text in texts:
            result = await agent.run(text, message_history=history)
            history = result.all_messages()
            print(result.output)


asyncio.run(main(*sys.argv[1:]))
