"""The index: our lines follow the headers, people's lines stay, and a prompt always shows what matters."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pytest

from mdmemory.files.index import Limits, Listed, own_lines, pointers, render, render_line, update, warning

PLAN = Listed("Plan", "when we ship")
FOOD = Listed("Food", "likes hotpot")
OURS = "- [Plan](plan.md) — when we ship\n"
BOTH = {"plan.md": PLAN, "food.md": FOOD}


def files(count: int, start: int = 0) -> dict[str, Listed]:
    return {f"n{n:05}.md": Listed(f"Note {n}", f"what note {n} is about", mtime_ns=n + 1) for n in range(start, count)}


def lines(everything: dict[str, Listed], paths: Iterable[str] | None = None) -> str:
    return "".join(render_line(path, everything[path]) + "\n" for path in paths or everything)


def created(*paths: str) -> dict[str, tuple[None, Listed]]:
    return {path: (None, BOTH[path]) for path in paths}


def targets(text: str) -> list[str]:
    return [pointer.target for pointer in pointers(text)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", OURS),
        ("# Memory\n", f"# Memory\n\n{OURS}"),
        ("# Memory\n\n", f"# Memory\n\n{OURS}"),
        ("no newline", f"no newline\n\n{OURS[:-1]}"),
        ("\ufeff# M\r\n\r\n", f"\ufeff# M\r\n\r\n{OURS[:-1]}\r\n"),
        ("- [F](food.md)\n\n## Notes\ntext\n", f"- [F](food.md)\n{OURS}\n## Notes\ntext\n"),
        ("- [F](food.md)\n  - a detail\n    more\n\ntext\n", f"- [F](food.md)\n  - a detail\n    more\n{OURS}\ntext\n"),
        ("- [F](food.md)\n  ```\nx\n  ```\ntext\n", f"- [F](food.md)\n  ```\nx\n  ```\n{OURS}text\n"),
        ("text\n```\n- [Plan](plan.md)\n", f"text\n\n{OURS}```\n- [Plan](plan.md)\n"),
        ("# M\n<!--\n- [Plan](plan.md)\n-->\n", f"# M\n<!--\n- [Plan](plan.md)\n-->\n\n{OURS}"),
    ],
)
def test_new_file_gets_a_line_after_the_last_pointer_line(before: str, after: str) -> None:
    """A new file's line follows the last pointer line and what is indented below it, else the end, and never lies in code."""
    everything = {"plan.md": PLAN} | ({"food.md": FOOD} if "food" in before else {})
    updated = update(before, created("plan.md"), everything)
    assert updated.text == after
    assert (updated.shown, updated.not_shown) == (len(everything), 0)


def test_our_line_follows_the_header() -> None:
    """A line that is our rendering of the old header becomes that of the new one, in its place and with its line ending."""
    new = Listed("Plan", "when we shipped")
    updated = update(f"# M\r\n{OURS[:-1]}\r\ntext", {"plan.md": (PLAN, new)}, {"plan.md": new})
    assert updated.text == "# M\r\n- [Plan](plan.md) — when we shipped\r\ntext"


def test_a_persons_line_stays_and_counts() -> None:
    """A pointer line in other words is a person's: it stays as it is, and no second line appears."""
    text = "* [The plan](plan.md): read first\n- see [[food]]\n"
    assert update(text, {"plan.md": (FOOD, PLAN), "food.md": (None, FOOD)}, BOTH).text == text


def test_one_line_a_file() -> None:
    """I8: a line that the agent writes by hand takes the place of ours, and copies of ours become one."""
    by_hand = "# M\n- [Plan](plan.md) — my own words\n"
    assert update(by_hand + OURS, {}, {"plan.md": PLAN}).text == by_hand
    assert update(OURS + by_hand, created("plan.md"), {"plan.md": PLAN}).text == by_hand
    assert update(by_hand, created("plan.md"), {"plan.md": PLAN}).text == by_hand
    assert update(f"{OURS}text\n{OURS}", {}, {"plan.md": PLAN}).text == f"{OURS}text\n"
    other = "- [Plan](plan.md) — other words\n"
    assert update(by_hand + other, created("plan.md"), {"plan.md": PLAN}).text == by_hand + other


def test_two_writers_lines_both_survive() -> None:
    """I5: lines that two writers add one after the other, each knowing only its own file's change, are both there."""
    first = update("# M\n", created("plan.md"), {"plan.md": PLAN}).text
    second = update(first, created("food.md"), BOTH).text
    assert targets(second) == ["plan.md", "food.md"]


def test_deleted_file_takes_its_pointer_lines_along() -> None:
    """Our line and a person's pointer line to a deleted file go; prose that mentions it stays."""
    text = f"# M\n{OURS}1. [Old plan](plan.md)\n- [Plan](plan.md), [F](food.md)\nSee [[plan]].\n"
    updated = update(text, {"plan.md": (PLAN, None)}, {"food.md": FOOD})
    assert updated.text == "# M\n- [Plan](plan.md), [F](food.md)\nSee [[plan]].\n"


def test_rename_changes_targets_only() -> None:
    """A rename re-renders our line and, in people's lines, changes the target where it stands, in the style it has."""
    renamed = {"plan.md": "work/the plan.md"}
    everything = {"work/the plan.md": PLAN}
    changed = {"work/the plan.md": (PLAN, PLAN)}
    assert update(OURS, changed, everything, renamed=renamed).text == "- [Plan](work/the%20plan.md) — when we ship\n"
    theirs = '* [p](./plan.md#now "t") [q](<plan.md>) [[plan]] [[plan.md#a|b]] `plan.md` [x](other.md)\n[r]: plan.md\n'
    assert update(theirs, changed, everything, renamed=renamed).text == (
        '* [p](./work/the%20plan.md#now "t") [q](<work/the plan.md>) [[the plan]] [[the plan.md#a|b]] `plan.md` [x](other.md)\n'
        "[r]: work/the%20plan.md\n"
    )


def test_rename_writes_a_wikilinks_folder_where_the_name_is_not_enough() -> None:
    """A wikilink to a renamed file gets the folder when another file has the same name."""
    everything = {"a/plan.md": PLAN, "b/plan.md": PLAN}
    assert update("[[old]]\n- [[b/plan]]\n", {}, everything, renamed={"old.md": "a/plan.md"}).text == "[[a/plan]]\n- [[b/plan]]\n"


def test_pointer_that_was_taken_away_returns() -> None:
    """The pointer of a file that is still there returns: at once in a prompt, in the file when the file is named."""
    assert update("# M\n", {"plan.md": (PLAN, PLAN)}, {"plan.md": PLAN}).text == f"# M\n\n{OURS}"
    assert render("# M\n", {"plan.md": PLAN}).text == f"# M\n\n{OURS}"


def test_pointer_of_a_file_that_cannot_be_read_stays() -> None:
    """An update leaves the line of a file it was told nothing about."""
    assert update(OURS, {"food.md": (None, FOOD)}, {"food.md": FOOD}).text == OURS + render_line("food.md", FOOD) + "\n"


@pytest.mark.parametrize("text", ["", "\ufeff", "# M", "a\r\nb\n\n", f"text\n{OURS[:-1]}", f"\ufeff{OURS}* [F](food.md)\r\n\n"])
def test_index_in_order_comes_back_as_it_is(text: str) -> None:
    """An update without changes returns BOM, mixed line endings and a missing final newline byte for byte."""
    everything = {target: BOTH[target] for target in targets(text)}
    assert update(text, {}, everything).text == text


def test_full_index_drops_the_oldest_of_ours() -> None:
    """I7: a write to a full index succeeds; the oldest lines go, pinned and people's stay, and the figures say so."""
    everything = files(201) | {"old.md": Listed("Old", "kept", pinned=True)}
    text = "# Mine\n\n" + lines(everything)
    updated = update(text, {"n00200.md": (None, everything["n00200.md"])}, everything)
    assert (updated.shown, updated.not_shown, updated.lines) == (197, 5, 200)
    assert targets(updated.text) == [*list(everything)[5:-1], "old.md"]
    assert updated.text.startswith("# Mine\n\n")
    assert updated.text.splitlines()[-1] == (
        "- _5 more memory files are not listed here; list or search the folder to reach them._"
    )
    assert "197 of 202 memory files, in 200 of 200 lines" in (warning(updated) or "")
    assert warning(update("", created("plan.md"), {"plan.md": PLAN})) is None


def test_notice_follows_what_is_left_out() -> None:
    """The last line is kept up to date, stays last, and goes when nothing is left out."""
    everything = files(5)
    small = Limits(max_lines=4)
    text = update("", {path: (None, listed) for path, listed in everything.items()}, everything, small).text
    assert targets(text) == ["n00002.md", "n00003.md", "n00004.md"] and "_2 more memory files are" in text
    fewer = {path: listed for path, listed in everything.items() if path != "n00000.md"}
    text = update(text + "A note.\n", {"n00000.md": (everything["n00000.md"], None)}, fewer, Limits(5)).text
    assert text.splitlines()[3] == "A note." and "_1 more memory file is" in text.splitlines()[4]
    del fewer["n00001.md"]
    text = update(text, {"n00001.md": (everything["n00001.md"], None)}, fewer, Limits(5)).text
    assert text.endswith("A note.\n") and "more memory" not in text


def test_people_fill_the_file_and_nothing_of_theirs_is_dropped() -> None:
    """People's lines alone may exceed the limits on disk; then nothing is added to them."""
    text = "mine\n" * 300
    updated = update(text, created("plan.md"), {"plan.md": PLAN})
    assert updated.text == text and updated.not_shown == 1 and "300 of 200 lines" in (warning(updated) or "")


def test_prompt_shows_the_newest_and_the_pinned() -> None:
    """I1: of 201 pointers the prompt leaves out the oldest, says how many and how to reach them, and cuts no line."""
    everything = files(201) | {"pin.md": Listed("Pin", "p", pinned=True)}
    text = lines(everything)
    shown = render(text, everything)
    assert (shown.lines, shown.not_shown) == (200, 3)
    assert {"n00200.md", "pin.md"} <= set(targets(shown.text)) and "n00000.md" not in targets(shown.text)
    assert shown.text.splitlines()[-1] == "- _3 entries not shown; Read . lists every memory file._"
    assert set(shown.text.splitlines()[:-1]) < set(text.splitlines())


def test_prompt_is_cut_by_bytes_between_lines() -> None:
    """I1: long lines reach the limit in bytes first; the newest are still there and every line is whole."""
    everything = {path: Listed("记" * 40, "忆" * 200, mtime_ns=listed.mtime_ns) for path, listed in files(100).items()}
    shown = render(None, everything)
    assert 24_000 < shown.bytes <= 25_000 and shown.bytes == len(shown.text.encode())
    assert set(shown.text.splitlines()[:-1]) <= set(lines(everything).splitlines())
    assert targets(shown.text)[-1] == "n00099.md" and f"_{shown.not_shown} entries" in shown.text


def test_prompt_cuts_peoples_last_lines_before_pinned_and_newest() -> None:
    """I1: when people's lines fill the index, the prompt cuts their last ones, and the pinned and newest files are there."""
    everything = files(50) | {"pin.md": Listed("Pin", "p", pinned=True)}
    shown = render("".join(f"line {n}\n" for n in range(400)), everything)
    assert shown.lines == 200
    assert targets(shown.text) == ["pin.md", *(f"n{n:05}.md" for n in range(40, 50))]
    assert shown.text.startswith("line 0\nline 1\n")
    assert shown.text.endswith("- _40 entries and 212 lines of MEMORY.md not shown; Read . lists every memory file._\n")


def test_prompt_keeps_a_persons_line_of_a_pinned_file() -> None:
    """I1: a pinned file whose pointer is a person's last line is shown by that line."""
    text = "line\n" * 400 + "* [My pin](pin.md) matters\n"
    assert "* [My pin](pin.md) matters" in render(text, {"pin.md": Listed("Pin", "p", pinned=True)}).text.splitlines()


def test_prompt_begins_no_fence_it_cannot_close() -> None:
    """A cut that would fall into a code block is made before it, so that our lines are not read as code."""
    text = "a\n" * 3 + "```\n" + "code\n" * 20 + "```\n"
    shown = render(text, {"plan.md": PLAN}, Limits(max_lines=10))
    assert shown.text.splitlines()[:3] == ["a", "a", "a"] and "```" not in shown.text and "plan.md" in shown.text


def test_prompt_follows_the_folder_not_the_file() -> None:
    """A prompt leaves out pointer lines of files that are gone and adds the missing ones, the newest last."""
    text = "# M\n- [Gone](gone.md)\n* [My plan](plan.md)\nSee [[gone]].\n"
    everything = {"plan.md": PLAN, "b.md": Listed("B", "", mtime_ns=9), "a.md": Listed("A", "", mtime_ns=5)}
    assert render(text, everything).text == "# M\n* [My plan](plan.md)\n- [A](a.md)\n- [B](b.md)\nSee [[gone]].\n"
    assert render(None, {}).text == ""


def test_only_peoples_lines_are_their_own() -> None:
    """What may enter the history holds no line of ours, but every line of people's, byte for byte."""
    notice = "- _3 more memory files are not listed here; list or search the folder to reach them._\n"
    theirs = "\ufeff# M\r\n* [My food](food.md)\r\nlast"
    assert own_lines(f"\ufeff# M\r\n{OURS}{notice}* [My food](food.md)\r\nlast", BOTH) == theirs


def test_large_folder_costs_little() -> None:
    """A prompt of 10,000 files takes some tens of milliseconds, and an update costs the same in a folder of 100,000."""
    many, more = files(10_000), files(100_000)
    text = render(None, many).text
    started = time.process_time()
    render(text, many)
    rendered = time.process_time()
    update(text, {"n00007.md": (many["n00007.md"], many["n00007.md"])}, more)
    assert rendered - started < 0.4 and time.process_time() - rendered < 0.2
