"""An agent of the OpenAI Agents SDK with a memory: python examples/with_openai_agents.py MODEL FOLDER MESSAGE ..."""

import asyncio
import sys

from agents import Agent, RunConfig, Runner, SQLiteSession

import mdmemory
from mdmemory.adapters.openai_agents import with_memory


async def main(model: str, folder: str, *texts: str) -> None:
    """Hold a conversation; the key comes from OPENAI_API_KEY."""
    assistant = Agent("assistant", instructions="You are a helpful assistant.", model=model)
    settings = RunConfig(tracing_disabled=True)
    async with mdmemory.open_memory(folder) as memory:
        session = memory.session()
        history = SQLiteSession(session.id)
        for text in texts:
            async with with_memory(assistant, memory, session=session.id, config=settings) as (agent, config):
                result = await Runner.run(agent, text, session=history, run_config=config)
            print(result.final_output)


asyncio.run(main(*sys.argv[1:]))
