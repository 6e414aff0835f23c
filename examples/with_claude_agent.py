"""An agent of the Claude Agent SDK with a memory: python examples/with_claude_agent.py MODEL FOLDER MESSAGE ..."""

import asyncio
import sys

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage

import mdmemory
from mdmemory.adapters.claude_agent import with_memory


async def main(model: str, folder: str, *texts: str) -> None:
    """Hold a conversation; the key comes from ANTHROPIC_API_KEY."""
    own = ClaudeAgentOptions(model=model, system_prompt="You are a helpful assistant.", tools=[])
    async with mdmemory.open_memory(folder) as memory, with_memory(own, memory) as options, ClaudeSDKClient(options) as client:
        for text in texts:
            await client.query(text)
            async for message in client.receive_response():
                if isinstance(message, ResultMessage):
                    print(message.result)


asyncio.run(main(*sys.argv[1:]))
