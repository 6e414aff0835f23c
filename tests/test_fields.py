"""Fields and links in a text, as Obsidian and Dataview read them."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmemory.files.fields import fields_of, links_of

HEAD = "---\nname: Ann\ndescription: d\ntype: user\n---\n"
NO_DATES = (None, None)


def read(body: str) -> list[tuple[str, str, str | None, str | None]]:
    """Key, value and dates of every field of a text."""
    fields = fields_of("ann.md", f"{HEAD}{body}".encode())
    return [(field.key, field.value, field.valid_from, field.valid_until) for field in fields]


@pytest.mark.parametrize(
    "line",
    [
        "works at:: [[Acme]]",
        "- works at:: [[Acme]]",
        "* works at::[[Acme]]",
        "12. works at:: [[Acme]]",
        "    - [x] **works at**:: [[Acme]]  ",
        "She [works at:: [[Acme]]] since spring.",
        "She (works at:: [[Acme]]) since spring.",
    ],
)
def test_a_field_stands_on_a_line_or_within_one(line: str) -> None:
    """V3: as in Dataview, a field is a line of its own, an item of a list, or stands in brackets in a sentence."""
    assert read(line) == [("works at", "[[Acme]]", *NO_DATES)]


@pytest.mark.parametrize(
    "text",
    [
        "> works at:: no",
        "- > works at:: no",
        "```\nworks at:: no\n```",
        "~~~md\nworks at:: no",
        "`works at:: no`",
        "`works`:: no",
        "<!-- works at:: no -->",
        "<!--\nworks at:: no\n-->",
        "%% works at:: no %%",
        "%%\nworks at:: no\n%%",
        "    works at:: no",
        "# works at:: no",
        "Rust has std::vec",
        "works at::",
        "works at:: (2024)",
        "see https://example.org:: no",
    ],
)
def test_code_comments_and_quotes_hold_no_fields(text: str) -> None:
    """V3: what is quoted, shown as code, commented out or has no value says nothing of the file's subject."""
    assert read(text) == []


def test_text_goes_on_behind_what_hides() -> None:
    """V3: a fence or a comment hides what is in it and nothing behind it."""
    assert read("```\na:: 1\n```\n%% b:: 2 %%\n<!-- c:: 3\n-->\nd:: 4") == [("d", "4", *NO_DATES)]


@pytest.mark.parametrize(
    ("dates", "begin", "until"),
    [
        ("(2024-01 → 2025-03)", "2024-01", "2025-03"),
        ("(2024-01->2025-03-31)", "2024-01", "2025-03-31"),
        ("(2024 – 2025)", "2024", "2025"),
        ("(2024 - 2025)", "2024", "2025"),
        ("( 2024-01 → )", "2024-01", None),
        ("(→ 2025)", None, "2025"),
        ("(2024-02-29)", "2024-02-29", "2024-02-29"),
    ],
)
def test_dates_end_a_value(dates: str, begin: str | None, until: str | None) -> None:
    """V3: a year, month or day, an open end, or one date for all of it; with an arrow, ASCII or not, or a dash."""
    assert read(f"- works at:: Acme {dates}\nShe [left:: home {dates}].") == [
        ("works at", "Acme", begin, until),
        ("left", "home", begin, until),
    ]


@pytest.mark.parametrize(
    "dates", ["(2023-02-29)", "(2025 → 2024)", "(2024-13 →)", "(→)", "()", "(2024) yes", "(24-01)", "(20240105)", "(2024 2025)"]
)
def test_what_is_no_date_belongs_to_the_value(dates: str) -> None:
    """V3: impossible days and ends before their beginning stay in sight."""
    assert read(f"works at:: Acme {dates}") == [("works at", f"Acme {dates}", *NO_DATES)]


def test_links_are_found_with_their_lines() -> None:
    """V3: wikilinks with heading and alias, and Markdown links to files, outside of code; not addresses on the web."""
    body = "[[Acme#Past|the firm]], [x](../a%20b.md#c) and `[[no]]`\n\n> [[dir/Beta]] and [web](https://example.org/x.md)\n"
    found = [(link.target, link.text, link.line) for link in links_of("ann.md", f"{HEAD}{body}".encode())]
    assert found == [("Acme", "the firm", 6), ("../a b.md", "x", 6), ("dir/Beta", "Beta", 8)]


@pytest.mark.parametrize("data", [b"---\nname: [\n---\na:: 1\n", "a:: 1".encode("utf-16"), b"a:: \xff"])
def test_a_file_that_cannot_be_read_has_none(data: bytes) -> None:
    """F5: a broken file says nothing and stops nothing."""
    assert [*fields_of("a.md", data), *links_of("a.md", data)] == []


ODD = st.text(st.sampled_from("ab: \t[]()|#`->→%<!*_\\\r\n2014,x:")) | st.text()


@given(ODD, st.booleans())
def test_any_text_has_fields_on_lines_of_its_own(text: str, has_head: bool) -> None:
    """V3: no text is an error, and each field stands where it says."""
    data = f"{HEAD if has_head else ''}{text}".encode("utf-8", "replace")
    lines = data.decode().removeprefix("\ufeff").split("\n")
    for field in fields_of("a.md", data):
        assert lines[field.line - 1][: field.end_of_value].endswith(field.value)
    for link in links_of("a.md", data):
        assert "[" in lines[link.line - 1]


@pytest.mark.parametrize("part", [" ", "(", "[", "[[", "a ", "(a:: ", "[a:: ", "[a:: [b](", "a:: (2024 ", "- ", "%%", "**", "]"])
def test_no_line_takes_quadratic_time(part: str) -> None:
    """V3: a line of 100,000 characters is read as fast as many lines of as many."""
    data = f"key:: {part * (100_000 // len(part))}x".encode()
    began = time.process_time()
    assert len([*fields_of("a.md", data), *links_of("a.md", data)]) < 100_000
    assert time.process_time() - began < 5
