"""What doctor says of the index, and what holds for every index."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmemory.files.index import Limits, Listed, own_lines, pointers, render, render_line, update
from mdmemory.files.index_faults import drift

PLAN = Listed("Plan", "when we ship")
OURS = "- [Plan](plan.md) — when we ship\n"


def all_changed(everything: Mapping[str, Listed]) -> dict[str, tuple[Listed | None, Listed | None]]:
    return {path: (listed, listed) for path, listed in everything.items()}


def found(text: str, everything: Mapping[str, Listed]) -> list[tuple[str, str, int | None]]:
    return [(fault.kind, fault.path, fault.line) for fault in drift(text, everything)]


def test_868_files_and_84_lines() -> None:
    """I2: the files without a pointer that fit are found; one repair lists all that fit, says how many more, and is complete."""
    everything = {f"n{n:03}.md": Listed(f"Note {n}", f"about {n}", mtime_ns=n) for n in range(868)}
    text = "# Memory\n\n" + "".join(render_line(path, everything[path]) + "\n" for path in list(everything)[:84])
    faults = drift(text, everything)
    assert {fault.kind for fault in faults} == {"missing"}
    assert [fault.path for fault in faults] == [f"n{n:03}.md" for n in range(868 - 197, 868)]
    repaired = update(text, all_changed(everything), everything)
    assert (repaired.shown, repaired.not_shown, repaired.lines) == (197, 671, 200)
    assert "_671 more memory files are not listed here" in repaired.text.splitlines()[-1]
    assert drift(repaired.text, everything) == []


def test_dead_pointer_and_missing_pointer() -> None:
    """I3: a pointer whose file is gone and a file without one are both found and repaired; other lines stay byte for byte."""
    text = "# Mine \r\n\r\n- [Gone](gone.md) — x\r\n\tkept\r\nsee [[gone]]\r\n"
    assert found(text, {"plan.md": PLAN}) == [("dead", "gone.md", 3), ("dead_link", "gone.md", 5), ("missing", "plan.md", None)]
    repaired = update(text, {"gone.md": (None, None), "plan.md": (PLAN, PLAN)}, {"plan.md": PLAN}).text
    assert repaired == f"# Mine \r\n\r\n\tkept\r\nsee [[gone]]\r\n\r\n{OURS[:-1]}\r\n"
    assert found(repaired, {"plan.md": PLAN}) == [("dead_link", "gone.md", 4)]


@pytest.mark.parametrize(
    "line",
    [
        OURS,
        "* [Plan](plan.md): when we ship\n",
        "1. [Plan](<plan.md>) - when we ship\n",
        "- [ ] [Plan](plan.md)\n",
        "- **[Plan](plan.md)** – when we ship\n",
        "- [[plan]]\n",
        "- [[plan|Plan]] when we ship\n",
        "See [that plan](plan.md) of ours.\n",
    ],
)
def test_a_line_in_the_headers_words_is_in_order(line: str) -> None:
    """A person's pointer that says what the header says, or less, is no fault, whatever its marks are."""
    assert drift(line, {"plan.md": PLAN}) == []


@pytest.mark.parametrize("line", ["- [Plans](plan.md)", "- [Plan](plan.md) — soon", "- [[plan|Plans]]", "- [[plan]]: soon"])
def test_a_line_in_other_words_is_reported(line: str) -> None:
    """A person's pointer line whose words differ from the header is reported, with its text, and left."""
    (fault,) = drift(f"# M\n{line}\n", {"plan.md": PLAN})
    assert (fault.kind, fault.line, fault.text) == ("differs", 2, line)


def test_second_line_of_a_file_is_reported() -> None:
    """I8: further pointer lines of a file are reported; a mention in prose is none."""
    text = f"See [[plan]] and [[plan]].\n{OURS}- [Plan](plan.md)\n* [Plan](plan.md)\n"
    assert found(text, {"plan.md": PLAN}) == [("duplicate", "plan.md", 3), ("duplicate", "plan.md", 4)]


names = st.sampled_from(["a.md", "b.md", "c d.md", "sub/e.md", "大.md", "f.md", "g.md", "h.md"])
headers = st.builds(
    Listed,
    st.sampled_from(["A", "Beta [x]", "大"]),
    st.sampled_from(["", "short", "see [[a]]", "long " * 30]),
    st.booleans(),
    st.integers(0, 3),
)
folders = st.dictionaries(names, headers, max_size=8)
theirs = st.sampled_from(
    ["", "# M", "text", "* [Mine](a.md) words", "see [[e]] and [f](f.md)", "```", "<!--", "-->", "  more", "- [x](gone.md)", "~~~"]
)
limits = st.builds(Limits, st.integers(1, 14), st.integers(60, 900))


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, dict[str, tuple[Listed | None, Listed | None]], dict[str, Listed], Limits]:
    """An index of people's and our lines, a folder, what changed in it, and limits."""
    old, everything = draw(folders), draw(folders)
    ours = st.sampled_from([render_line(path, listed) for path, listed in (old | everything).items()] or [""])
    ending = draw(st.sampled_from(["\n", "\r\n"]))
    lines = st.tuples(theirs, st.sampled_from([ending, "\n"])) | st.tuples(ours, st.just(ending))
    text = "".join(draw(st.lists(lines.map("".join), max_size=14)))
    text = draw(st.sampled_from(["", "\ufeff"])) + (text.rstrip("\r\n") if draw(st.booleans()) else text)
    changed = {
        path: (old.get(path), everything.get(path))
        for path in old.keys() | everything.keys()
        if old.get(path) != everything.get(path)
    }
    return text, changed, everything, draw(limits)


def is_subsequence(few: list[str], many: list[str]) -> bool:
    rest = iter(many)
    return all(line in rest for line in few)


Case = tuple[str, dict[str, tuple[Listed | None, Listed | None]], dict[str, Listed], Limits]


@given(cases())
def test_people_lose_nothing(case: Case) -> None:
    """I3: after any update, every line of people's that does not point to a deleted file is there, in order, with its ending."""
    text, changed, everything, limits = case
    updated = update(text, changed, everything, limits).text
    headers = [*everything.items(), *((path, header) for path, pair in changed.items() for header in pair if header)]
    ours = {render_line(path, header) for path, header in headers}
    deleted = {path for path, (_, new) in changed.items() if new is None}
    pure = {pointer.line: pointer.target for pointer in pointers(text) if pointer.pure}
    lines = enumerate(text.removeprefix("\ufeff").splitlines(keepends=True), 1)
    own = [line for number, line in lines if line.rstrip("\r\n") not in ours and pure.get(number) not in deleted]
    if own and not own[-1].endswith("\n") and not updated.endswith(own[-1]):
        own[-1] += "\r\n" if own[-1] + "\r\n" in updated else "\n"  # it is no longer the last line
    assert is_subsequence(own, updated.removeprefix("\ufeff").splitlines(keepends=True))
    assert updated.startswith("\ufeff") == text.startswith("\ufeff")


@given(cases())
def test_a_second_update_changes_nothing(case: Case) -> None:
    """An update that is repeated finds its work done."""
    text, changed, everything, limits = case
    once = update(text, changed, everything, limits)
    assert update(once.text, changed, everything, limits) == once
    assert update(once.text, {}, everything, limits) == once


@given(cases())
def test_limits_hold(case: Case) -> None:
    """I7: no index exceeds its limits unless people's lines alone do, and its figures are right."""
    text, changed, everything, limits = case
    updated, shown = update(text, changed, everything, limits), render(text, everything, limits)
    assert shown.lines <= limits.max_lines and shown.bytes <= limits.max_bytes
    if updated.lines > limits.max_lines or updated.bytes > limits.max_bytes:
        assert own_lines(updated.text, everything) == updated.text
    for result in (updated, shown):
        body = result.text.removeprefix("\ufeff")
        assert result.lines == body.count("\n") + (body[-1:] not in ("\n", ""))
        assert result.bytes == len(result.text.encode())
        linked = {pointer.target for pointer in pointers(result.text, everything)} & everything.keys()
        assert len(linked - {"a.md"}) <= result.shown <= len(linked)  # descriptions name a.md
        assert result.shown + result.not_shown == len(everything)


@given(cases())
def test_no_line_is_cut(case: Case) -> None:
    """I1: every line of a prompt is a line of the file, one of ours whole, or the notice at the end."""
    text, _, everything, limits = case
    whole = set(text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")) | {render_line(*item) for item in everything.items()}
    for line in render(text, everything, limits).text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n"):
        assert line in whole or line == "" or line.startswith("- _")
