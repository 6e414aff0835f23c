"""agentscope's AgenticMemoryMiddleware in a real agent: it lists and reads the folder at each reply, and a model chooses."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from agentscope.agent import Agent
from agentscope.credential import CredentialBase
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import TextBlock, ToolCallBlock, UserMsg
from agentscope.middleware import AgenticMemoryMiddleware
from agentscope.model import ChatModelBase, ChatResponse
from child import serve


class Scripted(ChatModelBase):
    """Chooses no file, and takes as long for its reply as the retrieval beside it takes."""

    def __init__(self) -> None:
        super().__init__(CredentialBase(), "scripted", self.Parameters(), stream=False)
        self.formatter = OpenAIChatFormatter()
        self.chosen = asyncio.Event()

    async def _call_api(self, model_name: str, messages: Any, tools: Any = None, *_: Any, **__: Any) -> ChatResponse:
        if tools and tools[0]["function"]["name"] == "generate_structured_output":
            self.chosen.set()
            call = ToolCallBlock(id="1", name="generate_structured_output", input=json.dumps({"selected_files": []}))
            return ChatResponse(content=[call], is_last=True)
        await self.chosen.wait()
        return ChatResponse(content=[TextBlock(text="Done.")], is_last=True)


class Memory:
    """An agent with the middleware; a new one for each reply, so that no conversation grows."""

    async def build(self, folder: Path) -> None:
        """Nothing to build: give it the folder."""
        self.folder = folder

    async def ask(self, query: str) -> list[str]:
        """One reply; which files it would have chosen is the model's affair."""
        memory = AgenticMemoryMiddleware(workdir=str(self.folder.parent), memory_dir=self.folder.name)
        agent = Agent("agent", "You are an agent.", Scripted(), middlewares=[memory])
        await agent.reply(UserMsg(name="user", content=query))
        return []


if __name__ == "__main__":
    serve(Memory())
