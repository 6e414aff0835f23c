"""An AgentScope workspace as the place of a memory: its folder, its parameters, its model, its messages. Floor 7."""

from __future__ import annotations

import asyncio
import json
import posixpath
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from contextvars import ContextVar
from typing import Any

from mdmemory.adapters.agentscope_shell import WorkspaceShell
from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.adapters.connection import Connection, Options, extra
from mdmemory.backends.protocol import Backend
from mdmemory.backends.shell import ShellBackend
from mdmemory.config import Config
from mdmemory.errors import ConfigError
from mdmemory.memory import Memory, open_memory
from mdmemory.render import render

with extra("agentscope"):
    from agentscope.message import Msg, TextBlock
    from agentscope.middleware import AgenticMemoryMiddleware
    from agentscope.tool import BackendBase, LocalBackend

Parameters = AgenticMemoryMiddleware.Parameters
DEFAULTS = Parameters()
AGENTS_MODEL: ContextVar[Any] = ContextVar("mdmemory_agents_model")
"""The model of the agent that replies, which chooses files for hints unless the parameters have another."""


class Workspace:
    """Where AgenticMemoryMiddleware would keep its files, and what it is set to; or a memory that is open already."""

    def __init__(
        self,
        folder: str,
        backend: BackendBase | None,
        memory: Memory | BridgedMemory | None,
        parameters: Any,
        prefix: str,
        options: Options,
    ) -> None:
        if parameters.retrieval_max_tokens_per_frontmatter != DEFAULTS.retrieval_max_tokens_per_frontmatter:
            raise ConfigError("retrieval_max_tokens_per_frontmatter can't be set here; retrieval_max_files limits what is shown")
        self._folder, self._given, self._parameters, self._prefix, self._options = folder, memory, parameters, prefix, options
        self._remote = None if backend is None or isinstance(backend, LocalBackend) else backend
        self._opening, self._stack = asyncio.Lock(), AsyncExitStack()
        self._connection: Connection | None = None

    async def connect(self) -> Connection:
        """The memory, open until `close`; there the agent alone decides what to save, and searches if nothing else does."""
        ours: Options = {"mode": "both" if self._parameters.retrieval_async else "agent", "write_back": "off"}
        async with self._opening:
            if self._connection is None and self._given is not None:
                self._connection = Connection(self._given, None, self._prefix, self._options)
            elif self._connection is None:
                self._connection = Connection(await self._open(), None, self._prefix, {**ours, **self._options})
            return self._connection

    async def _open(self) -> Memory:
        place: str | Backend = ShellBackend(WorkspaceShell(self._remote), self._folder) if self._remote else self._folder
        config = Config(
            index_max_bytes=4 * self._parameters.memory_max_tokens,
            hint_max_tokens=self._parameters.retrieval_max_tokens_per_md,
            selector_max_files=self._parameters.retrieval_max_files,
        )
        return await self._stack.enter_async_context(open_memory(place, model=self._ask, config=config))

    async def close(self) -> None:
        """Close the memory."""
        await self._stack.aclose()

    def instructed(self, prompt: str) -> str:
        """The prompt with instructions of the user's own, and with where the files are for tools that want whole paths."""
        if self._given is not None:
            return prompt
        own = self._parameters.memory_instructions
        own = "" if own == DEFAULTS.memory_instructions else own.replace("{memory_dir}", self._folder)
        return "\n\n".join(filter(None, [prompt, own, render("workspace", folder=self._folder)]))

    def arguments(self, text: str) -> dict[str, Any] | None:
        """A call's arguments with the path as the memory has it; None when it names a file that is elsewhere."""
        arguments: dict[str, Any] = json.loads(text or "{}")
        path = arguments.get("file_path")
        if isinstance(path, str) and posixpath.isabs(path):
            inside = posixpath.relpath(path, posixpath.abspath(self._folder))
            if self._given is not None or inside.startswith(".."):
                return None
            arguments["file_path"] = inside
        return arguments

    async def _ask(self, messages: Sequence[Mapping[str, str]], *, schema: Mapping[str, Any] | None = None) -> Any:
        own = self._parameters.retrieval_instructions
        first = [] if own == DEFAULTS.retrieval_instructions else [{"role": "system", "content": own}]
        said = [Msg(name=one["role"], role=one["role"], content=[TextBlock(text=one["content"])]) for one in [*first, *messages]]
        model = self._parameters.retrieval_model or AGENTS_MODEL.get()
        return (await model.generate_structured_output(said, structured_model=dict(schema or {}))).content
