"""The agent loop of `chat` and `demo`: a real memory on disk, a real client, a real server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from openai_server import Answer, OpenAIServer

from mdmemory import open_memory
from mdmemory.cli.chat_loop import OpenAIChat, ScriptedChat, assistant, calling, run_turn
from mdmemory.errors import InvalidReply, MdmemoryError, ModelUnavailable
from mdmemory.models import ScriptedModel

NOTE = """---
name: Release day
description: Which day of the week releases of the billing service go out
type: project
---
Releases of the billing service go out on Tuesdays.
"""
EVENTS = {"content-type": "text/event-stream"}
TOOLS = [{"type": "function", "function": {"name": "Read", "parameters": {"type": "object", "properties": {}}}}]


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


class Seen:
    """What a terminal would show."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.events: list[tuple[str, str]] = []

    def on_event(self, kind: str, line: str) -> None:
        self.events.append((kind, line))


async def _stream(server: OpenAIServer, pieces: list[str], tools: list[Any] = TOOLS, **settings: Any) -> dict[str, Any]:
    chat = OpenAIChat("m-1", server.base_url, "k", **settings)
    try:
        return await chat.reply([{"role": "user", "content": "Hi"}], tools, pieces.append)
    finally:
        await chat.close()


async def test_text_comes_piece_by_piece() -> None:
    """Each piece is handed on as it arrives, and the message holds the whole."""
    pieces: list[str] = []
    with OpenAIServer(["Guten Tag, Zoë! 你好"]) as server:
        message = await _stream(server, pieces)
    assert message == {"role": "assistant", "content": "Guten Tag, Zoë! 你好"}
    assert len(pieces) > 3 and "".join(pieces) == message["content"]
    sent = server.requests[0].json
    assert sent["stream"] is True and sent["tools"] == TOOLS


async def test_tool_calls_are_put_together_from_their_pieces() -> None:
    """Two calls whose arguments came in bits are whole, in order, with their ids; text beside them is kept."""
    with OpenAIServer([Answer("Let me see.", calls=[("Read", {"file_path": "a.md"}), ("Edit", '{"file_path": ')])]) as server:
        message = await _stream(server, [])
    assert message["content"] == "Let me see."
    assert [(call["id"], call["function"]) for call in message["tool_calls"]] == [
        ("call_0", {"name": "Read", "arguments": '{"file_path": "a.md"}'}),
        ("call_1", {"name": "Edit", "arguments": '{"file_path": '}),
    ]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer("It broke in the middle", drop_after=3), "no connection to 127.0.0.1:"),
        (Answer("No key", status=401), "the key was refused"),
        (Answer("slow", chunk_delay_s=3), "no answer within 0.3 s"),
        (Answer(raw=b'data: {"choices": [], "error": {"message": "out of memory"}}\n\n', headers=EVENTS), "out of memory"),
        (Answer(raw=b"<html>", headers={"content-type": "text/html"}), "broke off before its end"),
    ],
    ids=["dropped", "key", "slow", "error event", "no stream"],
)
async def test_a_stream_that_fails_is_no_reply(answer: Answer, words: str) -> None:
    """A connection lost midway, a refused key, silence, an error amid the stream: each is said, none is taken for an end."""
    with OpenAIServer(lambda _: answer) as server, pytest.raises(ModelUnavailable, match=words):
        await _stream(server, [], timeout_s=0.3 if answer.chunk_delay_s else 20.0)


async def test_a_stream_of_something_else_is_no_reply() -> None:
    """An event that is not JSON is not passed over."""
    with OpenAIServer([Answer(raw=b"data: {oops\n\n", headers=EVENTS)]) as server, pytest.raises(InvalidReply, match="base URL"):
        await _stream(server, [])


async def test_calls_without_an_index_of_their_own_stay_apart() -> None:
    """Some servers give every call the index 0 and its own id."""
    line = 'data: {{"choices": [{{"index": 0, "delta": {{"tool_calls": [{}]}}, "finish_reason": {}}}]}}\n\n'
    call = '{{"index": 0, "id": "{}", "type": "function", "function": {{"name": "Read", "arguments": "{{}}"}}}}'
    raw = line.format(call.format("one"), "null") + line.format(call.format("two"), '"tool_calls"') + "data: [DONE]\n\n"
    with OpenAIServer([Answer(raw=raw.encode(), headers=EVENTS)]) as server:
        message = await _stream(server, [])
    assert [(call["id"], call["function"]["arguments"]) for call in message["tool_calls"]] == [("one", "{}"), ("two", "{}")]


async def test_a_scripted_chat_streams_word_by_word_and_ends_with_its_script() -> None:
    """Messages and functions of the conversation are played in order; one more is an error, not silence."""
    pieces: list[str] = []
    chat = ScriptedChat([assistant(" One  two\nthree "), lambda messages: assistant(messages[-1]["content"].upper())])
    first = await chat.reply([], [], pieces.append)
    assert "".join(pieces) == first["content"] and len(pieces) == 3
    assert (await chat.reply([{"role": "user", "content": "loud"}], [], pieces.append))["content"] == "LOUD"
    with pytest.raises(InvalidReply, match="2 messages"):
        await chat.reply([], [], pieces.append)


Played = tuple[str, Seen, OpenAIServer]


async def _turn(folder: Path, script: Any, text: str, messages: list[Any] | None = None, **settings: Any) -> Played:
    seen = Seen()
    with OpenAIServer(script) as server:
        chat = OpenAIChat("m-1", server.base_url, "k")
        try:
            async with open_memory(folder) as memory:
                session = memory.session("s")
                conversation = [] if messages is None else messages
                reply = await run_turn(session, chat, conversation, text, seen.text.append, seen.on_event, **settings)
                await session.close()
        finally:
            await chat.close()
    return reply, seen, server


async def test_what_one_conversation_saves_the_next_one_is_reminded_of(tmp_path: Path) -> None:
    """AM1: a tool call over the wire saves a file; a later memory on the same folder hints at it before the first model call."""
    script = [Answer(calls=[("Write", {"file_path": "release-day.md", "content": NOTE})]), "I'll remember."]
    reply, seen, server = await _turn(tmp_path, script, "Remember: releases of the billing service are on Tuesdays.")
    assert reply == "I'll remember." == "".join(seen.text)
    assert (tmp_path / "release-day.md").read_text(encoding="utf-8") == NOTE
    assert ("tool", "Write release-day.md") in seen.events
    first, second = (request.json["messages"] for request in server.requests)
    assert [message["role"] for message in first] == ["system", "user"]
    assert [message["role"] for message in second] == ["system", "user", "assistant", "tool"]
    assert {tool["function"]["name"] for tool in server.requests[0].json["tools"]} >= {"Read", "Write", "Edit", "Delete"}

    reply, seen, server = await _turn(tmp_path, ["On Tuesdays."], "On which day do releases of the billing service go out?")
    assert reply == "On Tuesdays." and ("hint", "release-day.md") in seen.events
    system, question, hint = server.requests[0].json["messages"]
    assert "release-day.md" in system["content"] and question["content"].startswith("On which day")
    assert hint["role"] == "user" and "go out on Tuesdays" in hint["content"]


async def test_a_conversation_keeps_one_system_prompt_and_all_that_was_said(tmp_path: Path) -> None:
    """The second turn sends the first one's messages again, below one system prompt."""
    messages: list[Any] = []
    await _turn(tmp_path, ["Hello."], "Hi", messages)
    _, _, server = await _turn(tmp_path, ["Bye."], "Ciao", messages)
    sent = [(message["role"], message["content"]) for message in server.requests[0].json["messages"]]
    assert [role for role, _ in sent] == ["system", "user", "assistant", "user"]
    assert sent[1:] == [("user", "Hi"), ("assistant", "Hello."), ("user", "Ciao")]
    assert messages[-1] == {"role": "assistant", "content": "Bye."}


async def test_a_call_that_can_not_be_made_goes_back_to_the_model(tmp_path: Path) -> None:
    """Arguments that are no JSON object, a path outside and an unknown tool are answered with text, and the loop goes on."""
    calls: list[Any] = [("Read", '{"file_path": '), ("Read", "[1]"), ("Read", {"file_path": "../\x1b[2Jx.md"}), ("Fly", {})]
    reply, seen, server = await _turn(tmp_path, [Answer(calls=calls), "Sorry."], "Read it.")
    assert reply == "Sorry."
    answers = [message["content"] for message in server.requests[1].json["messages"] if message["role"] == "tool"]
    assert len(answers) == 4 and "not valid JSON" in answers[0] and "one JSON object" in answers[1]
    assert str(tmp_path) not in "".join(answers)
    lines = [line for kind, line in seen.events if kind == "tool"]
    assert [line.split(":")[0] for line in lines] == ["Read", "Read", "Read ../ [2Jx.md", "Fly"]
    assert all(line.isprintable() for line in lines)


async def test_a_model_that_never_stops_is_stopped(tmp_path: Path) -> None:
    """After the last step the reply says so, and the conversation can go on."""
    messages: list[Any] = []
    answer = Answer("Looking.", calls=[("Read", {"file_path": "MEMORY.md"})])
    reply, seen, server = await _turn(tmp_path, lambda _: answer, "Go.", messages, max_steps=3)
    assert reply == "Looking. (Stopped after 3 steps without a final reply.)"
    assert len(server.requests) == 3 and "".join(seen.text).endswith("(Stopped after 3 steps without a final reply.)")
    assert [message["role"] for message in messages] == ["system", "user", *["assistant", "tool"] * 3, "assistant"]


async def test_an_unreachable_model_leaves_the_conversation_usable(tmp_path: Path) -> None:
    """The error comes out, and the next turn works."""
    messages: list[Any] = []
    with pytest.raises(MdmemoryError, match="server failed"):
        await _turn(tmp_path, [Answer(calls=[("Read", {"file_path": "x.md"})])], "One", messages)
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool"]
    assert (await _turn(tmp_path, ["Fine."], "Two", messages))[0] == "Fine."


async def test_a_failing_selector_is_told_and_the_reply_goes_on(tmp_path: Path) -> None:
    """H4: the words' own picks are the hint, the reply is given, and people see what failed."""
    (tmp_path / "release-day.md").write_text(NOTE, encoding="utf-8")
    seen, messages = Seen(), list[Any]()
    async with open_memory(tmp_path, model=ScriptedModel([ModelUnavailable("no key")])) as memory:
        chat = ScriptedChat([assistant("On Tuesdays.")])
        question = "On which day do releases of the billing service go out?"
        assert await run_turn(memory.session("s"), chat, messages, question, seen.text.append, seen.on_event) == "On Tuesdays."
    assert next(line for kind, line in seen.events if kind == "hint") == "release-day.md"
    assert "degraded" in seen.events[-1][1] and "no key" in seen.events[-1][1]


async def test_a_reply_is_part_of_what_the_next_turn_is_about(tmp_path: Path) -> None:
    """H7: the memory is told of the reply, so that the selector sees what "again" means."""
    (tmp_path / "release-day.md").write_text(NOTE, encoding="utf-8")
    model = ScriptedModel([{"files": []}, {"files": []}])
    chat = ScriptedChat([assistant("I have deployed the Zürich gateway."), assistant("Done.")])
    messages: list[Any] = []
    async with open_memory(tmp_path, model=model) as memory:
        session = memory.session("s")
        for text in ("Deploy it.", "Do it again."):
            await run_turn(session, chat, messages, text, print, print)
    assert "Zürich gateway" in str(model.calls[1]) and "Zürich gateway" not in str(model.calls[0])


async def test_an_interrupted_turn_ends_cleanly(tmp_path: Path) -> None:
    """Cancelled while text streams or between tool calls: no task is left, no call is left open, the next turn works."""
    messages: list[Any] = []
    calls = [calling("Read", file_path="a.md"), calling("Write", file_path="b.md", content=NOTE)]
    first = assistant("", [call for message in calls for call in message["tool_calls"]])
    async with open_memory(tmp_path) as memory:
        session = memory.session("s")
        before = asyncio.all_tasks()

        async def interrupted(chat: ScriptedChat, at: str) -> None:
            running: list[asyncio.Task[str]] = []

            def stop(*_: str) -> None:
                running[0].cancel()

            on_text, on_event = (stop, print) if at == "text" else (print, stop)
            running.append(asyncio.create_task(run_turn(session, chat, messages, "Go", on_text, on_event)))
            with pytest.raises(asyncio.CancelledError):
                await running[0]

        await interrupted(ScriptedChat([assistant("one two three")], pause_s=0.01), "text")
        await interrupted(ScriptedChat([first, assistant("never")]), "event")
        await asyncio.sleep(0)
        assert asyncio.all_tasks() == before
        answers = [(m["tool_call_id"], m["content"].partition(":")[0]) for m in messages if m["role"] == "tool"]
        assert answers == [("call_read", "There is no a.md. Read . to list every memory file."), ("call_write", "Interrupted")]
        reply = await run_turn(session, ScriptedChat([assistant("Here.")]), messages, "Again", print, print)
        assert reply == "Here."
        said = [m for m in messages[1:] if not str(m["content"]).startswith("<memory-hint>")]
        assert [message.data for message in await session.messages()] == said
        await session.close()
