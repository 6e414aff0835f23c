"""agentscope's AgenticMemoryMiddleware in a real agent that has the tools its instructions name. The argument is ADDRESS."""

from __future__ import annotations

import sys
from pathlib import Path

from agentscope.agent import Agent, InjectionConfig
from agentscope.credential import OpenAICredential
from agentscope.message import UserMsg
from agentscope.middleware import AgenticMemoryMiddleware
from agentscope.model import OpenAIChatModel
from agentscope.permission import PermissionContext, PermissionMode
from agentscope.state import AgentState
from agentscope.tool import Edit, Read, Toolkit, Write
from child import serve


class Memory:
    """One agent; before each turn its context is emptied, so that what is older comes from the memory."""

    async def build(self, folder: Path) -> None:
        """An agent with an empty folder that it may write to."""
        self.folder = folder
        model = OpenAIChatModel(OpenAICredential(api_key="none", base_url=sys.argv[1]), "scripted", stream=False)
        self.agent = Agent(
            "agent",
            "You are a helpful assistant.",
            model,
            toolkit=Toolkit(tools=[Read(), Write(), Edit()]),
            middlewares=[AgenticMemoryMiddleware(workdir=str(folder.parent), memory_dir=folder.name)],
            state=AgentState(permission_context=PermissionContext(mode=PermissionMode.BYPASS)),
            injection_config=InjectionConfig(inject_runtime_state=False),
        )

    async def ask(self, query: str) -> list[str]:
        """A whole turn; returns the memory files there are."""
        self.agent.state.context.clear()
        await self.agent.reply(UserMsg(name="user", content=query))
        paths = (path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*.md"))
        return sorted(path for path in paths if path != "MEMORY.md")


if __name__ == "__main__":
    serve(Memory())
