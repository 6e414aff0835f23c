"""A model that answers from a script: for tests and demos. Floor 1."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from mdmemory.errors import InvalidReply
from mdmemory.models.replies import Message, Reply

Scripted = Reply | Exception | Callable[[Sequence[Message]], Reply | Awaitable[Reply]]


class ScriptedModel:
    """Gives the replies in their order.

    Args:
        replies: text, dicts, exceptions to raise, or (async) functions of the messages.
        delay_s: before each reply.
    """

    def __init__(self, replies: Iterable[Scripted], *, delay_s: float = 0.0) -> None:
        self.calls: list[list[Message]] = []
        self._replies = list(replies)
        self._delay_s = delay_s

    async def __call__(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Reply:
        """The next reply.

        Raises:
            InvalidReply: the script has come to its end.
        """
        self.calls.append(list(messages))
        if len(self.calls) > len(self._replies):
            raise InvalidReply(f"The scripted model was asked {len(self.calls)} times, but has {len(self._replies)} replies.")
        reply = self._replies[len(self.calls) - 1]
        await asyncio.sleep(self._delay_s)
        if isinstance(reply, Exception):
            raise reply
        if not callable(reply):
            return reply
        made = reply(messages)
        return await made if inspect.isawaitable(made) else made
