"""Importers: what others keep becomes files and conversations, and what has no place here is said."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from exports import NOON, as_json, chatgpt, claude, node, remembered, says, walk
from hypothesis import given
from hypothesis import strategies as st

from mdmemory.care.importers.basic_memory import plan_basic_memory
from mdmemory.care.importers.chatgpt import plan_chatgpt
from mdmemory.care.importers.claude import plan_claude
from mdmemory.care.importers.markdown import plan_markdown
from mdmemory.care.importers.mem0 import plan_mem0
from mdmemory.care.importers.plan import Plan
from mdmemory.errors import InvalidArguments
from mdmemory.files.fields import links_of
from mdmemory.files.memory_file import parse

PLANS = {"chatgpt": plan_chatgpt, "claude": plan_claude, "mem0": plan_mem0}


def reasons(plan: Plan) -> dict[str, str]:
    """Why each thing is left, by where it stands."""
    return {each.where: each.reason for each in plan.left}


def said(plan: Plan, session: str) -> list[tuple[str, str, str]]:
    """Id, role and text of a session's messages."""
    return [(message.id, message.role, message.text) for message in plan.conversations[session].messages]


def test_claude_codes_memory_comes_byte_for_byte() -> None:
    """Typed files, nested types, CLAUDE.md and the index stay as they are; what no memory can have is named with its reason."""
    files = {
        "Home.md": b"\xef\xbb\xbf---\r\nname: Home\r\ndescription: city\r\nmetadata:\r\n  type: user\r\n---\r\n\r\nLund.",
        "CLAUDE.md": b"# Rules\n\nRun the tests.\n",
        "MEMORY.md": b"- [Home](home.md) - where I live\n\nBe brief.\n",
        "broken.md": b"---\nname: a: b\n---\n",
        "latin.md": b"caf\xe9",
        "journal/2026/01/x.md": b"x",
        "home.md": b"another\n",
    }
    plan = plan_markdown(files)
    assert {key: change.data for key, change in plan.files.items()} == {
        key: files[key] for key in ("Home.md", "CLAUDE.md", "MEMORY.md")
    }
    assert reasons(plan).keys() == files.keys() - plan.files.keys() and "Home.md" in reasons(plan)["home.md"]
    assert "line 2" in reasons(plan)["broken.md"] and "UTF-8" in reasons(plan)["latin.md"]
    assert "journal" in reasons(plan)["journal/2026/01/x.md"]


BASIC = b"""---
title: Coffee Brewing
type: note
permalink: coffee/brewing
tags: [coffee, brewing]
rating: 4 # mine
---

# Coffee Brewing

## Observations
- [method] Pour over is clearer #coffee (tasted)

## Relations
- relates_to [[Bean Origins]]
"""


def test_a_note_of_basic_memory_gets_a_header_and_keeps_every_line() -> None:
    """Name, description and type are added, the old type is kept; body, relations, permalink and comments stay byte for byte."""
    plan = plan_basic_memory({"coffee/brewing.md": BASIC, "plain.md": b"# Plain\n", "MEMORY.md": b"# A note\n"})
    data = plan.files["coffee/brewing.md"].data
    file = parse("x.md", data)
    assert (file.header.name, file.header.description) == ("Coffee Brewing", "Pour over is clearer #coffee (tasted)")
    assert (file.header.type, file.header.tags) == ("reference", ("coffee", "brewing"))
    assert file.header.fields is not None and file.header.fields["entity_type"] == "note"
    assert data.decode().replace("type: reference\n", "type: note\n").startswith(BASIC.decode().split("---\n\n")[0])
    assert data.endswith(BASIC.partition(b"---\n\n")[2])
    assert [link.target for link in links_of("x.md", data)] == ["Bean Origins"]
    assert plan.files["plain.md"].data == b"# Plain\n"
    assert reasons(plan).keys() == {"MEMORY.md"}


@pytest.mark.parametrize(
    ("theirs", "ours"), [("project", "project"), ("Meeting", "project"), ("Person", "reference"), ("user",) * 2]
)
def test_the_types_of_basic_memory_become_ours(theirs: str, ours: str) -> None:
    """What is one of ours stays; projects, tasks and meetings are `project`, all else is `reference`."""
    data = BASIC.replace(b"type: note", f"type: {theirs}".encode())
    assert parse("x.md", plan_basic_memory({"x.md": data}).files["x.md"].data).header.type == ours


def test_a_memory_of_mem0_becomes_a_file_that_names_it() -> None:
    """Text, id, categories, times, scopes and metadata are in the file; the type follows the metadata or the scope."""
    item = remembered(
        "7f", "Likes green tea", categories=["food"], metadata={"room": "kitchen", "n": 3}, expiration_date="2026-01-31"
    )
    plan = plan_mem0({"export.json": as_json({"results": [item]})})
    change = plan.files["mem0:7f"]
    file = parse(change.path, change.data)
    assert (change.path, file.body) == ("user/likes-green-tea.md", "\nLikes green tea\n")
    assert (file.header.tags, file.header.source, file.header.valid_until) == (("food",), ("mem0:7f",), "2026-01-31")
    fields = dict(file.header.fields or {})
    assert (fields["created"], fields["user_id"]) == ("2025-11-30T12:00:00Z", "alice")
    assert (fields["mem0_room"], fields["mem0_n"], plan.left) == ("kitchen", "3", [])


def test_memories_of_mem0_keep_apart() -> None:
    """Equal texts get names of their own, several users folders of their own, and what is no memory is named."""
    items: list[Any] = [remembered("a1", "Likes tea"), remembered("b2", "Likes tea"), remembered("c3", "Likes tea", user_id="bob")]
    items += [
        remembered("a1", "Hates tea"),
        {"memory": "no id"},
        remembered("d4", " "),
        "text",
        {"id": "e5", "memory": "x", "user_id": None},
    ]
    plan = plan_mem0({"e.json": as_json(items)})
    assert {key: change.path for key, change in plan.files.items()} == {
        "mem0:a1": "users/alice/user/likes-tea.md",
        "mem0:b2": "users/alice/user/likes-tea-b2.md",
        "mem0:c3": "users/bob/user/likes-tea.md",
        "mem0:e5": "project/x.md",
    }
    assert reasons(plan).keys() == {"mem0:a1", "e.json[4]", "e.json[5]", "e.json[6]"}
    alike = [remembered(f"0000-same-beginning-{number}", f"{'x' * 70} {number}", metadata={"type": ["odd"]}) for number in range(5)]
    plan = plan_mem0({"e.json": as_json(alike)})
    assert len({change.path for change in plan.files.values()}) == 5 and plan.left == [], "ids that begin alike keep apart, too"


def test_a_conversation_of_chatgpt_is_the_branch_that_the_app_shows() -> None:
    """User and assistant are kept with ids and times to the second; other branches are counted and left."""
    other = node("m1b", "root", "user", "Where can I swim?")
    plan = plan_chatgpt({"conversations.json": as_json([chatgpt(other, *list(walk()["mapping"].items())[1:])])})
    conversation = plan.conversations["chatgpt-c1"]
    assert said(plan, "chatgpt-c1") == [("m1", "user", "Where can I walk?"), ("m2", "assistant", "Around the lake.")]
    assert (conversation.title, conversation.source) == ("A walk", "chatgpt:c1")
    assert [message.at for message in conversation.messages] == [
        datetime.fromtimestamp(int(NOON) + seconds, UTC) for seconds in (0, 2)
    ]
    assert {where: reason[:11] for where, reason in reasons(plan).items()} == {"chatgpt:c1#m1b": "on a branch"}


def test_what_nobody_said_to_anybody_is_left_and_named() -> None:
    """System, hidden and tool messages, reasoning, custom instructions, images and attachments each have a line in the report."""
    hidden = {"is_visually_hidden_from_conversation": True}
    image = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-1"}
    spoken = {"content_type": "audio_transcription", "text": "and a bird"}
    file = {"attachments": [{"name": "map.pdf", "id": "file-2"}]}
    chat = walk(
        node("s", "m2", "system", "Be kind."),
        node("empty", "s", "system", ""),
        node("h", "empty", "user", "secretly", metadata=hidden),
        node("i", "h", "user", type="user_editable_context"),
        node("c", "i", "assistant", "print(1)", recipient="python"),
        node("t", "c", "tool", "1", author={"role": "tool", "name": "python"}),
        node("r", "t", "assistant", "Hm", type="thoughts"),
        node("u", "r", "user", image, "What is this?", spoken, metadata=file, type="multimodal_text"),
    )
    plan = plan_chatgpt({"conversations.json": as_json([chat])})
    assert said(plan, "chatgpt-c1")[2:] == [("u", "user", "What is this?\nand a bird")]
    where = [(each.where.partition("#")[2], each.reason) for each in plan.left]
    assert where == [
        ("s", "neither the user nor the assistant says it"),
        ("h", "a message that the app hides"),
        ("i", "the user's custom instructions"),
        ("c", "a call of a tool"),
        ("t", "the output of a tool"),
        ("r", "the model's reasoning"),
        ("u: file-service://file-1", "an image"),
        ("u: map.pdf", "an attachment, whose text is not in the conversation"),
    ]


def test_conversations_of_chatgpt_with_things_missing() -> None:
    """Without a current node the newest branch counts, without a time the conversation's; loops end, and equal ids are said."""
    lost = chatgpt(node("a", "gone", "user", "Hi", create_time=None), id="lost", current_node=None)
    loop = chatgpt(node("x", "y", "user", "one"), node("y", "x", "assistant", "two"), id="loop")
    twice = chatgpt(node("same", "root", "user", "one"), node("n2", "same", "user", "two"), id="twice")
    twice["mapping"]["n2"]["message"]["id"] = "same"
    never = chatgpt(node("z", "root", "user", "when?", create_time=None), id="never", create_time=None, update_time="soon")
    more: list[Any] = [{"mapping": {}}, 7, {"id": "nomap"}, walk(), walk()]
    plan = plan_chatgpt({"conversations-000.json": as_json([lost, loop, twice, never]), "conversations-001.json": as_json(more)})
    assert said(plan, "chatgpt-lost") == [("a", "user", "Hi")] and plan.conversations["chatgpt-lost"].messages[0].at.year == 2025
    assert [text for _, _, text in said(plan, "chatgpt-loop")] == ["one", "two"]
    assert said(plan, "chatgpt-twice") == [("same", "user", "one")]
    left = reasons(plan)
    assert left["chatgpt:twice#same"] == "another message of the conversation has its id"
    assert left["chatgpt:never#z"] == "nothing says when it was said" and "chatgpt:never" in left
    assert left["chatgpt:c1"].startswith("it stands twice")
    assert left.keys() >= {f"conversations-001.json[{number}]" for number in range(3)}


def test_a_conversation_of_claude_has_the_text_of_its_attachments() -> None:
    """The text of an attachment follows what was said, in a fence that it can't close; files, thoughts and tools are named."""
    attachment = {"file_name": "list.txt", "file_size": 9, "file_type": "txt", "extracted_content": "```\nflour"}
    asks = says("q", "human", "What do I need?", attachments=[attachment], files=[{"file_name": "dough.jpg"}])
    parts = [{"type": "thinking", "thinking": "hm"}, {"type": "tool_use", "name": "search"}, {"type": "text", "text": "Water."}]
    plan = plan_claude({"conversations.json": as_json([claude(asks, says("a", "assistant", "Water.", 1, content=parts))])})
    assert said(plan, "claude-k1") == [
        ("q", "user", "What do I need?\n\nAttachment list.txt:\n\n````\n```\nflour\n````"),
        ("a", "assistant", "Water."),
    ]
    assert plan.conversations["claude-k1"].messages[1].at == datetime(2025, 11, 30, 12, 1, tzinfo=UTC)
    assert [(each.where, each.reason) for each in plan.left] == [
        ("claude:k1#q: dough.jpg", "a file that the export lacks"),
        ("claude:k1#a: thinking", "the model's reasoning"),
        ("claude:k1#a: search", "a call of a tool"),
    ]


def test_retried_answers_of_claude_are_left() -> None:
    """Where messages name their parents, the branch of the last one, or of the one that the export names, counts."""
    first = says("q", "human", "Hi", parent_message_uuid="0")
    answers = [
        says("a", "assistant", "Hello", 1, parent_message_uuid="q"),
        says("b", "assistant", "Hey", 2, parent_message_uuid="q"),
    ]
    for leaf, kept, other in (("", "Hey", "a"), ("a", "Hello", "b")):
        plan = plan_claude({"conversations.json": as_json([claude(first, *answers, current_leaf_message_uuid=leaf)])})
        assert [text for _, _, text in said(plan, "claude-k1")] == ["Hi", kept]
        assert list(reasons(plan)) == [f"claude:k1#{other}"]


def test_what_claude_remembered_becomes_files() -> None:
    """The memory of the user and of each project is a file; the projects' documents are named as left."""
    kept = {"conversations_memory": "Bakes on Sundays.", "project_memories": {"p1": "Rye only.", "p2": ""}, "account_uuid": "a1"}
    files = {"memories.json": as_json([kept]), "projects.json": as_json([{"uuid": "p1", "name": "Rye bread", "docs": []}])}
    plan = plan_claude({**files, "conversations.json": b"[]"})
    assert {key: change.path for key, change in plan.files.items()} == {
        "claude:memories": "user/claude.md",
        "claude:memories/p1": "project/claude-rye-bread.md",
    }
    file = parse("x.md", plan.files["claude:memories/p1"].data)
    assert (file.body.strip(), file.header.type, file.header.source) == ("Rye only.", "project", ("claude:memories/p1",))
    assert reasons(plan) == {"projects.json: Rye bread": "a project's instructions and documents"}


@pytest.mark.parametrize("kind", PLANS)
@pytest.mark.parametrize("data", [b"{", b"\xff", b'{"a": 1}', b"7", b"[" * 100_000, b"[" + b"9" * 5_000 + b"]"], ids=len)
def test_what_is_no_export_is_refused_in_a_sentence(kind: str, data: bytes) -> None:
    """No JSON, another shape, or a tower of brackets: one error that names the file."""
    with pytest.raises(InvalidArguments, match=r"Nothing was imported|nothing was imported"):
        PLANS[kind]({"conversations.json": data})


@pytest.mark.parametrize("other", [as_json([walk()]), as_json([claude(says("q", "human", "Hi"))])])
def test_an_export_of_another_app_is_refused(other: bytes) -> None:
    """ChatGPT's export is not taken for Claude's, nor the other way round."""
    right, wrong = (plan_chatgpt, plan_claude) if b"mapping" in other else (plan_claude, plan_chatgpt)
    assert right({"conversations.json": other}).conversations
    with pytest.raises(InvalidArguments):
        wrong({"conversations.json": other})


def test_texts_that_no_file_can_hold_are_left() -> None:
    """Half a character, a NUL and an id beyond all limits are named, and the rest comes."""
    chat = walk(node("half", "m2", "user", "a\ud800"), node("x" * 300, "half", "user", "long"))
    plan = plan_chatgpt({"conversations.json": json.dumps([chat]).encode()})
    assert len(said(plan, "chatgpt-c1")) == 2 and len(plan.left) == 2
    items = [remembered("1", "nul\0"), remembered("2", "fine")]
    assert plan_mem0({"e.json": as_json(items)}).files.keys() == {"mem0:2"}


KEYS = st.sampled_from("id uuid mapping message author role content parts parent chat_messages text memory metadata".split())
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=4),
    max_leaves=20,
)


@given(value=JSON, key=KEYS | st.just("attachments"))
def test_any_json_gives_a_plan_or_an_error_of_ours(value: Any, key: str) -> None:
    """Whatever shapes stand where others are expected, nothing but a plan or `InvalidArguments` comes of it."""
    place, broken = node("m", "root", "user", value)
    broken["message"] |= {key: value}
    rows = [
        chatgpt((place, broken)) | {key: value},
        claude(says("m", "human", "Hi") | {key: value}) | {key: value},
        remembered("1", "Hi") | {key: value},
        value,
    ]
    for plan in PLANS.values():
        try:
            assert isinstance(plan({"conversations.json": json.dumps(rows).encode()}), Plan)
        except InvalidArguments as error:
            assert "othing was imported" in str(error)
