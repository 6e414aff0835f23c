"""An agent of Strands with a memory: python examples/with_strands.py MODEL FOLDER MESSAGE ..."""

import asyncio
import sys

from strands import Agent
from strands.models.openai import OpenAIModel

import mdmemory
from mdmemory.adapters.strands import MemoryPlugin


async def main(model: str, folder: str, *texts: str) -> None:
    """Hold a conversation; the key comes from OPENAI_API_KEY."""
    async with mdmemory.open_memory(folder) as memory:
        agent = Agent(OpenAIModel(model_id=model), plugins=[MemoryPlugin(memory)], callback_handler=None)
        for text in texts:
            print(await agent.invoke_async(text))


asyncio.run(main(*sys.argv[1:]))
