"""Long-term memory for agents: a folder of Markdown files that people can read and edit.

    async with mdmemory.open_memory("memory") as memory:
        session = memory.session("monday")
        turn = await session.turn("Which database do we use?")
        system = await turn.system_prompt("You are a coding agent.")
        hint = await turn.take_hint(wait_s=0.3)
        await turn.finish(await ask(system, hint, turn.tools))

The public names are below; they are looked up when first used, so that importing the package stays cheap.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers know the name and take it for true; importing typing would double the cost of a start
if TYPE_CHECKING:
    from mdmemory.agent.context import Context
    from mdmemory.agent.hints import Hint
    from mdmemory.agent.session import Session
    from mdmemory.agent.tools import Tool, ToolResult, Toolset
    from mdmemory.agent.turn import Turn
    from mdmemory.config import Config
    from mdmemory.errors import Conflict, MdmemoryError
    from mdmemory.files.changes import Append, Create, Delete, Rename, Replace
    from mdmemory.files.journal import Message
    from mdmemory.files.memory_file import MemoryFile
    from mdmemory.folder.memory_folder import MemoryFolder
    from mdmemory.folder.mounts import Mount
    from mdmemory.folder.permissions import read_only
    from mdmemory.memory import Memory, open_memory
    from mdmemory.models import Model, ScriptedModel
    from mdmemory.recall.ranking import Match

__version__ = "0.1.0"

__all__ = [
    "Append",
    "Config",
    "Conflict",
    "Context",
    "Create",
    "Delete",
    "Hint",
    "Match",
    "MdmemoryError",
    "Memory",
    "MemoryFile",
    "MemoryFolder",
    "Message",
    "Model",
    "Mount",
    "Rename",
    "Replace",
    "ScriptedModel",
    "Session",
    "Tool",
    "ToolResult",
    "Toolset",
    "Turn",
    "open_memory",
    "read_only",
]

_NAMES_BY_MODULE = {
    "mdmemory.agent.context": "Context",
    "mdmemory.agent.hints": "Hint",
    "mdmemory.agent.session": "Session",
    "mdmemory.agent.turn": "Turn",
    "mdmemory.agent.tools": "Tool ToolResult Toolset",
    "mdmemory.config": "Config",
    "mdmemory.errors": "Conflict MdmemoryError",
    "mdmemory.files.changes": "Append Create Delete Rename Replace",
    "mdmemory.files.journal": "Message",
    "mdmemory.files.memory_file": "MemoryFile",
    "mdmemory.folder.memory_folder": "MemoryFolder",
    "mdmemory.folder.mounts": "Mount",
    "mdmemory.folder.permissions": "read_only",
    "mdmemory.memory": "Memory open_memory",
    "mdmemory.models": "Model ScriptedModel",
    "mdmemory.recall.ranking": "Match",
}


if not TYPE_CHECKING:  # to a type checker, a misspelt name must not look like a public one

    def __getattr__(name: str) -> object:
        from importlib import import_module

        for module, names in _NAMES_BY_MODULE.items():
            if name in names.split():
                value = globals()[name] = getattr(import_module(module), name)
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
