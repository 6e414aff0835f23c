"""Agents of frameworks as the suite uses them, and what it looks at: requests on the wire, the history, our tasks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from openai_server import Answer, OpenAIServer, ScriptedServer

from mdmemory import Memory
from mdmemory.adapters.bridge import BridgedMemory

HOME = "---\nname: Home\ndescription: city, walks\ntype: user\n---\n\nLives in Hangzhou.\n"
LINE = "- [Home](home.md) — city, walks"
BODY = "> Lives in Hangzhou."
DEPLOY = "---\nname: Deploys\ndescription: release day\ntype: project\n---\n\nOnly on Tuesdays.\n"
PICK_HOME = {"files": [{"path": "home.md", "reason": "the city"}]}
SAVE = Answer(calls=[("Write", {"file_path": "deploy.md", "content": DEPLOY})])
Messages = list[dict[str, Any]]


class Host:
    """An agent of the framework that has the memory, told "Be kind." by its instructions.

    Args:
        server: the model that it asks, named "m".
        settings: of the adapter, such as `prefix`.
    """

    def __init__(self, memory: Memory | BridgedMemory, server: OpenAIServer, **settings: Any) -> None:
        raise NotImplementedError

    async def ask(self, text: str, conversation: str = "one") -> str:
        """The reply; the framework itself keeps the conversation."""
        raise NotImplementedError

    async def stream(self, text: str) -> list[str]:
        """The reply in the pieces in which it comes."""
        raise NotImplementedError

    def ask_now(self, text: str) -> str:
        """The reply, by the framework's synchronous call."""
        raise NotImplementedError


def system(messages: Messages) -> str:
    """The system prompt of a request."""
    return "\n\n".join(text(message) for message in messages if message["role"] in ("system", "developer"))


def text(message: Mapping[str, Any]) -> str:
    """What a message of a request says."""
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def sent(server: OpenAIServer) -> list[Messages]:
    """The messages of each request."""
    return [request.json["messages"] for request in server.requests]


def written(root: Path) -> set[tuple[str, str]]:
    """Who wrote what, by the history."""
    entries = [json.loads(line) for line in (root / ".mdmemory/log.jsonl").read_text().splitlines()]
    return {(entry["author"], file["path"]) for entry in entries if "author" in entry for file in entry["files"]}


async def left_behind() -> list[str]:
    """Our tasks that still run, after those that are ending have ended."""
    for _ in range(100):
        if not running():
            return []
        await asyncio.sleep(0.01)
    return running()


def running() -> list[str]:
    """Our tasks that still run."""
    return [name for task in asyncio.all_tasks() if (name := task.get_name()).startswith("mdmemory")]


def endpoint(server: ScriptedServer) -> dict[str, str]:
    """The environment in which a client of OpenAI's or Anthropic's asks this server, and nothing else."""
    quiet = {"NO_PROXY": "127.0.0.1", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}  # LiteLLM would ask a server for prices
    quiet |= dict.fromkeys(("DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"), "1")
    names = ("OPENAI", "ANTHROPIC")
    return quiet | {f"{name}_BASE_URL": server.base_url for name in names} | {f"{name}_API_KEY": "none" for name in names}
