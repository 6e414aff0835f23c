"""The memory in smolagents: `with_memory(agent, memory)`. Floor 7."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from typing import Any, Unpack

from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.adapters.connection import Connection, Options, Run, extra
from mdmemory.agent import tools

with extra("smolagents"):
    from smolagents import ActionStep, ChatMessage, FinalAnswerStep, MultiStepAgent, Tool
    from smolagents.models import MessageRole


def with_memory(
    agent: MultiStepAgent, memory: BridgedMemory, *, session: str | None = None, prefix: str = "", **options: Unpack[Options]
) -> MultiStepAgent:
    """Give an agent a memory, and return it: its tools, its model and its `run` are others from then on.

    Args:
        memory: from `mdmemory.adapters.bridge`: smolagents calls synchronously.
        session: the id of the conversation; without one it is the agent's, until `run` begins anew with `reset=True`.
        prefix: stands before the names of the memory's tools.
        options: `user`, `agent`, `mode` and `write_back`, see `Memory.session`.
    """
    attached = _Attached(agent, Connection(memory, session, prefix, options))
    agent.tools |= {tool.name: _MemoryTool(tool, attached) for tool in attached.connection.tools}
    agent.model, agent.run = _MemoryModel(attached), attached.run
    return agent


class _Attached:
    """What belongs to one agent, which does one run at a time."""

    def __init__(self, agent: MultiStepAgent, connection: Connection) -> None:
        self.agent, self.connection = agent, connection
        self.model, self.inner_run = agent.model, agent.run
        self.turn: Run | None = None
        self._conversation = ""

    def run(self, task: str, stream: bool = False, reset: bool = True, **more: Any) -> Any:
        """What `agent.run` is: a run that is a turn."""
        is_first = reset or not self.agent.memory.steps
        began = 0 if reset else len(self.agent.memory.steps)
        self._conversation = uuid.uuid4().hex[:12] if is_first else self._conversation
        turn = self.turn = self.connection.run(self.connection.begin(task, self._conversation, is_first=is_first))
        with turn:
            result = self.inner_run(task, stream=stream, reset=reset, **more)
            if stream:
                return self._streamed(turn, result, began)
            self._finish(turn, getattr(result, "output", result), began)
            return result

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
                if not any(f"{name}(" in str(step.code_action) for name in names):  # else it is the memory's answer, not news
                    turn.answered(calls[-1].id, step.observations or "")
        self.connection.run(turn.finish(str(reply)))


class _MemoryModel:
    """The agent's model, which is also told the instructions, the index and the hints; smolagents forgets them after the call."""

    def __init__(self, attached: _Attached) -> None:
        self._attached = attached

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._attached.model, name)
        if name not in ("generate", "generate_stream"):
            return value
        return lambda messages, *given, **named: value(self._told(messages), *given, **named)

    def _told(self, messages: list[ChatMessage]) -> list[ChatMessage]:
        agent, run, turn = self._attached.agent, self._attached.connection.run, self._attached.turn
        system = _message(MessageRole.SYSTEM, agent.memory.system_prompt.system_prompt)
        if turn is None or messages[0] != system:  # it makes a plan
            return messages
        told = run(turn.hinted(messages, lambda hint: _message(MessageRole.USER, hint)))
        return [_message(MessageRole.SYSTEM, run(turn.prompt(agent.memory.system_prompt.system_prompt))), *told[1:]]


class _MemoryTool(Tool):
    skip_forward_signature_validation = True
    output_type = "string"

    def __init__(self, tool: tools.Tool, attached: _Attached) -> None:
        schema = tool.input_schema
        self.name, self.description, self._attached = tool.name, tool.description, attached
        self.inputs = {name: {**told, "nullable": name not in schema["required"]} for name, told in schema["properties"].items()}
        super().__init__()

    def forward(self, *given: Any, **named: Any) -> str:
        """Call it."""
        turn, arguments = self._attached.turn, {**dict(zip(self.inputs, given, strict=False)), **named}
        if turn is None:
            raise RuntimeError("the memory's tools work while the agent runs")
        return self._attached.connection.run(turn.call(self.name, arguments)).text


def _message(role: MessageRole, text: str) -> ChatMessage:
    return ChatMessage(role, [{"type": "text", "text": text}])
