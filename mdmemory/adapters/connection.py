"""What the adapters are made of: a turn for each run of an agent, its tools, and its hints where they stood. Floor 7."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any, TypedDict, TypeVar
from weakref import WeakKeyDictionary

from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.agent.session import Session, TurnStart
from mdmemory.agent.tools import Mode, Tool, ToolResult, Toolset
from mdmemory.agent.turn import Turn
from mdmemory.agent.write_back import When
from mdmemory.errors import ConfigError, MdmemoryError
from mdmemory.memory import Memory

logger = logging.getLogger("mdmemory")
T = TypeVar("T")
_HINTS: WeakKeyDictionary[Session, list[tuple[int, Any, Any]]] = WeakKeyDictionary()
"""The hints that stand in each conversation: at which item, behind which, and what was made of them."""


class Options(TypedDict, total=False):
    """How a session is to be; see `Memory.session`."""

    user: str
    agent: str
    mode: Mode
    write_back: When


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Around the imports of a framework: where it is missing, the error says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f'There is no {error.name}. Install it: pip install "mdmemory[{name}]"', name=error.name
        ) from None


class Connection:
    """A memory as one agent of a framework is given it.

    Args:
        memory: an open one; from `mdmemory.adapters.bridge` where the framework is called synchronously.
        session: the id of the conversation; without one it is the framework's own, and where that has none each run is a new one.
        prefix: stands before the names of the tools, which otherwise may clash with others.
        options: `user`, `agent`, `mode` and `write_back`; see `Memory.session`.
    """

    def __init__(self, memory: Memory | BridgedMemory, session: str | None, prefix: str, options: Options) -> None:
        self.prefix, self._session, self._options = prefix, session, options
        self._bridge = memory.bridge if isinstance(memory, BridgedMemory) else None
        self._memory = memory.memory if isinstance(memory, BridgedMemory) else memory

    @cached_property
    def tools(self) -> list[Tool]:
        """The tools, for a framework that wants to know them before a run; each call goes to the run."""
        toolset = Toolset(self._memory.folder, "agent:", mode=self._options.get("mode", "both"))
        return [replace(tool, name=self.prefix + tool.name) for tool in toolset.tools]

    async def begin(self, text: str, conversation: str | None = None, id: str | None = None, *, is_first: bool = False) -> Run:
        """Begin a run with what the user said.

        Args:
            conversation: the framework's id of it.
            id: of the message; when a run comes again, the journal keeps what it has under this id.
            is_first: no earlier messages of it are in the model's context, so no earlier hints either.
        """
        session = self._memory.session(self._session or conversation, **self._options)
        if is_first:
            session.compacted()
            _HINTS.pop(session, None)
        turn = await self.wait(_begun(session.turn(text, id)))
        return Run(self, turn, _HINTS.setdefault(session, []))

    async def prompt(self, *, is_first: bool = False) -> str:
        """The system prompt of the conversation, for a framework that wants it before a run; "" when the folder can't be looked at.

        Args:
            is_first: as for `begin`.
        """
        session = self._memory.session(self._session, **self._options)
        if is_first:
            session.compacted()
        try:
            await self.wait(session.folder.refresh())
            return await self.wait(session.prompt())
        except MdmemoryError as error:
            logger.warning("the memory is not in the prompt: %s", error)
            return ""

    async def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it where the memory lives."""
        return await (work if self._bridge is None else self._bridge.wait(work))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do it in a synchronous call.

        Raises:
            ConfigError: the memory was opened on an event loop.
        """
        if self._bridge is None:
            work.close()
            raise ConfigError("For synchronous calls, open the memory with mdmemory.adapters.bridge.open_memory.")
        return self._bridge.run(work)


class Run:
    """One run of an agent: the user's message, and the reply to it; made by `Connection.begin`.

    A block that it heads, with `async with` or `with`, ends it when it fails.
    """

    def __init__(self, connection: Connection, turn: Turn, hints: list[tuple[int, Any, Any]]) -> None:
        self.turn = turn
        self.reply = ""
        """What will be the reply, for frameworks that tell it before the end."""
        self._connection, self._hints = connection, hints
        self._calls: list[Mapping[str, Any]] = []
        self._said = ""

    async def __aenter__(self) -> Run:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            await self.cancel()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self._connection.run(self.cancel())

    async def prompt(self, base: str = "") -> str:
        """The system prompt: `base`, the instructions and the index."""
        return await self._connection.wait(self.turn.system_prompt(base))

    async def hint(self) -> str:
        """The hint that is ready, or ""; asked for before each call of the model."""
        return str(await self._connection.wait(self.turn.take_hint()) or "")

    async def hinted(self, items: Sequence[T], make: Callable[[str], T]) -> list[T]:
        """What to send the model, for frameworks that forget what is added to it: with all hints, each where it stood first."""
        if hint := await self.hint():
            self._hints.append((len(items), list(items[-1:]), make(hint)))
        whole = list(items)
        for at, after, made in reversed(self._hints):
            if list(items[:at][-1:]) == after and at <= len(items):  # else it is another agent's view of the conversation
                whole.insert(at, made)
        return whole

    async def call(self, name: str, arguments: Mapping[str, Any] | str) -> ToolResult:
        """Call a tool of the memory."""
        return await self._connection.wait(self.turn.tools.call(name.removeprefix(self._connection.prefix), arguments))

    def called(self, calls: Iterable[tuple[str, str, str]], text: str = "") -> None:
        """Note for the journal that the model called tools; with calls before whose answers are not noted yet, it is one message.

        Args:
            calls: id, name and arguments as JSON.
        """
        names = {tool.name: tool.name.removeprefix(self._connection.prefix) for tool in self._connection.tools}
        functions = [(id, {"name": names.get(name, name), "arguments": arguments}) for id, name, arguments in calls]
        self._calls += [{"id": id, "type": "function", "function": function} for id, function in functions]
        self._said = "\n".join(filter(None, [self._said, text]))

    def answered(self, id: str, text: str) -> None:
        """Note for the journal what a tool answered."""
        self._record_calls()
        self.turn.record({"role": "tool", "tool_call_id": id, "content": text})

    async def finish(self, reply: str) -> None:
        """End the run with its reply."""
        self._record_calls()
        await self._connection.wait(self.turn.finish(reply))

    async def cancel(self) -> None:
        """End the run without one; after `finish` it changes nothing."""
        self._record_calls()
        await self._connection.wait(self.turn.cancel())

    def _record_calls(self) -> None:
        if self._calls:
            self.turn.record({"role": "assistant", "content": self._said or None, "tool_calls": self._calls})
            self._calls, self._said = [], ""


async def _begun(start: TurnStart) -> Turn:
    return await start


def text_of(content: Any) -> str:
    """The text of a message's content, which is text, or parts of which some have a text."""
    if isinstance(content, str):
        return content
    return "\n".join(part["text"] for part in content or () if isinstance(part.get("text"), str))


def unreachable(**_: Any) -> str:
    """In the place of a tool whose calls the adapter answers."""
    raise NotImplementedError("the memory's tools are answered by its middleware; give it to the agent")
