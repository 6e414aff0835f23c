"""The agent loop behind `mdmemory chat` and `mdmemory demo`. Floor 8."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from mdmemory.errors import InvalidReply, ModelUnavailable
from mdmemory.models import OpenAIModel

if TYPE_CHECKING:
    from mdmemory.agent.session import Session
    from mdmemory.agent.turn import Turn

Message = dict[str, Any]
OnText = Callable[[str], None]
OnEvent = Callable[[str, str], None]

_WORD: Final = re.compile(r"\s*\S+\s*|\s+")
_MAX_TARGET: Final = 60
_INTERRUPTED: Final = "Interrupted: look whether it was done."


class ChatModel(Protocol):
    """A model that streams and calls tools."""

    async def reply(self, messages: list[Message], tools: list[Message], on_text: OnText) -> Message:
        """The assistant's message in OpenAI's form; `on_text` gets each piece of its text as it comes."""
        ...


class OpenAIChat:
    """Streams from any endpoint that speaks OpenAI's chat completions.

    Args:
        model: the name by which the endpoint knows it.
        base_url: the endpoint, where it is not OpenAI's.
        api_key: instead of OPENAI_API_KEY.
        timeout_s: for each piece of a reply.
    """

    def __init__(self, model: str, base_url: str | None = None, api_key: str | None = None, *, timeout_s: float = 60.0) -> None:
        self._model = OpenAIModel(model, base_url=base_url, api_key=api_key, timeout_s=timeout_s)

    def __repr__(self) -> str:
        return f"OpenAIChat({self._model.model!r})"

    async def reply(self, messages: list[Message], tools: list[Message], on_text: OnText) -> Message:
        """Stream one message.

        Raises:
            ModelUnavailable: no answer, or the connection broke before its end.
        """
        extra: dict[str, Any] = {"tools": tools} if tools else {}
        text, calls, ended = "", _Calls(), None
        async with (
            self._model.asking() as client,
            await client.chat.completions.create(model=self._model.model, messages=messages, stream=True, **extra) as stream,
        ):
            async for chunk in stream:
                for choice in chunk.choices or ():
                    ended = choice.finish_reason or ended
                    if choice.delta is None:
                        continue
                    if choice.delta.content:
                        text += choice.delta.content
                        on_text(choice.delta.content)
                    calls.take(choice.delta.tool_calls or ())
        if ended is None:
            raise ModelUnavailable(f"openai:{self._model.model}: the reply broke off before its end. Try again.")
        return assistant(text, calls.made)

    async def close(self) -> None:
        """Close the connections."""
        await self._model.close()


class _Calls:
    """Tool calls, put together from the pieces in which they are streamed."""

    def __init__(self) -> None:
        self.made: list[Message] = []
        self._by_index: dict[int | None, Message] = {}

    def take(self, pieces: Iterable[Any]) -> None:
        for piece in pieces:
            call = self._by_index.get(piece.index)
            if call is None or (piece.id and piece.id != call["id"]):  # some servers send every call with index 0
                call = {"id": piece.id or f"call_{len(self.made)}", "type": "function", "function": {"name": "", "arguments": ""}}
                self._by_index[piece.index] = call
                self.made.append(call)
            if piece.function:
                call["function"]["name"] += piece.function.name or ""
                call["function"]["arguments"] += piece.function.arguments or ""


class ScriptedChat:
    """Plays an assistant from a script, its text word by word.

    Args:
        script: assistant messages, or functions that make one of the messages so far.
        pause_s: after each word.
    """

    def __init__(self, script: Iterable[Message | Callable[[list[Message]], Message]], *, pause_s: float = 0.0) -> None:
        self._script = list(script)
        self._played = 0
        self._pause_s = pause_s

    async def reply(self, messages: list[Message], tools: list[Message], on_text: OnText) -> Message:
        """The next message of the script.

        Raises:
            InvalidReply: the script has come to its end.
        """
        if self._played == len(self._script):
            raise InvalidReply(f"The script has {self._played} messages, and one more was asked for.")
        scripted = self._script[self._played]
        self._played += 1
        message = scripted(messages) if callable(scripted) else scripted
        for word in _WORD.findall(message.get("content") or ""):
            on_text(word)
            await asyncio.sleep(self._pause_s)
        return message


def assistant(text: str, calls: Sequence[Message] = ()) -> Message:
    """An assistant's message."""
    if calls:
        return {"role": "assistant", "content": text or None, "tool_calls": list(calls)}
    return {"role": "assistant", "content": text}


def calling(name: str, **arguments: Any) -> Message:
    """An assistant's message that calls one tool: for scripts."""
    function = {"name": name, "arguments": json.dumps(arguments)}
    return assistant("", [{"id": f"call_{name.lower()}", "type": "function", "function": function}])


async def run_turn(
    session: Session,
    chat: ChatModel,
    messages: list[Message],
    text: str,
    on_text: OnText,
    on_event: OnEvent,
    *,
    max_steps: int = 20,
) -> str:
    """Answer one message of the user with as many model and tool calls as it takes.

    Args:
        messages: the conversation so far, which this turn adds to; the system prompt is put first.
        on_event: gets "hint" or "tool" and a line for people.
        max_steps: model calls in this turn.

    Returns:
        The reply. When `max_steps` were not enough it says so.
    """
    async with session.turn(text) as turn:
        system = {"role": "system", "content": await turn.system_prompt()}
        messages[: bool(messages and messages[0]["role"] == "system")] = [system]
        messages.append({"role": "user", "content": text})
        try:
            for _ in range(max_steps):
                hint = await turn.take_hint()
                if hint is not None:
                    messages.append({"role": "user", "content": str(hint)})
                    on_event("hint", ", ".join(file.path for file in hint.files) or "news of the index")
                message = await chat.reply(messages, turn.tools.openai(), on_text)
                messages.append(message)
                if not message.get("tool_calls"):
                    break
                turn.record(message)
                await _call_tools(turn, messages, on_event)
            else:
                note = f"(Stopped after {max_steps} steps without a final reply.)"
                on_text(note)
                message = assistant(f"{message['content'] or ''} {note}".strip())
                messages.append(message)
        finally:
            for answer in _open_calls(messages):
                messages.append(answer)
                turn.record(answer)
        reply: str = message["content"] or ""
        await turn.finish(reply)
        if turn.status.degraded:
            on_event("hint", turn.status.degraded)
        return reply


async def _call_tools(turn: Turn, messages: list[Message], on_event: OnEvent) -> None:
    for call in messages[-1]["tool_calls"]:
        name = call["function"]["name"]
        arguments = _arguments(call["function"]["arguments"])
        if isinstance(arguments, str):
            answer, failed = arguments, True
        else:
            result = await turn.tools.call(name, arguments)
            answer, failed = result.text, result.is_error
        on_event("tool", _line(name, arguments, answer if failed else ""))
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": answer})
        turn.record(messages[-1])


def _arguments(text: str) -> dict[str, Any] | str:
    """The arguments, or what to tell the model about them."""
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError) as error:
        return f"The arguments are not valid JSON ({error}). Call the tool again with one JSON object."
    return arguments if isinstance(arguments, dict) else "The arguments must be one JSON object. Call the tool again."


def _line(name: str, arguments: Mapping[str, Any] | str, fault: str) -> str:
    target = "" if isinstance(arguments, str) else next((value for value in arguments.values() if isinstance(value, str)), "")
    line = f"{name} {_shown(target)}".rstrip()
    return f"{line}: {_shown(fault.partition('. ')[0])}" if fault else line


def _shown(text: str) -> str:
    """One short line that can't steer a terminal."""
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return line if len(line) <= _MAX_TARGET else line[: _MAX_TARGET - 3] + "..."


def _open_calls(messages: list[Message]) -> list[Message]:
    """Answers to tool calls that were cut short: models refuse a conversation with calls left open."""
    last = max((n for n, message in enumerate(messages) if message.get("tool_calls")), default=None)
    if last is None:
        return []
    answered = {message.get("tool_call_id") for message in messages[last + 1 :]}
    calls = [call for call in messages[last]["tool_calls"] if call["id"] not in answered]
    return [{"role": "tool", "tool_call_id": call["id"], "content": _INTERRUPTED} for call in calls]
