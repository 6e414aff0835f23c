"""An agent of AgentScope with a memory: python examples/with_agentscope.py MODEL FOLDER MESSAGE ..."""

import asyncio
import os
import sys

from agentscope.agent import Agent
from agentscope.credential import OpenAICredential
from agentscope.message import UserMsg
from agentscope.model import OpenAIChatModel
from agentscope.tool import Toolkit

import mdmemory
from mdmemory.adapters.agentscope import MemoryMiddleware


async def main(name: str, folder: str, *texts: str) -> None:
    """Hold a conversation; the key comes from OPENAI_API_KEY."""
    key = OpenAICredential(api_key=os.environ["OPENAI_API_KEY"], base_url=os.environ.get("OPENAI_BASE_URL"))
    async with mdmemory.open_memory(folder) as memory:
        middleware = MemoryMiddleware(memory=memory)
        toolkit = Toolkit(tools=await middleware.list_tools())
        model = OpenAIChatModel(key, name, stream=False)
        agent = Agent("assistant", "You are a helpful assistant.", model, toolkit, middlewares=[middleware])
        for text in texts:
            print((await agent.reply(UserMsg("user", text))).get_text_content())


asyncio.run(main(*sys.argv[1:]))
