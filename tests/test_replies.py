"""Reading what models answer."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmemory.errors import InvalidReply
from mdmemory.models import checked, parse_json

SCHEMA = {
    "type": "object",
    "properties": {
        "files": {
            "type": "array",
            "maxItems": 2,
            "items": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "score": {"type": "number"}, "kind": {"enum": ["user", "project"]}},
                "required": ["path"],
                "additionalProperties": False,
            },
        },
        "count": {"type": "integer"},
        "note": {"type": ["string", "null"]},
    },
    "required": ["files"],
}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
PROSE = st.text(st.characters(exclude_characters="`", codec="utf-8")).filter(lambda text: "think>" not in text)


@pytest.mark.parametrize(
    "reply",
    [
        {"a": [1]},
        '{"a": [1]}',
        '\n {"a": [1]}\n',
        '```json\n{"a": [1]}\n```',
        'Sure! Here it is:\n\n```\n{"a": [1]}\n```\nAnything else?',
        'As [1] and {braces} show: {"a": [1]} and then {"b": 2}.',
        'Not {"x": 9} but\n  ```json\n  {"a": [1]}\n  ```',
        '```json\n{"a": [1]}',
        '<think>Perhaps {"x": 9}?</think>\n{"a": [1]}',
        'Perhaps {"x": 9}?\n</think>\n\nHere: {"a": [1]}',
        '\n<think>\n\n</think>\n\n{"a": [1]}',
        '[[{"a": {"a": [1]}',
    ],
)
def test_the_object_is_found_in_whatever_stands_around_it(reply: Any) -> None:
    """Dicts, bare JSON, fences closed or not, prose with brackets, thoughts and broken starts all give the object."""
    assert parse_json(reply) == {"a": [1]}


def test_json_inside_the_json_stays_text() -> None:
    """A fence or an end of thoughts within a string does not cut the object that holds it."""
    value = {"content": '```json\n{"x": 1}\n```\n</think> {"y": 2}'}
    assert parse_json(json.dumps(value)) == value
    fenced = {"content": '```json\n{"x": 1}\n```'}
    assert parse_json(f"Here: {json.dumps(fenced)} done.") == fenced
    assert parse_json(f"<think>Hm.</think>Here:\n```\n{json.dumps(value, indent=2)}\n```") == value


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I don't know.",
        "[1, 2]",
        '[{"a": 1}]',
        '```json\n[{"a": 1}]\n```',
        '"{}"',
        "null",
        "{'a': 1}",
        '{"a": ',
        '<think>{"a": 1}</think>',
        '{"a":' * 50_000,
        "[" * 50_000,
    ],
    ids=lambda reply: reply[:20],
)
def test_a_reply_without_an_object_is_shown_by_its_start(reply: str) -> None:
    """Prose, lists, other values, broken and far too deep JSON are refused soon, with at most 80 characters of them."""
    started = time.process_time()
    with pytest.raises(InvalidReply, match="not a JSON object: ") as caught:
        parse_json(reply)
    assert time.process_time() - started < 2
    assert repr(" ".join(reply.split())[:80]) in str(caught.value) and len(str(caught.value)) < 150


@given(st.dictionaries(st.text(), VALUES), PROSE, PROSE)
def test_fenced_json_comes_back_from_any_prose(value: dict[str, Any], before: str, after: str) -> None:
    """Whatever is said before and after, the fenced object is the one that was written."""
    assert parse_json(f"{before}\n```json\n{json.dumps(value, indent=2)}\n```\n{after}") == value


@pytest.mark.parametrize(
    "value",
    [
        {"files": []},
        {"files": [{"path": "a.md", "score": 1, "kind": "user"}, {"path": "b.md", "score": 0.5}], "count": 2, "note": None},
        {"files": [], "note": "x", "more": True},
    ],
)
def test_a_reply_of_the_asked_for_form_is_given_back(value: dict[str, Any]) -> None:
    """What follows the schema comes through, from text as from a dict."""
    assert checked(value, SCHEMA) == value == checked(f"Here:\n```json\n{json.dumps(value)}\n```", SCHEMA)


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({}, "reply lacks files"),
        ({"files": "a.md"}, "reply.files is str, not array"),
        ({"files": [{"path": "a.md"}, {"path": 3}]}, "reply.files[1].path is int, not string"),
        ({"files": [{"score": 1}]}, "reply.files[0] lacks path"),
        ({"files": [{"path": "a", "why": "?"}]}, "reply.files[0] has the unknown why"),
        ({"files": [{"path": "a", "kind": "other"}]}, "reply.files[0].kind is 'other', not one of user, project"),
        ({"files": [{"path": "a", "score": True}]}, "reply.files[0].score is bool, not number"),
        ({"files": [{"path": "a"}] * 3}, "reply.files has 3 items, more than 2"),
        ({"files": [], "count": 1.5}, "reply.count is float, not integer"),
        ({"files": [], "note": 1}, "reply.note is int, not string or null"),
    ],
)
def test_a_reply_of_another_form_is_refused_with_the_place(value: dict[str, Any], fault: str) -> None:
    """The message names the first place where the reply leaves the schema, and what was asked for there."""
    with pytest.raises(InvalidReply) as caught:
        checked(value, SCHEMA)
    assert str(caught.value).endswith(fault)
