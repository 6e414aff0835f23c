"""The memory in AgentScope: `Agent(…, middlewares=[MemoryMiddleware(workdir=…)])`. Floor 7."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Unpack
from weakref import WeakKeyDictionary

from mdmemory.adapters.agentscope_workspace import Parameters, Workspace, note, text_of
from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.adapters.connection import Connection, Options, Run, extra
from mdmemory.memory import Memory

with extra("agentscope"):
    from agentscope.agent import Agent
    from agentscope.event import ReplyEndEvent, ReplyFinishedReason
    from agentscope.message import HintBlock, Msg, TextBlock, ToolResultState
    from agentscope.middleware import MiddlewareBase
    from agentscope.permission import PermissionBehavior, PermissionDecision
    from agentscope.tool import BackendBase, FunctionTool, ToolResponse

Next = Callable[..., AsyncIterator[Any]]
ALLOWED = PermissionDecision(PermissionBehavior.ALLOW, "the memory's own policy decides")


class MemoryMiddleware(MiddlewareBase):
    """A memory for agents, in the place of AgentScope's AgenticMemoryMiddleware and made in the same way.

    Args:
        workdir, memory_dir: the memory's folder is `memory_dir` in `workdir`.
        parameters: those of AgenticMemoryMiddleware.
        backend: a workspace's; without one the folder is on this machine.
        memory: an open one, in the place of all of these.
        prefix: stands before the names of the memory's tools.
        options: `user`, `agent`, `mode` and `write_back`, see `Memory.session`.
    """

    Parameters = Parameters

    def __init__(
        self,
        *,
        workdir: str = ".",
        memory_dir: str = "Memory",
        parameters: Parameters | None = None,
        backend: BackendBase | None = None,
        memory: Memory | BridgedMemory | None = None,
        prefix: str = "",
        **options: Unpack[Options],
    ) -> None:
        self._workspace = Workspace(workdir, memory_dir, parameters or Parameters(), backend, memory)
        self._prefix, self._options = prefix, options
        self._connection: Connection | None = None
        self._runs: WeakKeyDictionary[Agent, Run] = WeakKeyDictionary()

    async def list_tools(self) -> list[Any]:
        """The memory's tools, for the agent's toolkit: `Toolkit(tools=await middleware.list_tools())`."""
        return [
            FunctionTool(_unreachable, tool.name, tool.description, dict(tool.input_schema), permission=ALLOWED)
            for tool in (await self._connected()).tools
        ]

    async def on_reply(self, agent: Agent, input_kwargs: Any, next_handler: Next) -> AsyncIterator[Any]:
        """Make the reply a turn; one that waits for a person goes on with the same."""
        self._workspace.model = agent.model
        said, ended = text_of(input_kwargs.get("inputs")), None
        if said is not None or agent not in self._runs:
            connection = await self._connected()
            self._runs[agent] = await connection.begin(said or "", agent.state.session_id, is_first=not agent.state.context)
        async with self._runs[agent] as run:
            async for item in next_handler(**input_kwargs):
                if isinstance(item, ReplyEndEvent):
                    ended = item.finished_reason
                if isinstance(item, Msg) and ended in (ReplyFinishedReason.COMPLETED, ReplyFinishedReason.EXCEED_MAX_ITERS):
                    note(run, agent.state.context[-1])
                    await run.finish(item.get_text_content() or "")
                elif isinstance(item, Msg) and ended:
                    await run.cancel()
                yield item

    async def on_system_prompt(self, agent: Agent, current_prompt: str) -> str:
        """Put the instructions and the index behind the agent's own."""
        run = self._runs.get(agent)
        return await run.prompt(self._workspace.instructed(current_prompt)) if run else current_prompt

    async def on_reasoning(
        self, agent: Agent, input_kwargs: dict[str, Any], next_handler: Callable[..., Any]
    ) -> AsyncIterator[Any]:
        """Add the hint that is ready to the conversation."""
        if hint := await self._runs[agent].hint():
            agent.state.append_context(agent.name, [HintBlock(hint=hint, source="memory")])
        async for event in next_handler(**input_kwargs):
            yield event

    async def on_acting(self, agent: Agent, input_kwargs: Any, next_handler: Next) -> AsyncIterator[Any]:
        """Answer calls of the memory's tools, and calls of AgentScope's own Read, Write and Edit on the memory's files."""
        call = input_kwargs["tool_call"]
        connection, arguments = await self._connected(), self._workspace.arguments(call.input)
        if arguments is None or call.name not in [tool.name for tool in connection.tools]:
            async for chunk in next_handler(**input_kwargs):
                yield chunk
            return
        result = await self._runs[agent].call(call.name, arguments)
        state = ToolResultState.ERROR if result.is_error else ToolResultState.SUCCESS
        yield ToolResponse(content=[TextBlock(text=result.text)], state=state)

    async def close(self) -> None:
        """Close the memory, if this opened it."""
        await self._workspace.close()

    async def _connected(self) -> Connection:
        if self._connection is None:
            options: Options = {**self._workspace.options, **self._options}
            self._connection = Connection(await self._workspace.memory(), None, self._prefix, options)
        return self._connection


def _unreachable(**_: Any) -> str:
    raise NotImplementedError("the memory's tools are answered by MemoryMiddleware; give it to the agent")
