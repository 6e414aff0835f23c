"""Texts beside and below each other, as the web page shows them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mdmemory.care.history import unified
from mdmemory.web.conflicts import side_by_side
from mdmemory.web.diffs import MAX_LINES, lines_of

LINES = st.lists(st.sampled_from(["a", "b", "-- c", "++ d", "@@ e", "", "\\x"]), max_size=30).map("\n".join)


@given(LINES)
def test_no_line_of_a_difference_is_left_out(text: str) -> None:
    """Lines that look like marks of a difference, such as `-- c`, are lines like any other."""
    whole, data = text.removesuffix("\n").split("\n") if text else [], text.encode()
    for kind, (before, after) in {"added": (None, data), "removed": (data, None)}.items():
        lines = lines_of(unified("a.md", before, after))
        assert [line[1:] for own, line in lines if own == kind] == whole


@given(LINES, LINES)
def test_both_texts_stand_whole_beside_each_other(mine: str, theirs: str) -> None:
    """Every line of both is in a row, in its order and under its number; only runs that are the same are shortened."""
    rows = side_by_side(mine, theirs)
    ours, others = mine.splitlines(), theirs.splitlines()
    assert all(row.mine is None or row.mine == ours[row.mine_line - 1] for row in rows if row.kind != "skip")
    assert all(row.theirs is None or row.theirs == others[row.theirs_line - 1] for row in rows if row.kind != "skip")
    changed = [row for row in rows if row.kind == "other"]
    assert bool(changed) == (ours != others)
    skipped = sum(int((row.mine or "").split()[0]) for row in rows if row.kind == "skip")
    assert sum(row.mine is not None for row in rows if row.kind != "skip") + skipped == len(ours)


def test_a_very_long_difference_is_cut() -> None:
    """Of thousands of lines the first are shown, and how many more there are."""
    lines = lines_of(unified("a.md", b"", b"x\n" * 5_000))
    assert len(lines) == MAX_LINES + 1 and lines[-1] == ("place", "… 3,001 more lines") and lines_of("") == ()
