"""A tool of the memory, and a message, as smolagents have them. Floor 7."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mdmemory.adapters.connection import extra
from mdmemory.agent import tools

with extra("smolagents"):
    from smolagents import ChatMessage, Tool
    from smolagents.models import MessageRole


class MemoryTool(Tool):
    """A tool whose arguments come by position or by name.

    Args:
        call: calls it, by name and arguments.
    """

    skip_forward_signature_validation = True
    output_type = "string"

    def __init__(self, tool: tools.Tool, call: Callable[[str, dict[str, Any]], str]) -> None:
        schema = tool.input_schema
        self.name, self.description, self._call = tool.name, tool.description, call
        self.inputs = {name: {**told, "nullable": name not in schema["required"]} for name, told in schema["properties"].items()}
        super().__init__()

    def forward(self, *given: Any, **named: Any) -> str:
        """Call it."""
        return self._call(self.name, {**dict(zip(self.inputs, given, strict=False)), **named})


def message(role: MessageRole, text: str) -> ChatMessage:
    """A message of one text."""
    return ChatMessage(role, [{"type": "text", "text": text}])
