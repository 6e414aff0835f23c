"""The memory in Google's ADK: `Runner(…, plugins=[MemoryPlugin(memory)])`. Floor 7."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Unpack

from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.adapters.connection import Connection, Options, Run, extra
from mdmemory.agent.tools import Tool
from mdmemory.memory import Memory

with extra("google-adk"):
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.events import Event
    from google.adk.models import LlmRequest
    from google.adk.plugins.base_plugin import BasePlugin
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext
    from google.genai import types


class MemoryPlugin(BasePlugin):
    """A memory for all agents of a runner.

    Args:
        memory: an open one; for `runner.run`, one from `mdmemory.adapters.bridge`.
        session, prefix, options: see `Connection`; a conversation is ADK's session.
    """

    def __init__(
        self, memory: Memory | BridgedMemory, *, session: str | None = None, prefix: str = "", **options: Unpack[Options]
    ) -> None:
        super().__init__("mdmemory")
        self._connection = Connection(memory, session, prefix, options)
        self._runs: dict[str, Run] = {}

    async def before_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Make the invocation a turn."""
        id, session = invocation_context.invocation_id, invocation_context.session
        is_first = all(event.invocation_id == id for event in session.events)
        self._runs[id] = await self._connection.begin(_text(invocation_context.user_content), session.id, is_first=is_first)
        if task := asyncio.current_task():  # a cancelled invocation ends without a word
            task.add_done_callback(lambda _: asyncio.ensure_future(self._end(id)) if id in self._runs else None)

    async def before_model_callback(self, *, callback_context: CallbackContext, llm_request: LlmRequest) -> None:
        """Add the instructions, the index, the tools and the hints to a request; ADK forgets them after the call."""
        run = self._runs[callback_context.invocation_id]
        llm_request.append_instructions([await run.prompt()])
        llm_request.append_tools([MemoryTool(tool, run) for tool in self._connection.tools])
        llm_request.contents = await run.hinted(llm_request.contents, types.UserContent)

    async def on_event_callback(self, *, invocation_context: InvocationContext, event: Event) -> None:
        """Note the calls of tools, what they answered, and the reply."""
        id = invocation_context.invocation_id
        if event.partial or event.author == "user" or id not in self._runs:
            return
        if calls := event.get_function_calls():
            self._runs[id].called([(call.id or "", call.name or "", json.dumps(call.args)) for call in calls])
        for answer in event.get_function_responses():
            self._runs[id].answered(answer.id or "", str((answer.response or {}).get("result", answer.response)))
        if event.is_final_response() and (reply := _text(event.content)):
            self._runs[id].reply = reply

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """End the turn with the reply."""
        if (run := self._runs.get(invocation_context.invocation_id)) and run.reply:
            await run.finish(run.reply)
        await self._end(invocation_context.invocation_id)

    async def on_run_error_callback(self, *, invocation_context: InvocationContext, error: Exception) -> None:
        """End the turn without a reply."""
        await self._end(invocation_context.invocation_id)

    async def _end(self, id: str) -> None:
        if run := self._runs.pop(id, None):
            await run.cancel()


class MemoryTool(BaseTool):
    """A tool of the memory."""

    def __init__(self, tool: Tool, run: Run) -> None:
        super().__init__(name=tool.name, description=tool.description)
        self._schema, self._run = dict(tool.input_schema), run

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(name=self.name, description=self.description, parameters_json_schema=self._schema)

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, str]:
        """Call it."""
        result = await self._run.call(self.name, args)
        return {"error" if result.is_error else "result": result.text}


def _text(content: types.Content | None) -> str:
    parts = (content.parts if content else None) or []
    return "\n".join(part.text for part in parts if part.text and not part.thought)
