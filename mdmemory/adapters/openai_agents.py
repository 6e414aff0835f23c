"""The memory in the OpenAI Agents SDK: `async with with_memory(agent, memory) as (agent, config):` around a run. Floor 7."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from inspect import isawaitable
from typing import Any, Unpack

from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.adapters.connection import Connection, Options, Run, extra, text_of
from mdmemory.adapters.openai_agents_handoffs import watched
from mdmemory.agent.tools import Tool
from mdmemory.memory import Memory

with extra("openai-agents"):
    from agents import Agent, FunctionTool, RunConfig
    from agents.run import CallModelData, ModelInputData
    from agents.tool_context import ToolContext


@asynccontextmanager
async def with_memory(
    agent: Agent[Any],
    memory: Memory | BridgedMemory,
    /,
    *,
    config: RunConfig | None = None,
    session: str | None = None,
    prefix: str = "",
    **options: Unpack[Options],
) -> AsyncIterator[tuple[Agent[Any], RunConfig]]:
    """The agent with a memory, and the configuration to run it with: once, within the block.

    Args:
        memory: an open one.
        config: your own settings.
        session, prefix, options: see `Connection`.
    """
    attached = _Attached(Connection(memory, session, prefix, options), agent, config or RunConfig())
    mine = agent.clone(tools=[*agent.tools, *map(attached.tool, attached.connection.tools)])
    try:
        yield watched(mine, attached.end), replace(attached.config, call_model_input_filter=attached.filter)
    finally:
        if attached.run:
            await attached.run.cancel()


class _Attached:
    """What belongs to one run."""

    def __init__(self, connection: Connection, agent: Agent[Any], config: RunConfig) -> None:
        self.connection, self.agent, self.config = connection, agent, config
        self.run: Run | None = None
        self._noted = 0

    async def filter(self, call: CallModelData[Any]) -> ModelInputData:
        """What the model is to see: the memory's instructions, and the hints, which the SDK forgets after the call."""
        data = call.model_data
        if call.agent.name == self.agent.name:
            run = self.run = self.run or await self._begin(data.input)
            self._note(run, data.input)
            data.instructions = await run.prompt(data.instructions or "")
            data.input = await run.hinted(data.input, lambda hint: {"role": "user", "content": hint})
        if (own := self.config.call_model_input_filter) is not None:
            filtered = own(call)
            data = await filtered if isawaitable(filtered) else filtered
        return data

    def tool(self, tool: Tool) -> FunctionTool:
        """A tool of the memory."""

        async def invoke(context: ToolContext[Any], arguments: str) -> str:
            assert self.run is not None
            return (await self.run.call(tool.name, arguments)).text

        return FunctionTool(tool.name, tool.description, dict(tool.input_schema), invoke, strict_json_schema=False)

    async def end(self, output: Any) -> None:
        """Note the reply."""
        if self.run:
            await self.run.finish(str(output))

    async def _begin(self, items: list[Any]) -> Run:
        said, self._noted = [text_of(item.get("content")) for item in items if item.get("role") == "user"], len(items)
        return await self.connection.begin(said[-1] if said else "", is_first=len(items) == 1)

    def _note(self, run: Run, items: list[Any]) -> None:
        """Have the calls of tools, and what they answered, in the journal."""
        for item in items[self._noted :]:
            if (kind := item.get("type")) == "function_call":
                run.called([(item["call_id"], item["name"], item["arguments"])])
            elif kind == "function_call_output":
                run.answered(item["call_id"], str(item["output"]))
        self._noted = len(items)
