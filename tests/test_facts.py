"""Facts of one file: read, written, added and ended."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mdmemory.errors import InvalidArguments, InvalidMemoryFile
from mdmemory.files.facts import Fact, add_fact, end_fact, facts_of, read_value, write_fact

HEAD = "---\nname: Ann\ndescription: a friend\ntype: user\n---\n"
ACME = Fact("Ann", "works at", "Acme", "Acme", "2024-01", "2025-03", "ann.md", 9)


def data(body: str) -> bytes:
    """A file with this text."""
    return f"{HEAD}{body}".encode()


def test_a_line_says_something_of_the_file() -> None:
    """V3: the subject is the file, the object the link's text, and dates come along."""
    assert facts_of("ann.md", data("\nA friend.\n\n- works at:: [[Acme]] (2024-01 → 2025-03)\n")) == [ACME]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("[[Acme]]", [("Acme", "Acme")]),
        ("[[firms/acme#Past|the firm]]", [("the firm", "firms/acme")]),
        ("[[firms/acme.md]]", [("acme", "firms/acme.md")]),
        ("[Acme](../firms/acme%20inc.md)", [("Acme", "../firms/acme inc.md")]),
        ("[[Bob]], [[Eve|my Eve]] ,[Al](al.md)", [("Bob", "Bob"), ("my Eve", "Eve"), ("Al", "al.md")]),
        ("Berlin, Germany", [("Berlin, Germany", None)]),
        ("[[Acme]] as engineer", [("[[Acme]] as engineer", None)]),
        ("[web](https://example.org)", [("[web](https://example.org)", None)]),
    ],
)
def test_a_value_is_links_or_text(value: str, said: list[tuple[str, str | None]]) -> None:
    """V3: several values need to be links; else the whole value is one text."""
    assert [(fact.object, fact.link) for fact in facts_of("a.md", data(f"- k:: {value}"))] == said
    assert len(said) > 1 or read_value(value) == said[0]


DATES = st.sampled_from([(None, None), ("2024", None), (None, "2024-02-29"), ("2024-05", "2024-05"), ("1999-12-31", "2001")])
WORDS = st.text(st.characters(categories=("L", "Nd")), min_size=1)


@given(WORDS, WORDS, st.none() | WORDS, DATES)
def test_an_ordinary_fact_can_be_written(predicate: str, object: str, link: str | None, dates: tuple[str, str]) -> None:
    """V3: of letters and digits in any script, every fact is written and read as it was."""
    fact = Fact("", predicate, object, link, *dates, "", 1)
    assume(len(predicate) <= 80)
    assert facts_of("", write_fact(fact).encode()) == [fact]


ODD = st.text(st.sampled_from("ab:[]()|#`->→%<*\\\r\n 2014,"))


@given(ODD, ODD, st.none() | ODD, DATES)
def test_an_odd_fact_is_refused_or_written(predicate: str, object: str, link: str | None, dates: tuple[str, str]) -> None:
    """V3: what would be read as something else is never written."""
    fact = Fact("", predicate, object, link, *dates, "", 1)
    try:
        line = write_fact(fact)
    except InvalidArguments:
        return
    assert facts_of("", line.encode()) == [fact]


@given(ODD)
def test_what_any_text_says_can_be_said_again(text: str) -> None:
    """V3: a fact that was read is written as one line that says the same, or refused."""
    for fact in facts_of("a.md", f"k:: {text}".encode()):
        try:
            line = write_fact(fact)
        except InvalidArguments:
            continue
        assert facts_of("a.md", line.encode()) == [replace(fact, line=1)]


NEW = Fact("", "works at", "Beta", "Beta", "2025-04", path="ann.md")
LINE = "- works at:: [[Beta]] (2025-04 →)"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"\n{LINE}\n"),
        ("\nA friend.\n", f"\nA friend.\n\n{LINE}\n"),
        ("\nA friend.", f"\nA friend.\n\n{LINE}"),
        ("\n- a\n", f"\n- a\n{LINE}\n"),
        ("\n* k:: v\n\nMore.\n", f"\n* k:: v\n* {LINE[2:]}\n\nMore.\n"),
        ("\n- k:: v\n  - why:: w\n\tand\n- next\n", f"\n- k:: v\n  - why:: w\n\tand\n{LINE}\n- next\n"),
        ("\n- k:: v", f"\n- k:: v\n{LINE}"),
        ("\nShe [k:: v].\n", f"\nShe [k:: v].\n\n{LINE}\n"),
        (f"\n{LINE}\n", f"\n{LINE}\n"),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_adding_touches_one_line(before: str, after: str, newline: str) -> None:
    """V3, F2: the new line stands behind the others or at the end, with the file's line ends; nothing else changes."""
    assert add_fact(data(before).replace(b"\n", newline.encode()), NEW) == data(after).replace(b"\n", newline.encode())


@pytest.mark.parametrize("body", ["\n```\ncode\n", "\n<!-- open\n", "\n%%\nopen\n"])
def test_a_fact_that_would_not_be_read_is_not_added(body: str) -> None:
    """V3: behind an open fence or comment a line would say nothing."""
    with pytest.raises(InvalidArguments, match=r"ann\.md: the fact would stand in code"):
        add_fact(data(body), NEW)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- works at:: [[Beta]] (2025-04->) \r\nx", "- works at:: [[Beta]] (2025-04 → 2026) \r\nx"),
        ("- Works-at:: [[Beta]]", "- Works-at:: [[Beta]] (→ 2026)"),
        ("She [works at:: [[Beta|Beta]]] and [is:: glad].", "She [works at:: [[Beta|Beta]] (→ 2026)] and [is:: glad]."),
        ("- works at:: [[Beta]] (2020)\n- works at:: [[Beta]]", "- works at:: [[Beta]] (2020)\n- works at:: [[Beta]] (→ 2026)"),
    ],
)
@pytest.mark.parametrize("head", [HEAD, "", "\ufeff"])
def test_ending_touches_the_dates(head: str, before: str, after: str) -> None:
    """V3, F2: an open fact gets its end, and every other byte stays, a byte order mark and line ends included."""
    assert end_fact(f"{head}{before}".encode(), NEW, "2026").decode() == f"{head}{after}"


@pytest.mark.parametrize(
    ("body", "until", "message"),
    [
        ("- works at:: [[Beta]] (2025)", "2026", "no open fact says 'works at:: Beta'"),
        ("- works at:: [[Beta]]\n- works at:: [[Beta]]", "2026", "2 open facts say"),
        ("- works at:: [[Beta]], [[Acme]]", "2026", "line 6 says several things"),
        ("- works at:: [[Beta]] (2025 →)", "2024", "can't end with '2024'"),
        ("- works at:: [[Beta]]", "soon", "can't end with 'soon'"),
    ],
)
def test_what_cannot_be_ended_is_said(body: str, until: str, message: str) -> None:
    """V3: an end that is no date or lies before the beginning, and a fact that is not there, are refused."""
    with pytest.raises(InvalidArguments, match=message):
        end_fact(data(body), NEW, until)


def test_a_broken_file_says_nothing_and_takes_nothing() -> None:
    """F5: of a file that can't be read no fact is read, and none is added to it."""
    broken = b"---\nname: [\n---\nk:: v\n"
    assert facts_of("ann.md", broken) == []
    with pytest.raises(InvalidMemoryFile):
        add_fact(broken, NEW)
