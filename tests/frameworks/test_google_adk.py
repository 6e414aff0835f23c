"""Google's ADK, the real one, on a model of another provider by LiteLLM."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import AsyncIterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from adapter_suite import AdapterSuite
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.events import Event
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.genai import types
from hosts import HOME, Host, sent
from openai_server import OpenAIServer

from mdmemory import Memory, open_memory
from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.adapters.google_adk import MemoryPlugin

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else importing LiteLLM asks a server for prices
from google.adk.models.lite_llm import LiteLlm


class ADK(Host):
    """A runner with the plugin."""

    def __init__(self, memory: Memory | BridgedMemory, server: OpenAIServer, **settings: Any) -> None:
        model = LiteLlm("openai/m", api_base=server.base_url, api_key="none", num_retries=0)
        agent = LlmAgent(name="host", instruction="Be kind.", model=model)
        app = App(name="app", root_agent=agent, plugins=[MemoryPlugin(memory, **settings)])
        self.runner = Runner(app=app, session_service=InMemorySessionService(), auto_create_session=True)

    def events(self, text: str, conversation: str, config: RunConfig | None = None) -> AsyncIterator[Event]:
        """What comes of a message."""
        message = types.Content(role="user", parts=[types.Part(text=text)])
        return self.runner.run_async(user_id="u", session_id=conversation, new_message=message, run_config=config)

    async def ask(self, text: str, conversation: str = "one") -> str:
        """The reply."""
        texts = [_text(event) async for event in self.events(text, conversation)]
        return texts[-1]

    async def stream(self, text: str) -> list[str]:
        """The pieces."""
        events = self.events(text, "one", RunConfig(streaming_mode=StreamingMode.SSE))
        return [_text(event) async for event in events if event.partial and _text(event)]

    def ask_now(self, text: str) -> str:
        """The reply."""
        message = types.Content(role="user", parts=[types.Part(text=text)])
        return [_text(event) for event in self.runner.run(user_id="u", session_id="one", new_message=message)][-1]


def _text(event: Event) -> str:
    parts = (event.content.parts if event.content else None) or []
    return "".join(part.text or "" for part in parts)


class TestADK(AdapterSuite):
    """All of it."""

    host, name = ADK, "google_adk"

    async def test_with_an_older_watchdog_each_look_is_a_scan(self, root: Path, caplog: pytest.LogCaptureFixture) -> None:
        """ADK wants a watchdog that can't tell of lost events, so each look is a scan, and what a person changes is seen."""
        caplog.set_level(logging.INFO, "mdmemory")
        with self.model(["Where?", "What?", "By the lake."]) as server:
            async with open_memory(root) as memory:
                host = self.host(memory, server)
                await host.ask("Hello")
                await host.ask("Hello")
                (root / "home.md").write_text(HOME.replace("Hangzhou", "Suzhou"))
                await host.ask("Any walks in my city?")
        assert version("watchdog").startswith("6.") and "watchdog is older than 7.1" in caplog.text
        assert "> Lives in Suzhou." in json.dumps(sent(server)[-1])
