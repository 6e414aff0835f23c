"""The memory in Strands Agents: `Agent(plugins=[MemoryPlugin(memory)])`. Floor 7."""

from __future__ import annotations

import json
from typing import Any, Unpack

from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.adapters.connection import Connection, Options, Run, extra, text_of
from mdmemory.agent.tools import Tool
from mdmemory.memory import Memory

with extra("strands"):
    from strands import Agent
    from strands.hooks import AfterInvocationEvent, BeforeInvocationEvent, BeforeModelCallEvent
    from strands.middleware import InvokeModelContext, InvokeModelStage
    from strands.plugins import Plugin
    from strands.tools import PythonAgentTool

RUN = "mdmemory"
"""The place of a run in the state of its invocation: the run, and where in the agent's messages it began."""


class MemoryPlugin(Plugin):
    """A memory for agents.

    Args:
        memory: an open one; for `agent(…)`, one from `mdmemory.adapters.bridge`.
        session, prefix, options: see `Connection`; a conversation is the agent's `session_id`.
    """

    name = "mdmemory"

    def __init__(
        self, memory: Memory | BridgedMemory, *, session: str | None = None, prefix: str = "", **options: Unpack[Options]
    ) -> None:
        super().__init__()
        self._connection = Connection(memory, session, prefix, options)

    def init_agent(self, agent: Agent) -> None:
        """Put the memory's tools, hooks and prompt into an agent."""
        agent.tool_registry.process_tools([_tool(tool) for tool in self._connection.tools])
        agent.add_hook(self._begin, BeforeInvocationEvent)
        agent.add_hook(_add_hint, BeforeModelCallEvent)
        agent.add_hook(_end, AfterInvocationEvent)
        agent.add_middleware(InvokeModelStage.Input, _add_prompt)

    async def _begin(self, event: BeforeInvocationEvent) -> None:
        agent, said = event.agent, "\n".join(text_of(message["content"]) for message in event.messages or [])
        run = await self._connection.begin(said, agent.session_id, is_first=not agent.messages)
        event.invocation_state[RUN] = run, len(agent.messages)


async def _add_hint(event: BeforeModelCallEvent) -> None:
    run: Run = event.invocation_state[RUN][0]
    if hint := await run.hint():
        event.agent.messages[-1]["content"].append({"text": hint})  # what a user said or tools answered


async def _add_prompt(context: InvokeModelContext) -> InvokeModelContext:
    run: Run = context.invocation_state[RUN][0]
    own = context.system_prompt
    if isinstance(own, list):
        return context.replace(system_prompt=[*own, {"text": await run.prompt()}])
    return context.replace(system_prompt=await run.prompt(own or ""))


async def _end(event: AfterInvocationEvent) -> None:
    run, began = event.invocation_state[RUN]
    for message in event.agent.messages[began:]:
        parts = message["content"]
        if calls := [part["toolUse"] for part in parts if "toolUse" in part]:
            run.called([(call["toolUseId"], call["name"], json.dumps(call["input"])) for call in calls], text_of(parts))
        for result in [part["toolResult"] for part in parts if "toolResult" in part]:
            run.answered(result["toolUseId"], text_of(result["content"]))
    if event.result and event.result.stop_reason not in ("interrupt", "cancelled"):
        await run.finish(text_of(event.result.message["content"]))
    else:
        await run.cancel()


def _tool(tool: Tool) -> PythonAgentTool:
    async def call(use: Any, **state: Any) -> Any:
        result = await state[RUN][0].call(tool.name, use["input"])
        status = "error" if result.is_error else "success"
        return {"toolUseId": use["toolUseId"], "status": status, "content": [{"text": result.text}]}

    schema: Any = {"json": dict(tool.input_schema)}
    return PythonAgentTool(tool.name, {"name": tool.name, "description": tool.description, "inputSchema": schema}, call)
