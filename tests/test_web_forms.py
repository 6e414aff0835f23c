"""A memory file as a form: what comes back differs from the file by what was edited, and by no other byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmemory.errors import InvalidMemoryFile
from mdmemory.files.memory_file import parse
from mdmemory.web.forms import body_of, edited, filled, inputs, retext

ODD = (
    b"\xef\xbb\xbf---\r\n# a comment\r\ntype: user\r\nname:   'Odd'   # beside it\r\nown: [a, b]\r\nnested: {x: {y: z}}\r\n"
    b"description: >\r\n  two\r\n  lines\r\n---\r\n\r\n\r\nFirst\r\nsecond\nthird\r\n\tlast"
)
LINE_ENDS = st.sampled_from(["\n", "\r\n", "\r"])
TEXTS = st.lists(st.tuples(st.text(alphabet="ab \t\x0c\u2028é", max_size=4), LINE_ENDS), max_size=12).map(
    lambda lines: "".join(map("".join, lines))
)


def flat(text: str) -> str:
    """As forms send it."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def sent(data: bytes, **changed: str) -> bytes:
    """The file after its form was sent with these fields changed."""
    file = parse("a.md", data)
    values = {f"field.{each.key}": each.value for each in inputs(file) if each.kind not in ("switch", "fixed")}
    values |= {f"field.{each.key}": "true" for each in inputs(file) if each.kind == "switch" and file.header.pinned}
    values["body"] = flat(body_of(file))
    values |= {key if key == "body" else f"field.{key}": value for key, value in changed.items()}
    return edited("a.md", data, {key: value for key, value in values.items() if value != "OFF"})


@given(TEXTS)
def test_an_untouched_text_keeps_every_byte(text: str) -> None:
    """F5: whatever the line ends, a text that nobody edited is the same bytes."""
    assert retext(text, flat(text)) == text


@given(TEXTS, TEXTS)
def test_an_edited_text_is_what_was_typed(before: str, after: str) -> None:
    """F5: what comes back is what was typed, whatever stood there, and lines that stayed keep their ends."""
    made = retext(before, flat(after))
    assert flat(made) == flat(after)


@given(TEXTS, st.integers(0, 20))
def test_one_line_is_one_line(text: str, place: int) -> None:
    """F5: a line that is put in changes no other line's end."""
    lines = text.splitlines(keepends=True) if "\u2028" not in text and "\x0c" not in text else []
    place = min(place, len(lines))
    with_line = "".join(lines[:place]) + "NEW\n" + "".join(lines[place:])
    made = retext("".join(lines), flat(with_line))
    if lines and lines[-1].endswith(("\n", "\r")):
        assert made.replace("NEW\r\n", "").replace("NEW\n", "") == "".join(lines)


def test_a_form_that_nobody_touched_changes_nothing() -> None:
    """F5: a byte order mark, CRLF beside LF, comments, quotes, unknown and nested fields stay as they are."""
    assert sent(ODD) == ODD


@pytest.mark.parametrize(
    ("changed", "old", "new"),
    [
        ({"name": "Other"}, b"'Odd'", b"Other"),
        ({"own": "a, b, c"}, b"[a, b]", b"[a, b, c]"),
        ({"tags": "x"}, b"lines\r\n---", b"lines\r\ntags: [x]\r\n---"),
        ({"pinned": "true"}, b"lines\r\n---", b'lines\r\npinned: "true"\r\n---'),
        ({"own": ""}, b"own: [a, b]\r\n", b""),
        ({"body": "First\nSECOND\nthird\n\tlast"}, b"second\n", b"SECOND\n"),
        ({"body": "First\nmore\nsecond\nthird\n\tlast"}, b"First\r\n", b"First\r\nmore\r\n"),
    ],
)
def test_one_edit_is_one_edit(changed: dict[str, str], old: bytes, new: bytes) -> None:
    """F5: of a field, its value; of the text, its line; every other byte stays."""
    assert sent(ODD, **changed) == ODD.replace(old, new, 1)


def test_a_plain_file_gets_frontmatter_when_a_field_is_set() -> None:
    """A file that people made plain stays so until somebody gives it a field."""
    plain = "\ufeff# Title\r\n\r\nText.\r\n".encode()
    assert sent(plain) == plain
    assert sent(plain, type="user") == "\ufeff---\r\ntype: user\r\n---\r\n\r\n# Title\r\n\r\nText.\r\n".encode()
    assert [each.instead for each in inputs(parse("a.md", plain))][:2] == ["Title", "Text."]


def test_text_after_a_fence_without_a_line_end() -> None:
    """The first text of a file that ends with its frontmatter begins on a line of its own."""
    assert sent(b"---\nname: A\n---", body="Text") == b"---\nname: A\n---\nText"


def test_a_pin_is_taken_off() -> None:
    """A box that is no longer ticked takes its field away."""
    data = b"---\nname: A\npinned: yes\n---\n"
    assert sent(data) == data and sent(data, pinned="OFF") == b"---\nname: A\n---\n"


def test_what_was_typed_is_shown_again() -> None:
    """A form that was refused shows what was typed; one that was not sent shows the file."""
    given_inputs = inputs(parse("a.md", ODD))
    assert filled(given_inputs, {"body": "x"}) == given_inputs
    again = {each.key: each.value for each in filled(given_inputs, {"field.name": "Typed", "field.pinned": "true"})}
    assert (again["name"], again["pinned"], again["own"], again["nested"]) == ("Typed", "true", "", "{'x': {'y': 'z'}}")


def test_what_no_file_can_hold_is_refused() -> None:
    """A NUL is refused with a word."""
    with pytest.raises(InvalidMemoryFile, match="NUL"):
        sent(ODD, body="a\0b")
