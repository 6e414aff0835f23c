"""Anthropic's memory tool, `memory_20250818`, on a memory folder: for the SDK's tool runner and for loops of one's own. Floor 7.

With a client that awaits, on a memory that is open:

    tool = AsyncMemoryTool(memory)
    await client.beta.messages.tool_runner(model=..., max_tokens=..., messages=..., tools=[tool]).until_done()

With one that doesn't:

    with open_memory_tool("memory") as tool:
        client.beta.messages.tool_runner(model=..., max_tokens=..., messages=..., tools=[tool]).until_done()
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mdmemory.adapters import bridge
from mdmemory.adapters.connection import extra
from mdmemory.agent.dialects import Dialect
from mdmemory.agent.memory_commands import MemoryCommands
from mdmemory.backends.protocol import Backend
from mdmemory.errors import MdmemoryError
from mdmemory.memory import Memory

with extra("anthropic"):
    from anthropic.lib.tools import BetaAbstractMemoryTool, BetaAsyncAbstractMemoryTool, ToolError


class AsyncMemoryTool(BetaAsyncAbstractMemoryTool):
    """The memory tool for `AsyncAnthropic`.

    Args:
        author: who the history says made the changes.
        dialect: `docs` as Anthropic's documentation words the answers, `sdk` as the SDK's own tool does.
    """

    def __init__(self, memory: Memory, *, author: str = "agent:", dialect: Dialect = "docs", **options: Any) -> None:
        super().__init__(**options)
        self._commands = MemoryCommands(memory.folder, author, dialect)

    async def call(self, input: Any) -> str:
        """Carry out a command as the model gave it: the input of its `tool_use` block.

        Raises:
            ToolError: its text is for the model, in a `tool_result` with `is_error`.
        """
        return await _answer(self._commands, input)

    async def execute(self, command: Any) -> str:
        """Carry out a command of the SDK's types."""
        return await self.call(command)

    view = create = str_replace = insert = delete = rename = execute


class MemoryTool(BetaAbstractMemoryTool):
    """The memory tool for `Anthropic`, the client that doesn't await; made by `open_memory_tool`.

    Args:
        author, dialect: as for `AsyncMemoryTool`.
    """

    def __init__(self, memory: bridge.BridgedMemory, *, author: str = "agent:", dialect: Dialect = "docs", **options: Any) -> None:
        super().__init__(**options)
        self._commands, self._bridge = MemoryCommands(memory.memory.folder, author, dialect), memory.bridge

    def call(self, input: Any) -> str:
        """Carry out a command, as `AsyncMemoryTool.call`; from any thread."""
        return self._bridge.run(_answer(self._commands, input))

    def execute(self, command: Any) -> str:
        """Carry out a command of the SDK's types."""
        return self.call(command)

    view = create = str_replace = insert = delete = rename = execute


@contextmanager
def open_memory_tool(
    location: str | os.PathLike[str] | Backend, *, author: str = "agent:", dialect: Dialect = "docs", **options: Any
) -> Iterator[MemoryTool]:
    """Open a memory for as long as the tool on it is used.

    Args:
        location: as for `open_memory`, which takes the other options.
    """
    with bridge.open_memory(location, **options) as memory:
        yield MemoryTool(memory, author=author, dialect=dialect)


async def _answer(commands: MemoryCommands, command: Any) -> str:
    try:
        return await commands.run(command.model_dump() if hasattr(command, "model_dump") else command)
    except MdmemoryError as error:
        raise ToolError(str(error)) from error
