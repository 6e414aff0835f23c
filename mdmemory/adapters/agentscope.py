"""The memory in AgentScope: `Agent(…, middlewares=[MemoryMiddleware(workdir=…)])`. Floor 7."""

from __future__ import annotations

import posixpath
from collections.abc import AsyncIterator, Callable
from typing import Any, Unpack
from weakref import WeakKeyDictionary

from mdmemory.adapters.agentscope_messages import WHOLE, function_tool, note, response, text_of
from mdmemory.adapters.agentscope_workspace import AGENTS_MODEL, Parameters, Workspace
from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.adapters.connection import Options, Run, extra
from mdmemory.memory import Memory

with extra("agentscope"):
    from agentscope.agent import Agent
    from agentscope.event import ReplyEndEvent
    from agentscope.message import HintBlock, Msg
    from agentscope.middleware import MiddlewareBase
    from agentscope.tool import BackendBase

Next = Callable[..., AsyncIterator[Any]]


class MemoryMiddleware(MiddlewareBase):
    """A memory for agents, in the place of AgentScope's AgenticMemoryMiddleware and made in the same way.

    Args:
        workdir, memory_dir: the memory's folder is `memory_dir` in `workdir`.
        parameters: those of AgenticMemoryMiddleware.
        backend: a workspace's; without one the folder is on this machine.
        memory: an open one, in the place of all of these.
        prefix, options: see `Connection`; a conversation is the `session_id` of an agent's state.
    """

    Parameters = Parameters

    def __init__(
        self,
        *,
        workdir: str = ".",
        memory_dir: str = "Memory",
        parameters: Any = None,
        backend: BackendBase | None = None,
        memory: Memory | BridgedMemory | None = None,
        prefix: str = "",
        **options: Unpack[Options],
    ) -> None:
        place = posixpath.join(workdir, memory_dir), backend, memory
        self._workspace = Workspace(*place, parameters or Parameters(), prefix, options)
        self._runs: WeakKeyDictionary[Agent, Run] = WeakKeyDictionary()

    async def list_tools(self) -> list[Any]:
        """The memory's tools, for the agent's toolkit: `Toolkit(tools=await middleware.list_tools())`."""
        return [function_tool(tool) for tool in (await self._workspace.connect()).tools]

    async def on_reply(self, agent: Agent, input_kwargs: Any, next_handler: Next) -> AsyncIterator[Any]:
        """Make the reply a turn; one that waits for a person goes on with the same."""
        AGENTS_MODEL.set(agent.model)
        said, ended = text_of(input_kwargs.get("inputs")), None
        if said is not None or agent not in self._runs:
            connection = await self._workspace.connect()
            self._runs[agent] = await connection.begin(said or "", agent.state.session_id, is_first=not agent.state.context)
        async with self._runs[agent] as run:
            async for item in next_handler(**input_kwargs):
                if isinstance(item, ReplyEndEvent):
                    ended = item.finished_reason
                if isinstance(item, Msg) and ended in WHOLE:
                    note(run, agent.state.context[-1])
                    await run.finish(item.get_text_content() or "")
                elif isinstance(item, Msg) and ended:
                    await run.cancel()
                yield item

    async def on_system_prompt(self, agent: Agent, current_prompt: str) -> str:
        """Put the instructions and the index behind the agent's own."""
        run = self._runs.get(agent)
        return await run.prompt(self._workspace.instructed(current_prompt)) if run else current_prompt

    async def on_reasoning(self, agent: Agent, input_kwargs: Any, next_handler: Next) -> AsyncIterator[Any]:
        """Add the hint that is ready to the conversation."""
        if hint := await self._runs[agent].hint():
            agent.state.append_context(agent.name, [HintBlock(hint=hint, source="memory")])
        async for event in next_handler(**input_kwargs):
            yield event

    async def on_acting(self, agent: Agent, input_kwargs: Any, next_handler: Next) -> AsyncIterator[Any]:
        """Answer calls of the memory's tools, and calls of AgentScope's own Read, Write and Edit on the memory's files."""
        call, names = input_kwargs["tool_call"], [tool.name for tool in (await self._workspace.connect()).tools]
        arguments = self._workspace.arguments(call.input) if call.name in names else None
        if arguments is not None:
            yield response(await self._runs[agent].call(call.name, arguments))
            return
        async for chunk in next_handler(**input_kwargs):
            yield chunk

    async def close(self) -> None:
        """Close the memory, if this opened it."""
        await self._workspace.close()
