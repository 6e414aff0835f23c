"""The Claude Agent SDK, the real one, with the Claude Code that it brings; and that with the hooks of the command line."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import claude_agent_sdk
import pytest
from adapter_suite import AdapterSuite
from anthropic_server import AnthropicServer
from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, HookMatcher, ResultError, ResultMessage, StreamEvent, query
from command import environment, mdmemory
from hosts import BODY, HOME, LINE, Host, endpoint, left_behind, sent, system, text
from journaling import said_in
from openai_server import Answer, Request

from mdmemory import Memory, open_memory
from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.adapters.claude_agent import PREFIX, with_memory
from mdmemory.errors import ConfigError

CLAUDE = Path(claude_agent_sdk.__file__).parent / "_bundled/claude"


class ClaudeServer(AnthropicServer):
    """Anthropic's messages, whose requests are kept as OpenAI's would be: so the suite reads them.

    Args:
        own: the tools whose calls are the memory's.
    """

    def __init__(self, *script: Any, own: Collection[str] = ("Write", "Read", "Add")) -> None:
        super().__init__(*script)
        self.own = own

    def answer(self, request: Request) -> Answer:
        """The next answer."""
        asked = request.json
        if "messages" not in asked or "count_tokens" in request.path:
            return Answer("not here", status=404)
        prompt = "\n\n".join(block["text"] for block in asked["system"] if "cc_version" not in block["text"])
        tools = [
            {"type": "function", "function": {"name": tool["name"].removeprefix(PREFIX), "parameters": tool.get("input_schema")}}
            for tool in asked.get("tools", ())
        ]
        messages = [{"role": "system", "content": prompt}, *map(_plain, asked["messages"])]
        answer = super().answer(replace(request, json={**asked, "messages": messages, "tools": tools}))
        return replace(answer, calls=[(f"{PREFIX}{name}" if name in self.own else name, given) for name, given in answer.calls])


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message without the marks of the provider's cache; what hooks add, in a system message of its own, counts as a user's."""
    content = message["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    unmarked = [{key: value for key, value in block.items() if key != "cache_control"} for block in blocks]
    unmarked = [{"text": str(block["content"]), **block} if block["type"] == "tool_result" else block for block in unmarked]
    return {"role": "assistant" if message["role"] == "assistant" else "user", "content": unmarked}


class ClaudeAgent(Host):
    """A query a message, which resumes the conversation."""

    def __init__(self, memory: Memory | BridgedMemory, server: AnthropicServer, **settings: Any) -> None:
        self.memory, self.settings = memory, settings
        self.options = ClaudeAgentOptions(
            model="m", system_prompt="Be kind.", tools=[], setting_sources=[], env=endpoint(server), include_partial_messages=True
        )
        self.begun: dict[str, str] = {}

    async def messages(self, said: str, conversation: str) -> list[Any]:
        """What a query brings."""
        options = replace(self.options, resume=self.begun.get(conversation))
        async with with_memory(options, self.memory, session=conversation, **self.settings) as options:
            messages = [message async for message in query(prompt=said, options=options)]
        self.begun[conversation] = messages[-1].session_id
        return messages

    async def ask(self, text: str, conversation: str = "one") -> str:
        """The reply."""
        last = (await self.messages(text, conversation))[-1]
        assert isinstance(last, ResultMessage)
        return str(last.result)

    async def stream(self, text: str) -> list[str]:
        """The pieces."""
        events = [message.event for message in await self.messages(text, "one") if isinstance(message, StreamEvent)]
        return [event["delta"]["text"] for event in events if event.get("delta", {}).get("type") == "text_delta"]


class TestClaudeAgent(AdapterSuite):
    """All of it, save a prefix of one's own, since tools have that of their server, and synchronous calls, which there are none."""

    host, name, server, model = ClaudeAgent, "claude_agent", ClaudeServer, ClaudeServer
    test_a_prefix_keeps_names_apart = None
    test_synchronous_calls = None

    async def test_a_failing_model_leaves_nothing_behind(self, root: Path) -> None:
        """Claude Code's own words for the error are the result, nothing goes on after it, and the next run is whole."""
        mended: list[bool] = []
        with ClaudeServer(lambda _: "By the lake." if mended else Answer("broken", status=400)) as server:
            async with open_memory(root) as memory:
                host = ClaudeAgent(memory, server)
                with pytest.raises(ResultError, match="broken"):
                    await host.ask("Any walks in my city?")
                assert await left_behind() == []
                mended.append(True)
                assert await host.ask("Well?") == "By the lake."
        assert said_in(root, "one") == [("user", "Any walks in my city?"), ("user", "Well?"), ("assistant", "By the lake.")]

    async def test_a_client_holds_a_conversation(self, root: Path) -> None:
        """AM5: several messages in one block: each file comes once, and all of it is one conversation of the journal."""
        with ClaudeServer(["By the lake.", "You are welcome."]) as server:
            async with open_memory(root) as memory, self.client(server, memory) as client:
                for said in ("Any walks in my city?", "Thanks for the walks in my city!"):
                    await client.query(said)
                    assert [message async for message in client.receive_response()][-1].is_error is False
        assert [json.dumps(messages).count(BODY) for messages in sent(server)] == [1, 1]
        assert [role for role, _ in said_in(root, "one")] == ["user", "assistant"] * 2

    async def test_an_interrupted_reply_is_not_in_the_journal(self, root: Path) -> None:
        """The next message is whole."""
        slow = Answer("late " * 50, chunk_delay_s=0.1)
        with ClaudeServer(lambda _: slow if len(server.requests) == 1 else "By the lake.") as server:
            async with open_memory(root) as memory, self.client(server, memory) as client:
                await client.query("Any walks in my city?")
                while not server.requests:
                    await asyncio.sleep(0.01)
                await client.interrupt()
                [_ async for _ in client.receive_response()]
                await client.query("Well?")
                [_ async for _ in client.receive_response()]
        assert said_in(root, "one") == [("user", "Any walks in my city?"), ("user", "Well?"), ("assistant", "By the lake.")]

    async def test_what_the_user_set_stays(self, root: Path) -> None:
        """Hooks, allowed tools and a preset; the memory's tools stand beside Claude Code's, whose answers are kept, too."""
        seen: list[str] = []

        async def own(given: Any, use: str | None, context: Any) -> dict[str, Any]:
            seen.append(given["hook_event_name"])
            return {}

        preset = {"type": "preset", "preset": "claude_code", "append": "Be kind."}
        made = Answer(calls=[("Bash", {"command": "echo made by $((40 + 2))", "description": "try"})])
        with ClaudeServer([made, "Hello."]) as server:
            mine = replace(
                self.options(server),
                system_prompt=preset,
                tools=None,
                allowed_tools=["Bash"],
                hooks={"Stop": [HookMatcher(hooks=[own])], "PreToolUse": []},
            )
            async with open_memory(root) as memory, with_memory(mine, memory, session="one") as options:
                assert options.allowed_tools == ["Bash", "mcp__memory"] and options.hooks.keys() > {"PreToolUse", "Stop"}
                [_ async for _ in query(prompt="Hello", options=options)]
        assert seen == ["Stop"] and mine.hooks["Stop"] != options.hooks["Stop"] and mine.system_prompt is preset
        prompt = system(sent(server)[0])
        assert prompt.index("Be kind.") < prompt.index(LINE) and "You are Claude Code" in prompt
        names = [tool["function"]["name"] for tool in server.requests[0].json["tools"]]
        assert {"Bash", "Search", "Add"} <= {*names} and names.count("Read") == 2
        assert said_in(root, "one")[2:] == [("tool", "made by 42"), ("assistant", "Hello.")]

    async def test_what_can_not_be_added_to_is_said(self, root: Path) -> None:
        """Options that name files."""
        async with open_memory(root) as memory:
            for options in (
                ClaudeAgentOptions(mcp_servers="servers.json"),
                ClaudeAgentOptions(system_prompt={"type": "file", "path": "p.md"}),
            ):
                with pytest.raises(ConfigError, match="is a file here; give"):
                    async with with_memory(options, memory):
                        pass
            custom = ClaudeAgentOptions(system_prompt={"type": "custom", "prompt": "Be kind."})
            async with with_memory(custom, memory) as options:
                assert options.system_prompt["prompt"].startswith("Be kind.\n\n# Memory")

    @asynccontextmanager
    async def client(self, server: AnthropicServer, memory: Memory) -> AsyncIterator[ClaudeSDKClient]:
        """A client with the memory."""
        async with with_memory(self.options(server), memory, session="one") as options, ClaudeSDKClient(options) as client:
            yield client

    def options(self, server: AnthropicServer) -> ClaudeAgentOptions:
        """Those of the host."""
        return ClaudeAgent(None, server).options  # type: ignore[arg-type]  # which opens nothing


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A search path on which `mdmemory` and `claude` are."""
    shim = tmp_path / "bin/mdmemory"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mdmemory "$@"\n')
    shim.chmod(0o755)
    (shim.parent / "claude").symlink_to(CLAUDE)
    return f"{shim.parent}:{os.environ['PATH']}"


class TestClaudeCode:
    """What the command line prints for Claude Code, in Claude Code itself."""

    def test_it_calls_the_hooks(self, tmp_path: Path, path: str) -> None:
        """AM2, AM5, C8: index and hint are in the first call of the model, and what was said and done is in the journal, once."""
        memory = tmp_path / "memory"
        memory.mkdir()
        (memory / "home.md").write_text(HOME)
        settings = tmp_path / "settings.json"
        settings.write_text(mdmemory("hook", "--config", "claude-code", "-f", memory, cwd=tmp_path, PATH=path).stdout)
        made = Answer("I look.", calls=[("Bash", {"command": "echo made by $((40 + 2))", "description": "try"})])
        read = Answer(calls=[("Read", {"file_path": str(memory / "home.md")})])
        command = ["claude", "--settings", str(settings), "--allowedTools", "Bash,Read", "--model", "m", "-p"]
        with ClaudeServer([made, read, "By the lake.", "You are welcome."], own=()) as server:
            env = environment(**endpoint(server), PATH=path)
            for more in (["Any walks in my city?"], ["Thanks!", "--continue"]):
                done = subprocess.run(
                    [*command, *more], cwd=tmp_path, env=env, input="", capture_output=True, text=True, check=False
                )
                assert done.returncode == 0, done.stdout + done.stderr
        first = "\n".join(map(text, sent(server)[0]))
        assert LINE in first and f"The memory's folder is {memory}" in first and first.index("Any walks") < first.index(BODY)
        assert json.dumps(sent(server)[3]).count(BODY) == 1 and "Lives in Hangzhou" in text(sent(server)[2][-1])
        [place] = memory.glob("journal/*/*/*.md")
        first_turn = [
            ("user", "Any walks in my city?"),
            ("assistant", "I look."),
            ("tool", "made by 42"),
            ("assistant", "By the lake."),
        ]
        assert said_in(memory, place.stem) == [*first_turn, ("user", "Thanks!"), ("assistant", "You are welcome.")]

    def test_it_starts_the_server(self, tmp_path: Path, path: str) -> None:
        """V8: told of it by the snippet, it is connected."""
        env = environment(PATH=path, DISABLE_TELEMETRY="1", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1")
        add = mdmemory("mcp", tmp_path / "notes", "--config", "claude-code", cwd=tmp_path, PATH=path).stdout
        for command in (add, "claude mcp get memory"):
            done = subprocess.run(
                ["sh", "-c", command], cwd=tmp_path, env=env, input="", capture_output=True, text=True, check=True
            )
        assert "Connected" in done.stdout and str(tmp_path / "notes") in done.stdout
