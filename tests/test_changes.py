"""Edits and merges: what one writer does to a text, and what comes of two."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmemory.errors import InvalidArguments, InvalidMemoryFile
from mdmemory.files.changes import crlf, edit_text, merge, uses_crlf
from mdmemory.files.memory_file import decode, encode

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "a b", "\u2028", "x\r"]), max_size=8)
TEXTS = st.tuples(LINES, st.sampled_from(["", "\n"])).map(
    lambda parts: "\n".join(parts[0]).removesuffix("\r") + (parts[1] if parts[0] else "")
)

DOINGS: dict[str, Callable[[str], str]] = {
    "change": lambda line: line.replace("line", "changed"),
    "insert": lambda line: line + line.replace("line", "added"),
    "delete": lambda line: "",
    "split": lambda line: line.replace("line", "one") + line.replace("line", "two"),
}


def numbered(count: int, newline: str = "\n") -> list[str]:
    """Lines that differ from each other."""
    return [f"line {n}{newline}" for n in range(count)]


def test_an_edit_replaces_the_one_place() -> None:
    """Only the named text changes; everything else is the same, U+2028 and form feeds too."""
    assert edit_text("a\u2028b\fc\nd", "c", "C") == "a\u2028b\fC\nd"
    assert edit_text("one two", "two", r"\1 \n") == r"one \1 \n"
    assert edit_text("a.c abc", "a.c", "x") == "x abc"


def test_an_edit_keeps_crlf() -> None:
    r"""F4: in a CRLF file `\n` matches its line ends, what is put in gets them, and every other byte is identical."""
    text = "one\r\ntwo\r\nthree\r\nfour"
    assert edit_text(text, "two\nthree", "2\n3\nand more") == "one\r\n2\r\n3\r\nand more\r\nfour"
    assert edit_text(text, "two", "2\n2") == "one\r\n2\r\n2\r\nthree\r\nfour"
    assert edit_text(text, "two\r\n", "") == "one\r\nthree\r\nfour"
    assert edit_text(text, "\nfour", "\nfour\n") == text + "\r\n"
    data = b"\xef\xbb\xbf" + text.encode()
    assert encode("a.md", edit_text(decode("a.md", data), "three", "3")) == data.replace(b"three", b"3")


def test_an_edit_across_mixed_line_ends_is_found() -> None:
    r"""F4: lines of one file may end in LF and CRLF; `\n` matches both, and what is not replaced keeps its own."""
    assert edit_text("a\r\nb\nc\r\nd\n", "b\nc", "x") == "a\r\nx\r\nd\n"
    assert edit_text("a\nb\r\nb\nc\nd\n", "b\nb\nc", "x\ny") == "a\nx\ny\nd\n"
    assert edit_text("a\nb\r\nc\r\nd\r\n", "\n", "|", replace_all=True) == "a|b|c|d|"


def test_a_file_without_final_newline_stays_so() -> None:
    """F12: an edit elsewhere adds no newline at the end."""
    assert edit_text("one\ntwo", "one", "1") == "1\ntwo"
    assert edit_text("one\r\ntwo", "one", "1") == "1\r\ntwo"


def test_half_a_character_in_an_edit_is_refused_before_it_is_written() -> None:
    """F11: a lone surrogate in the new text can't become bytes, and the error says so."""
    with pytest.raises(InvalidMemoryFile, match="half of a character"):
        encode("a.md", edit_text("one two", "two", "\ud83d"))


def test_several_places_are_named_by_line() -> None:
    """An old_string that stands more than once is refused with its lines, unless all are meant."""
    with pytest.raises(InvalidArguments, match=r"3 times \(lines 1, 3, 3\)"):
        edit_text("a\nb\na a\n", "a", "x")
    assert edit_text("a\nb\na a\n", "a", "x", replace_all=True) == "x\nb\nx x\n"
    with pytest.raises(InvalidArguments, match=r"50 times \(lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10\)"):
        edit_text("a\r\n" * 50, "a", "x")


def test_overlapping_places_are_several() -> None:
    """`aa` stands twice in `aaa`: which one is meant is not known; all of them are replaced from the left."""
    with pytest.raises(InvalidArguments, match="times"):
        edit_text("aaa", "aa", "x")
    with pytest.raises(InvalidArguments, match="times"):
        edit_text("-\n-\n-\n", "-\n-\n", "x")
    assert edit_text("aaa", "aa", "x", replace_all=True) == "xa"


@pytest.mark.parametrize(
    ("text", "old", "new", "said"),
    [
        ("a", "", "b", "empty"),
        ("a", "b", "c", "not found"),
        ("a", "a", "a", "the same"),
        ("a\r\nb\r\n", "a\r\n", "a\n", "the same"),
    ],
)
def test_a_wrong_edit_says_how_to_mend_it(text: str, old: str, new: str, said: str) -> None:
    """Nothing to find, not found, and nothing to change are told apart."""
    with pytest.raises(InvalidArguments, match=said):
        edit_text(text, old, new)


def test_edits_of_large_files_are_quick() -> None:
    """A long old_string that almost matches in many places takes no quadratic time."""
    text = "x y\n" * 200_000
    began = time.process_time()
    with pytest.raises(InvalidArguments, match="not found"):
        edit_text(text, "x y\n" * 50_000 + "z", "new")
    with pytest.raises(InvalidArguments, match="times"):
        edit_text(text, "x y\n" * 50_000, "new")
    assert edit_text(crlf(text), "x y\n", "", replace_all=True) == ""
    assert time.process_time() - began < 2


@given(TEXTS, TEXTS)
def test_a_side_that_did_not_change_takes_the_other(base: str, other: str) -> None:
    """One edit alone is that edit, and two equal ones are one."""
    assert merge(base, other, base) == other
    assert merge(base, base, other) == other
    assert merge(base, other, other) == other


@given(TEXTS, TEXTS, TEXTS)
def test_which_side_is_ours_does_not_matter(base: str, ours: str, theirs: str) -> None:
    """E4: a merge or a conflict is the same from both sides."""
    merged = merge(base, ours, theirs)
    assert merge(base, theirs, ours) == merged
    both, turned = merge(base, ours, theirs, keep_both_insertions=True), merge(base, theirs, ours, keep_both_insertions=True)
    assert (both is None) == (turned is None)
    if merged is not None:
        assert both == merged
    elif both is not None and turned is not None:
        assert sorted(both.replace("\r", "").split("\n")) == sorted(turned.replace("\r", "").split("\n"))


@given(
    st.lists(st.tuples(st.sampled_from(["ours", "theirs"]), st.sampled_from(sorted(DOINGS))), max_size=12),
    st.sampled_from(["\n", "\r\n"]),
)
def test_edits_of_different_lines_are_both_kept(plan: list[tuple[str, str]], newline: str) -> None:
    """E4: changes, deletions and insertions with an unchanged line between them merge to what doing all of them gives."""
    base = numbered(2 * len(plan), newline)

    def edited(*sides: str) -> str:
        pairs = zip(base[::2], base[1::2], plan, strict=True)
        return "".join((DOINGS[how](line) if side in sides else line) + between for line, between, (side, how) in pairs)

    assert merge("".join(base), edited("ours"), edited("theirs")) == edited("ours", "theirs")


def test_forty_edits_of_distinct_lines_are_forty() -> None:
    """E1: each of 40 writers changed another line of the same base; merged one after another, all are there."""
    base = "".join(numbered(40))
    now = base
    for n in range(40):
        merged = merge(base, base.replace(f"line {n}\n", f"changed {n}\n"), now)
        assert merged is not None
        now = merged
    assert now == base.replace("line", "changed")


def test_edits_of_one_line_are_a_conflict() -> None:
    """E4: two changes of a line, a change and a deletion, and two insertions at one place are conflicts."""
    base = "a\nb\nc\n"
    assert merge(base, "a\nB\nc\n", "a\nbb\nc\n") is None
    assert merge(base, "a\nc\n", "a\nbb\nc\n") is None
    assert merge(base, "a\nX\nb\nc\n", "a\nY\nb\nc\n") is None
    assert merge("", "x\n", "y\n") is None


def test_the_index_keeps_both_insertions() -> None:
    """I5: two lines put at one place are both kept where order does not matter, theirs first; an equal line is one line."""
    assert merge("a\n", "a\nx\n", "a\ny\n", keep_both_insertions=True) == "a\ny\nx\n"
    assert merge("", "x\n", "y\n", keep_both_insertions=True) == "y\nx\n"
    assert merge("a\n", "x\na\nz\n", "x\na\ny\n", keep_both_insertions=True) == "x\na\ny\nz\n"


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "merged"),
    [
        ("a\nb", "A\nb", "a\nb\n", "A\nb\n"),
        ("a\nb\n", "a\nb", "A\nb\n", "A\nb"),
        ("a\r\nb\r\n", "a\r\nb", "A\r\nb\r\n", "A\r\nb"),
        ("a\r\nb", "A\r\nb", "a\r\nb\r\nc\r\n", "A\r\nb\r\nc\r\n"),
        ("a\r\nb", "A\r\nb", "a\r\nb\r\nc", "A\r\nb\r\nc"),
        ("a\nb", "A\nb", "a\nb\nc", "A\nb\nc"),
    ],
)
def test_the_final_newline_is_a_bit_of_its_own(base: str, ours: str, theirs: str, merged: str) -> None:
    """F12 E4: who added or removed the final newline is respected, and it makes no conflict with an edit or an append."""
    assert merge(base, ours, theirs) == merged


def test_a_large_file_merges_quickly() -> None:
    """E4: 9,000 lines, half of them blank, edited near both ends by both sides."""
    lines = [line for n in range(4_500) for line in (f"line {n}\n", "\n")]
    ours, theirs = list(lines), list(lines)
    ours[2], ours[-4], theirs[4], theirs[-2] = "ours\n", "ours\n", "theirs\n", "theirs\n"
    began = time.process_time()
    merged = merge("".join(lines), "".join(ours), "".join(theirs))
    assert time.process_time() - began < 2
    assert merged is not None
    assert merged.splitlines(keepends=True) == [o if o != line else t for line, o, t in zip(lines, ours, theirs, strict=True)]


def test_too_many_lines_are_a_conflict() -> None:
    """E2: what would take too long to compare is left to the caller, with nothing lost."""
    lines = "".join(numbered(10_001))
    assert merge(lines, "x\n" + lines, lines + "x\n") is None


def test_line_ends_are_those_of_most_lines() -> None:
    """F4: a text counts as CRLF when most of its lines end so."""
    assert uses_crlf("a\r\nb\r\nc\n")
    assert not uses_crlf("a\r\nb\nc\n")
    assert not uses_crlf("a")
    assert crlf("a\r\nb\nc") == "a\r\nb\r\nc"
