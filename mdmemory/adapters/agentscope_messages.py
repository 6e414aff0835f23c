"""What AgentScope's messages and tools are to a memory: what the user says, what the journal keeps, what is called. Floor 7."""

from __future__ import annotations

from typing import Any

from mdmemory.adapters.connection import Run, extra, unreachable
from mdmemory.agent.tools import Tool, ToolResult

with extra("agentscope"):
    from agentscope.event import ReplyFinishedReason
    from agentscope.message import Msg, TextBlock, ToolCallBlock, ToolResultBlock, ToolResultState
    from agentscope.permission import PermissionBehavior, PermissionDecision
    from agentscope.tool import FunctionTool, ToolResponse

WHOLE = ReplyFinishedReason.COMPLETED, ReplyFinishedReason.EXCEED_MAX_ITERS
"""How replies end that are replies."""
ALLOWED = PermissionDecision(PermissionBehavior.ALLOW, "the memory's own policy decides")


def function_tool(tool: Tool) -> Any:
    """A tool of the memory, without a question to the user."""
    return FunctionTool(unreachable, tool.name, tool.description, dict(tool.input_schema), permission=ALLOWED)


def response(result: ToolResult) -> Any:
    """What a tool of the memory answered."""
    state = ToolResultState.ERROR if result.is_error else ToolResultState.SUCCESS
    return ToolResponse(content=[TextBlock(text=result.text)], state=state)


def text_of(inputs: Any) -> str | None:
    """What the user says; None when the reply goes on with something else."""
    messages = inputs if isinstance(inputs, list) else [inputs]
    said = [message.get_text_content() or "" for message in messages if isinstance(message, Msg)]
    return "\n".join(said) if said else None


def note(run: Run, message: Msg) -> None:
    """Have the calls of tools, and what they answered, in the journal."""
    for block in message.content:
        if isinstance(block, ToolCallBlock):
            run.called([(block.id, block.name, block.input)])
        elif isinstance(block, ToolResultBlock):
            run.answered(block.id, "\n".join(part.text for part in block.output if isinstance(part, TextBlock)))
