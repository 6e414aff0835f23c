"""smolagents, the real ones: they call synchronously, and end with a call of a tool."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from adapter_suite import AdapterSuite
from hosts import BODY, SAVE, Host, sent
from journaling import said_in
from openai_server import Answer, OpenAIServer, Request
from smolagents import CodeAgent, FinalAnswerStep, OpenAIModel, ToolCallingAgent
from smolagents.utils import AgentError

from mdmemory import Memory
from mdmemory.adapters import bridge
from mdmemory.adapters.smolagents import with_memory


class FinalAnswers(OpenAIServer):
    """A model whose plain replies are calls of `final_answer`, as smolagents want it."""

    def answer(self, request: Request) -> Answer:
        """The next answer."""
        answer = super().answer(request)
        if answer.status != 200 or answer.calls or "tools" not in request.json:
            return answer
        return Answer(calls=[("final_answer", {"answer": answer.content})], delay_s=answer.delay_s)


class Here(bridge.Bridge):
    """A bridge to the loop that runs."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()


class Smolagents(Host):
    """An agent a conversation, each in a thread."""

    def __init__(self, memory: Memory | bridge.BridgedMemory, server: OpenAIServer, **settings: Any) -> None:
        self.memory = bridge.BridgedMemory(memory, Here()) if isinstance(memory, Memory) else memory
        self.settings = settings
        self.client = {"api_base": server.base_url, "api_key": "none", "client_kwargs": {"max_retries": 0}, "retry": False}
        self.agents: dict[str, ToolCallingAgent] = {}

    def agent(self, conversation: str) -> ToolCallingAgent:
        """The agent that holds a conversation."""
        if conversation not in self.agents:
            agent = ToolCallingAgent([], OpenAIModel("m", **self.client), instructions="Be kind.", max_steps=4, verbosity_level=0)
            self.agents[conversation] = with_memory(agent, self.memory, session=conversation, **self.settings)
        return self.agents[conversation]

    async def ask(self, text: str, conversation: str = "one") -> str:
        """The reply."""
        return str(await asyncio.to_thread(self.agent(conversation).run, text, reset=False))

    def ask_now(self, text: str) -> str:
        """The reply."""
        return str(self.agent("one").run(text))


class TestSmolagents(AdapterSuite):
    """All of it; what is done in a thread is interrupted, not cancelled, and what comes in a stream are steps."""

    host, name, server, model = Smolagents, "smolagents", FinalAnswers, FinalAnswers

    async def test_streaming(self, root: Path) -> None:
        """The steps come one by one, with the hint in the first call, and the reply is in the journal."""
        with FinalAnswers([SAVE, "By the lake."]) as server, bridge.open_memory(root) as memory:
            agent = Smolagents(memory, server).agent("one")
            steps = list(agent.run("Any walks in my city?", stream=True))
        assert len(steps) > 2 and isinstance(steps[-1], FinalAnswerStep) and steps[-1].output == "By the lake."
        assert BODY in json.dumps(sent(server)[0]) and said_in(root, "one")[-1] == ("assistant", "By the lake.")

    async def test_a_cancelled_run_leaves_nothing_behind(self, root: Path) -> None:
        """An interrupted run leaves the user's message in the journal, and the next run is whole."""
        asked = threading.Event()

        def answer(request: Any) -> Answer | str:
            asked.set()
            return Answer(calls=SAVE.calls, delay_s=0.3) if len(server.requests) == 1 else "By the lake."

        with FinalAnswers(answer) as server, bridge.open_memory(root) as memory:
            host = Smolagents(memory, server)
            run = asyncio.create_task(host.ask("Any walks in my city?"))
            await asyncio.to_thread(asked.wait, 20)
            host.agent("one").interrupt()
            with pytest.raises(AgentError, match="interrupted"):
                await run
            assert said_in(root, "one") == [("user", "Any walks in my city?")]
            assert await host.ask("Well?") == "By the lake."
            assert said_in(root, "one")[1:] == [("user", "Well?"), ("assistant", "By the lake.")]

    def test_an_agent_that_writes_code(self, root: Path) -> None:
        """A CodeAgent calls the memory's tools from its code, by position or by name; what they answer is not in the journal."""
        code = [f"<code>\n{code}\n</code>" for code in ("print(Read('home.md'))", "final_answer('By the lake.')")]
        with OpenAIServer(code) as server, bridge.open_memory(root) as memory:
            client = Smolagents(memory, server).client
            agent = with_memory(CodeAgent([], OpenAIModel("m", **client), verbosity_level=0), memory, session="one")
            assert agent.run("Any walks in my city?") == "By the lake."
        assert BODY in json.dumps(sent(server)[0]) and "def Read(" in json.dumps(sent(server)[0])
        assert "Lives in Hangzhou.\\n" in json.dumps(sent(server)[1])
        assert said_in(root, "one") == [
            ("user", "Any walks in my city?"),
            ("assistant", ""),
            ("tool", ""),
            ("assistant", "By the lake."),
        ]
