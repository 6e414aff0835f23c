"""The memory in pydantic-ai: `Agent(model, capabilities=[MemoryCapability(memory)])`. Floor 7."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import partial
from typing import Any, Unpack

from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.adapters.connection import Connection, Options, Run, extra
from mdmemory.memory import Memory

with extra("pydantic-ai"):
    from pydantic_ai import AgentRunResult, FunctionToolset, RunContext, Tool
    from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
    from pydantic_ai.exceptions import ToolFailed
    from pydantic_ai.messages import ModelMessage, ModelResponse, ToolReturnPart, UserContent
    from pydantic_ai.models import ModelRequestContext


class MemoryCapability(AbstractCapability[Any]):
    """A memory for an agent.

    Args:
        memory: an open one.
        session, prefix, options: see `Connection`; a conversation is pydantic-ai's `conversation_id`.
    """

    def __init__(
        self, memory: Memory | BridgedMemory, *, session: str | None = None, prefix: str = "", **options: Unpack[Options]
    ) -> None:
        self._connection = Connection(memory, session, prefix, options)
        self._run: Run | None = None

    async def for_run(self, ctx: RunContext[Any]) -> MemoryCapability:
        """A copy, which holds what belongs to one run."""
        return copy(self)

    def get_instructions(self) -> Any:
        """The instructions and the index."""
        return self._prompt

    def get_toolset(self) -> FunctionToolset[Any]:
        """The memory's tools."""
        tools = self._connection.tools
        make = Tool[Any].from_schema
        return FunctionToolset(
            [make(partial(self._call, tool.name), tool.name, tool.description, dict(tool.input_schema)) for tool in tools]
        )

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Make the run a turn of the session."""
        run = self._run = await self._connection.begin(_text(ctx.prompt), ctx.conversation_id, is_first=not ctx.messages)
        async with run:
            result = await handler()
            _note(run, result.new_messages())
            await run.finish(str(result.output))
            return result

    async def before_model_request(self, ctx: RunContext[Any], request_context: ModelRequestContext) -> ModelRequestContext:
        """Add the hint that is ready to the conversation."""
        if self._run and (hint := await self._run.hint()):
            ctx.enqueue(hint)
        return request_context

    async def _prompt(self) -> str:
        return await self._run.prompt() if self._run else ""

    async def _call(self, name: str, /, **arguments: Any) -> str:
        assert self._run is not None
        result = await self._run.call(name, arguments)
        if result.is_error:
            raise ToolFailed(result.text)
        return result.text


def _text(prompt: str | Sequence[UserContent] | None) -> str:
    parts = [prompt] if isinstance(prompt, str) else prompt or ()
    return "\n".join(text for part in parts if isinstance(text := getattr(part, "content", part), str))


def _note(run: Run, messages: Sequence[ModelMessage]) -> None:
    """Have the calls of tools, and what they answered, in the journal."""
    for message in messages:
        if isinstance(message, ModelResponse):
            if message.tool_calls:
                calls = [(call.tool_call_id, call.tool_name, call.args_as_json_str()) for call in message.tool_calls]
                run.called(calls, message.text or "")
            continue
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                run.answered(part.tool_call_id, part.model_response_str())
