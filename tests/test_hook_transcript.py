"""Claude Code's transcripts as the journal takes them; test_claude_agent.py in frameworks has real ones."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmemory.files.journal import Message
from mdmemory.hooks.transcript import from_hooks, read_transcript

FOLDER = "/srv/memory"
AT = "2026-11-30T03:42:06.297Z"


def line(kind: str, uuid: str, content: Any, **more: Any) -> str:
    """A line of a transcript."""
    message = {"role": kind, "content": content, **({"id": more.pop("id")} if "id" in more else {})}
    return json.dumps({"type": kind, "uuid": uuid, "message": message, "timestamp": AT, "sessionId": "s", **more}) + "\n"


def use(id: str, name: str, **given: str) -> list[dict[str, Any]]:
    """A call of a tool."""
    return [{"type": "tool_use", "id": id, "name": name, "input": given}]


def result(id: str, content: Any) -> list[dict[str, Any]]:
    """What it answered."""
    return [{"type": "tool_result", "tool_use_id": id, "content": content}]


def read(place: Path, text: str, start: int = 0) -> list[Message]:
    """The messages of a transcript with this text."""
    place.write_text(text)
    found = read_transcript(place, start, FOLDER)
    assert found is not None
    return list(found.messages)


def test_what_was_said_with_calls_and_answers(tmp_path: Path) -> None:
    """C8: a message whose blocks are lines of their own is one again; thinking, attachments and other entries are no part of it."""
    user, called, answer, reply = read(
        tmp_path / "t.jsonl",
        json.dumps({"type": "queue-operation", "content": "Run it."})
        + "\n"
        + line("user", "u1", "Run it.")
        + json.dumps({"type": "attachment", "uuid": "a1", "attachment": {"content": ["<memory-hint>…"]}})
        + "\n"
        + line("assistant", "u2", [{"type": "thinking", "thinking": "Hm."}], id="m1")
        + line("assistant", "u3", [{"type": "text", "text": "I run it."}], id="m1")
        + line("assistant", "u4", use("c1", "Bash", command="make"), id="m1")
        + line("user", "u5", result("c1", [{"type": "text", "text": "ok"}]))
        + line("assistant", "u6", [{"type": "text", "text": "Done."}], id="m2"),
    )
    assert (user.role, user.text, user.id, user.at.isoformat()) == ("user", "Run it.", "u1", "2026-11-30T03:42:06+00:00")
    [call] = called.data["tool_calls"]
    assert called.text == "I run it." and call["function"] == {"name": "Bash", "arguments": '{"command": "make"}'}
    assert (answer.role, answer.text, answer.data["tool_call_id"]) == ("tool", "ok", "c1")
    assert reply.data == {"role": "assistant", "content": "Done."}


@pytest.mark.parametrize(
    "called",
    [
        use("c1", "mcp__memory__Read", file_path="home.md"),
        use("c1", "mcp__plugin_mdmemory_x__recall", query="home"),
        use("c1", "Read", file_path=f"{FOLDER}/home.md"),
        use("c1", "Grep", path=FOLDER),
    ],
)
def test_what_came_of_the_memory_is_left_out(tmp_path: Path, called: list[dict[str, Any]]) -> None:
    """A1: else memories would be drawn from memories: its tools, the agent's own tools on its files, and hints."""
    text = (
        line("user", "u1", "Where do I live?\n<memory-hint>\n> Hangzhou\n</memory-hint>")
        + line("assistant", "u2", called, id="m1")
        + line("user", "u3", result("c1", "Lives in Hangzhou."))
        + line("assistant", "u4", [{"type": "text", "text": "In Hangzhou."}], id="m2")
    )
    assert [message.text for message in read(tmp_path / "t.jsonl", text)] == ["Where do I live?", "In Hangzhou."]


@pytest.mark.parametrize("mark", ["isSidechain", "isMeta", "isCompactSummary"])
def test_what_nobody_said_is_left_out(tmp_path: Path, mark: str) -> None:
    """The talk of subagents, what the agent adds by itself, and its summaries."""
    text = line("user", "u1", "Summary of all", **{mark: True}) + line("user", "u2", "Hello")
    assert [message.text for message in read(tmp_path / "t.jsonl", text)] == ["Hello"]


def test_it_is_read_from_where_the_last_look_ended(tmp_path: Path) -> None:
    """A line that is being written is read the next time; when the file was replaced by a shorter one, all of it."""
    place, first, second = tmp_path / "t.jsonl", line("user", "u1", "Äh"), line("user", "u2", "Two")
    place.write_text(first + second[:20])
    found = read_transcript(place, 0, FOLDER)
    assert found and [message.text for message in found.messages] == ["Äh"] and found.end == len(first.encode())
    assert [message.text for message in read(place, first + second, found.end)] == ["Two"]
    assert [message.text for message in read(place, second, 10_000)] == ["Two"]


def test_what_is_no_transcript(tmp_path: Path) -> None:
    """A file that is missing, a folder, a pipe, no path at all, or another format: then the hooks' own fields are taken."""
    os.mkfifo(tmp_path / "pipe")
    codex = {"timestamp": AT, "type": "response_item", "payload": {"type": "message", "role": "user", "content": []}}
    for text in ('{"role": "user"}\n[]\nx\n', f"{json.dumps(codex)}\n"):
        (tmp_path / "t").write_text(text)
        assert [read_transcript(tmp_path / name, 0, FOLDER) for name in ("nope", ".", "pipe", "a\0", "\ud800", "t")] == [None] * 6


JSON = st.recursive(st.none() | st.text(max_size=3) | st.integers(), lambda inner: st.lists(inner, max_size=2), max_leaves=4)
ODD = st.dictionaries(st.sampled_from("type uuid message timestamp content".split()), JSON | st.sampled_from(["user", "assistant"]))


@given(st.lists(ODD | st.builds(lambda content: json.loads(line("user", "u1", content)), JSON | st.lists(ODD)) | JSON))
def test_no_entry_breaks_it(tmp_path_factory: pytest.TempPathFactory, entries: list[Any]) -> None:
    """Formats change: what is not understood is left out."""
    place = tmp_path_factory.getbasetemp() / "odd.jsonl"
    place.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    found = read_transcript(place, 0, FOLDER)
    assert found is None or all(message.role in ("user", "assistant", "tool") for message in found.messages)


def test_the_hooks_own_fields_have_ids_that_stay() -> None:
    """C8: the same prompt in the same turn is the same message, in another turn or session another one."""
    first, again, other = (from_hooks("s", turn, ["Yes"], "Ok")[0].id for turn in ("1", "1", "2"))
    assert first == again != other and from_hooks("t", "1", ["Yes"], "Ok")[0].id != first
    assert from_hooks("s", "1", ["", "\ud800"], "") == []
