"""The memory in smolagents: `with_memory(agent, memory)`. Floor 7."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from typing import Any, Unpack

from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.adapters.connection import Connection, Options, Run, extra
from mdmemory.adapters.smolagents_tool import MemoryTool, message

with extra("smolagents"):
    from smolagents import ActionStep, ChatMessage, FinalAnswerStep, MultiStepAgent
    from smolagents.models import MessageRole


def with_memory(
    agent: MultiStepAgent, memory: BridgedMemory, /, *, session: str | None = None, prefix: str = "", **options: Unpack[Options]
) -> MultiStepAgent:
    """Give an agent a memory, and return it: its tools, its model and its `run` are others from then on.

    Args:
        memory: from `mdmemory.adapters.bridge`: smolagents calls synchronously.
        session, prefix, options: see `Connection`; a conversation goes on with `reset=False`.
    """
    attached = _Attached(agent, Connection(memory, session, prefix, options))
    agent.tools |= {tool.name: MemoryTool(tool, attached.call) for tool in attached.connection.tools}
    agent.model = copy(agent.model)  # which the user may have given to other agents too
    for name in ("generate", "generate_stream"):
        if ask := getattr(agent.model, name, None):
            setattr(agent.model, name, partial(attached.ask, ask))
    agent.run = attached.run
    return agent


class _Attached:
    """What belongs to one agent, which does one run at a time."""

    def __init__(self, agent: MultiStepAgent, connection: Connection) -> None:
        self.agent, self.connection = agent, connection
        self.inner_run = agent.run
        self.turn: Run | None = None
        self._conversation = ""

    def run(self, task: str, stream: bool = False, reset: bool = True, **more: Any) -> Any:
        """What `agent.run` is: a run that is a turn."""
        began = 0 if reset else len(self.agent.memory.steps)
        self._conversation = self._conversation if began else uuid.uuid4().hex[:12]
        turn = self.turn = self.connection.run(self.connection.begin(task, self._conversation, is_first=not began))
        with turn:
            result = self.inner_run(task, stream=stream, reset=reset, **more)
            if stream:
                return self._streamed(turn, result, began)
            self._finish(turn, getattr(result, "output", result), began)
            return result

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Call a tool of the memory."""
        assert self.turn is not None
        return self.connection.run(self.turn.call(name, arguments)).text

    def ask(self, ask: Callable[..., Any], messages: list[ChatMessage], *given: Any, **named: Any) -> Any:
        """Ask the model, which is also told the instructions, the index and the hints; smolagents forgets them after the call."""
        own, run = self.agent.memory.system_prompt.system_prompt, self.connection.run
        if self.turn and messages[0] == message(MessageRole.SYSTEM, own):  # else it makes a plan
            told = run(self.turn.hinted(messages, partial(message, MessageRole.USER)))
            messages = [message(MessageRole.SYSTEM, run(self.turn.prompt(own))), *told[1:]]
        return ask(messages, *given, **named)

    def _streamed(self, turn: Run, steps: Iterator[Any], began: int) -> Iterator[Any]:
        with turn:
            for step in steps:
                if isinstance(step, FinalAnswerStep):
                    self._finish(turn, step.output, began)
                yield step

    def _finish(self, turn: Run, reply: Any, began: int) -> None:
        names = [tool.name for tool in self.connection.tools]
        for step in self.agent.memory.steps[began:]:
            calls = [call for call in getattr(step, "tool_calls", None) or () if call.name != "final_answer"]
            if isinstance(step, ActionStep) and calls and not step.is_final_answer:
                turn.called([(call.id, call.name, json.dumps(call.arguments, default=str)) for call in calls])
                of_memory = any(f"{name}(" in str(step.code_action) for name in names)  # else memories came of memories
                told = next((call for call in calls if call.name in names), calls[-1])
                for call in calls:  # what they answered is told together
                    turn.answered(call.id, "" if of_memory or call is not told else step.observations or "")
        self.connection.run(turn.finish(str(reply)))
