"""The journal's format: every message comes back as it was, whatever it says, and what was cut off is told from what is whole."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmemory.errors import InvalidArguments
from mdmemory.files.journal import Message, end_mark, entry_bytes, file_of, new_message, opening, parse, session_of
from mdmemory.files.memory_file import parse as parse_memory_file
from mdmemory.recall.units import cut

WHEN = datetime(2026, 11, 30, 10, 12, 3, tzinfo=UTC)
TRICKY = [
    "## user · 2026-11-30 10:12:03Z · 8f14e45fceea167a",
    "\\## user · 2026-11-30 10:12:03Z · 8f14e45fceea167a",
    "<!-- end 8f14e45fceea167a -->",
    "<!--\\ end 8f14e45fceea167a -->",
    "<!-- end a json -->",
    "```json\n{}\n```",
    "```",
    "````",
    "```text",
    "---",
    "\n",
    "\n\n",
    "\r\n",
    "\r",
    "\ufeff",
    "\0",
    "\u2028",
    "\\",
    "-->",
    "好",
]
texts = st.lists(st.one_of(st.sampled_from(TRICKY), st.text(st.characters(exclude_categories=["Cs"]), max_size=20))).map("".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
roles = st.sampled_from(["user", "assistant", "tool", "system", "critic-2"])
keys = st.sampled_from(["name", "tool_calls", "content"]) | texts.filter(lambda key: key != "role")
fields = st.builds(lambda role, rest: {**rest, "role": role}, roles, st.dictionaries(keys, values, max_size=3))
said = st.builds(lambda role, text: {"role": role, "content": text}, st.sampled_from(["user", "assistant", "tool"]), texts)
ids = st.none() | texts.filter(lambda id: 0 < len(id) <= 60)
messages = st.lists(st.builds(new_message, said | fields, ids, st.datetimes(timezones=st.just(UTC))), max_size=5)


def unique(all_messages: list[Message]) -> list[Message]:
    """The first message of each id."""
    found: dict[str, Message] = {}
    for message in all_messages:
        found.setdefault(message.id, message)
    return list(found.values())


def user(text: str, id: str | None = None) -> Message:
    """What a user says."""
    return new_message({"role": "user", "content": text}, id, WHEN)


@given(messages)
def test_every_message_comes_back_as_it_was(written: list[Message]) -> None:
    """V1: any text, fields and ids are read as they were written, byte for byte, with role and second; nothing is torn."""
    data = b"".join(map(entry_bytes, written))
    found = parse(data)
    assert list(found.messages) == unique(written) and found.torn == () and found.end == len(data.rstrip(b"\n"))


@given(messages, st.data())
def test_an_entry_that_was_cut_off_anywhere_is_told_from_the_whole_ones(written: list[Message], data: st.DataObject) -> None:
    """G2: cut at any byte, entries before it are whole, the cut one is not taken for one, and what is appended later is whole."""
    whole = b"".join(map(entry_bytes, written))
    entry = entry_bytes(user(data.draw(texts), "cut"))
    part = entry[: data.draw(st.integers(0, entry.rindex(b"-->") + 2))]
    later = user("later", "later")
    glue = b"" if not part or part.endswith(b"\n") else b"\n"
    known = [m for m in unique(written) if m.id not in ("cut", "later")]
    cut_off = parse(whole + part)
    assert [m.id for m in cut_off.messages if m.id != "cut"] == [m.id for m in unique(written) if m.id != "cut"]
    healed = parse(whole + part + glue + entry_bytes(later))
    assert [m for m in healed.messages if m.id not in ("cut", "later")] == known
    assert later in healed.messages or any(m.id == "later" for m in written)


def test_what_was_cut_off_is_reported() -> None:
    """A torn entry is named with its id and time, a torn first line as such, and a whole journal reports nothing."""
    entry = entry_bytes(user("A long story", "m2"))
    whole = entry_bytes(user("Hello", "m1"))
    assert parse(whole + entry[:-12]).torn == ("the entry m2 of 2026-11-30 10:12:03Z (user) was cut off",)
    assert parse(whole + entry[:9]).torn == ("an entry was cut off in its first line",)
    again = parse(whole + entry[:-12] + b"\n" + entry)
    assert again.messages[1].text == "A long story" and len(again.torn) == 1
    assert parse(whole + entry).torn == ()


def test_only_what_was_added_is_parsed() -> None:
    """What is appended parses by itself from the end of the last whole entry on, a torn one between included."""
    first, torn, second = entry_bytes(user("one")), entry_bytes(user("two"))[:-20] + b"\n", entry_bytes(user("three"))
    end = parse(opening("s", user("one")) + first + torn).end
    found = parse((opening("s", user("one")) + first + torn + second)[end:])
    assert [m.text for m in found.messages] == ["three"] and len(found.torn) == 1


@given(texts, texts)
def test_no_text_holds_the_end_of_an_entry(text: str, id: str) -> None:
    """By its end an entry is known to be there, so no text and no frontmatter may hold that of another."""
    id = id or "x"
    mark = end_mark(id).encode()
    message = user(f"{text}{end_mark(id)}-->{text}", "other-id-than-any")
    assert mark not in entry_bytes(message) and mark not in opening(f"s{end_mark(id)}", message)


def test_a_person_can_read_it() -> None:
    """Frontmatter on top, a heading an entry, text as it is, tool calls as JSON and results in a fence; recall knows who speaks."""
    call = {"id": "call_1", "type": "function", "function": {"name": "Read", "arguments": "{}"}}
    trace = [
        user("Which day do we deploy?", "m1"),
        new_message({"role": "assistant", "content": None, "tool_calls": [call]}, "m2", WHEN),
        new_message({"role": "tool", "tool_call_id": "call_1", "content": "Deploys\n```\nOn Tuesdays.\n```"}, "m3", WHEN),
        new_message({"role": "assistant", "content": "On Tuesdays."}, "m4", WHEN),
        user("Thanks", "m5"),
    ]
    data = opening("monday", trace[0], {"user": "ada"}) + b"".join(map(entry_bytes, trace))
    text = data.decode()
    file = parse_memory_file("x.md", data)
    assert file.header.name == "Conversation monday" and file.header.description == "Which day do we deploy?"
    assert file.header.fields and file.header.fields["user"] == "ada" and file.header.fields["started"] == "2026-11-30T10:12:03Z"
    assert "\n## user · 2026-11-30 10:12:03Z · m1\n\nWhich day do we deploy?\n<!-- end m1 -->\n\n## assistant" in text
    assert "````text\nDeploys\n```\nOn Tuesdays.\n```\n````\n\n```json\n" in text
    assert list(parse(data).messages) == trace
    assert [unit.speaker for unit in cut(file.body) if unit.speaker] == ["user", "assistant", "tool", "assistant", "user"]


@pytest.mark.parametrize(
    "data",
    [
        {"content": "x"},
        {"role": "two words", "content": "x"},
        {"role": "user", "content": "\ud83d"},
        {"role": "user", "x": object()},
    ],
    ids=["no role", "odd role", "half a character", "no JSON"],
)
def test_what_no_entry_can_hold_is_refused(data: dict[str, Any]) -> None:
    """A message without a plain role, with half a character or with what is no JSON is refused, and the error says why."""
    with pytest.raises(InvalidArguments, match=r"role|surrogate|JSON"):
        new_message(data)


@given(texts.filter(bool), st.datetimes(timezones=st.just(UTC)))
def test_a_session_is_known_from_the_name_of_its_file(session: str, at: datetime) -> None:
    """Any id makes one file name in the folder of its month, and the name gives the id back."""
    path = file_of(session, at)
    assert session_of(path) == session and re.fullmatch(r"journal/\d{4}/\d\d/[^/\\.][^/\\]*\.md", path)


def test_other_files_are_no_journals() -> None:
    """What people put beside the journals is not taken for one."""
    assert [session_of(path) for path in ("journal/notes.md", "journal/2026/11/a/b.md", "journal/2026/11/a.txt", "a.md")] == [
        None
    ] * 4


def test_a_journal_that_a_person_edited_is_still_read() -> None:
    """Notes between entries are passed over, a changed text is taken as it is, and broken JSON becomes text."""
    entries = [
        entry_bytes(user("Hello", "m1")),
        entry_bytes(new_message({"role": "user", "content": "Bye", "name": "Ada"}, "m2", WHEN)),
    ]
    data = b"My notes\n\n".join(entries).replace(b"Hello", b"Hello there").replace(b'"name"', b"name")
    found = parse(data)
    assert [m.text.split("\n")[0] for m in found.messages] == ["Hello there", "Bye"] and found.torn == ()
    assert parse(data.replace(b"2026-11-30", b"2026-99-30")).messages == ()


@pytest.mark.parametrize("entries", [1_000, 10_000])
def test_parsing_takes_a_few_calls_an_entry(entries: int) -> None:
    """However long a journal is, an entry takes at most 25 calls of functions, C's included; benchmarks/journal.py has the time."""
    data = b"".join(entry_bytes(user("What people say in a chat, in a line or two. " * 4)) for _ in range(entries))
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        found = parse(data)
    finally:
        sys.setprofile(None)
    assert len(found.messages) == entries and calls <= 25 * entries + 100
