"""The memory in the Claude Agent SDK: `async with with_memory(options, memory) as options:` around a conversation. Floor 7."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Unpack

from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.adapters.connection import Connection, Options, Run, extra, text_of
from mdmemory.agent.tools import Tool
from mdmemory.errors import ConfigError
from mdmemory.memory import Memory

with extra("claude-agent"):
    from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, SdkMcpTool, ToolAnnotations, create_sdk_mcp_server

PREFIX = "mcp__memory__"
EVENTS = "UserPromptSubmit", "PostToolBatch", "Stop"


@asynccontextmanager
async def with_memory(
    options: ClaudeAgentOptions, memory: Memory | BridgedMemory, /, *, session: str | None = None, **more: Unpack[Options]
) -> AsyncIterator[ClaudeAgentOptions]:
    """The options with a memory, for one conversation within the block: a client, or a query.

    Args:
        session, more: see `Connection`; without a session it is the one that the options name or resume.
    """
    if not isinstance(options.mcp_servers, dict):
        raise ConfigError("mcp_servers is a file here; give a dictionary, to which the memory's server can be added")
    id = session or options.session_id or options.resume or uuid.uuid4().hex[:12]
    attached = _Attached(Connection(memory, id, PREFIX, more))
    server = create_sdk_mcp_server("memory", tools=list(map(attached.tool, attached.connection.tools)))
    servers = {**options.mcp_servers, "memory": {**server, "alwaysLoad": True}}  # not behind the search for tools
    hooks = options.hooks or {}
    hooks = {**hooks, **{event: [*hooks.get(event, ()), HookMatcher(hooks=[attached.on])] for event in EVENTS}}
    allowed = [*options.allowed_tools, "mcp__memory"]
    prompt = await attached.connection.prompt(is_first=not (options.resume or options.continue_conversation))
    system = _joined(options.system_prompt, prompt)
    try:
        yield replace(options, system_prompt=system, mcp_servers=servers, allowed_tools=allowed, hooks=hooks)
    finally:
        if attached.run:
            await attached.run.cancel()


class _Attached:
    """What belongs to one conversation."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.run: Run | None = None

    def tool(self, tool: Tool) -> Any:
        """A tool of the memory."""

        async def call(arguments: dict[str, Any]) -> dict[str, Any]:
            assert self.run is not None
            result = await self.run.call(tool.name, arguments)
            return {"content": [{"type": "text", "text": result.text}], "is_error": result.is_error}

        hints = ToolAnnotations(readOnlyHint=tool.read_only)
        return SdkMcpTool(tool.name.removeprefix(PREFIX), tool.description, dict(tool.input_schema), call, hints)

    async def on(self, given: Any, use: str | None, context: Any) -> Any:
        """Answer a hook: a prompt begins a run, the stop ends it, and hints come before each call of the model."""
        event = given["hook_event_name"]
        if event == "UserPromptSubmit":
            if self.run:
                await self.run.cancel()
            self.run = await self.connection.begin(given["prompt"])
        elif self.run is None or given.get("agent_id"):
            return {}
        elif event == "Stop":
            await self.run.finish(given.get("last_assistant_message") or "")
            return {}
        else:
            calls = given["tool_calls"]
            self.run.called((call["tool_use_id"], call["tool_name"], json.dumps(call["tool_input"])) for call in calls)
            for call in calls:
                self.run.answered(call["tool_use_id"], text_of(call["tool_response"]))
        hint = await self.run.hint()
        return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": hint}} if hint else {}


def _joined(own: Any, prompt: str) -> Any:
    """The system prompt with the memory's behind it, in whichever form it is."""
    if own is None or isinstance(own, str):
        return f"{own}\n\n{prompt}" if own else prompt
    key = {"preset": "append", "custom": "prompt"}.get(own["type"])
    if key is None:
        raise ConfigError("system_prompt is a file here; give its text, to which the memory's can be added")
    return {**own, key: _joined(own.get(key), prompt)}
