"""The memory in LangChain: `create_agent(model, middleware=[MemoryMiddleware(memory)])`. Floor 7."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Unpack

from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.adapters.connection import Connection, Options, Run, extra, unreachable
from mdmemory.memory import Memory

with extra("langchain"):
    from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain_core.messages import SystemMessage, ToolMessage
    from langchain_core.tools import StructuredTool
    from langgraph.channels.untracked_value import UntrackedValue
    from langgraph.prebuilt.tool_node import ToolCallRequest
    from langgraph.runtime import Runtime

    from mdmemory.adapters.langgraph import begin, end, hint_message


class MemoryState(AgentState[Any]):
    """The agent's state, with the run of the memory, which no checkpoint keeps."""

    memory_run: Annotated[Any, UntrackedValue, PrivateStateAttr]


class MemoryMiddleware(AgentMiddleware[Any, Any, Any]):
    """A memory for an agent, in calls of either kind.

    Args:
        memory: an open one; for `invoke` and `stream`, one from `mdmemory.adapters.bridge`.
        session, prefix, options: see `Connection`; a conversation is LangGraph's thread.
    """

    state_schema = MemoryState

    def __init__(
        self, memory: Memory | BridgedMemory, *, session: str | None = None, prefix: str = "", **options: Unpack[Options]
    ) -> None:
        super().__init__()
        self._connection = Connection(memory, session, prefix, options)
        self.tools = [
            StructuredTool(name=tool.name, description=tool.description, args_schema=dict(tool.input_schema), func=unreachable)
            for tool in self._connection.tools
        ]

    async def abefore_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        """Begin the run where it has not begun, and add the hint that is ready to the conversation."""
        run = await self._run(state)
        return {"memory_run": run, "messages": hint_message(await run.hint())}

    def before_model(self, state: Any, runtime: Runtime[Any]) -> dict[str, Any]:
        """The same in a synchronous call."""
        return self._connection.run(self.abefore_model(state, runtime))

    async def awrap_model_call(self, request: ModelRequest[Any], handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Put the instructions and the index behind the agent's own."""
        async with request.state["memory_run"] as run:
            return await handler(await _prompted(run, request))

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[Any], Any]) -> Any:
        """The same in a synchronous call."""
        with request.state["memory_run"] as run:
            return handler(self._connection.run(_prompted(run, request)))

    async def awrap_tool_call(self, request: ToolCallRequest, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Answer the calls of the memory's tools."""
        async with await self._run(request.state) as run:
            return await _answer(run, request) if request.tool in self.tools else await handler(request)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[Any], Any]) -> Any:
        """The same in a synchronous call."""
        with self._connection.run(self._run(request.state)) as run:
            return self._connection.run(_answer(run, request)) if request.tool in self.tools else handler(request)

    async def aafter_agent(self, state: Any, runtime: Runtime[Any]) -> None:
        """End the run with the reply."""
        await end(await self._run(state), state["messages"])

    def after_agent(self, state: Any, runtime: Runtime[Any]) -> None:
        """The same in a synchronous call."""
        self._connection.run(self.aafter_agent(state, runtime))

    async def _run(self, state: Any) -> Run:
        """The run, which has to begin again when a person was asked in its middle, perhaps in another process."""
        return state.get("memory_run") or await begin(self._connection, state["messages"])


async def _prompted(run: Run, request: ModelRequest[Any]) -> ModelRequest[Any]:
    own = request.system_message.text if request.system_message else ""
    return request.override(system_message=SystemMessage(await run.prompt(own)))


async def _answer(run: Run, request: ToolCallRequest) -> ToolMessage:
    call = request.tool_call
    result = await run.call(call["name"], call["args"])
    return ToolMessage(result.text, tool_call_id=call["id"], name=call["name"], status="error" if result.is_error else "success")
