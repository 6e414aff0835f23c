"""What is lost: every line, every detail and every word that no text has any longer is named."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from pathlib import PurePosixPath

import pytest
from consolidating import made, proposed, reply, wish
from folders import in_memory, memory
from hypothesis import given, settings
from hypothesis import strategies as st

from mdmemory.files.changes import Create
from mdmemory.folder.proposals import accept, list_proposals
from mdmemory.folder.proposals.losses import measure

SOURCE = "Tea at 80 °C, bought on 2026-11-30 from Li Wei (https://tea.example/li), see [[Tea House]] and `brew.sh`. Never sugar."


@pytest.mark.parametrize(
    ("after", "lost"),
    [
        (SOURCE, ()),
        (SOURCE.replace("80 °C", "hot"), ("80",)),
        (SOURCE.replace("2026-11-30", "2026-11-03"), ("2026-11-30",)),
        (SOURCE.replace("Li Wei", "a friend"), ("Li", "Wei")),
        (SOURCE.replace("https://tea.example/li", "the shop"), ("https://tea.example/li",)),
        (SOURCE.replace("[[Tea House]]", "the tea house"), ("[[Tea House]]",)),
        (SOURCE.replace("`brew.sh`", "the script"), ("`brew.sh`",)),
        (SOURCE.replace("Never sugar", "Sugar"), ("Never sugar",)),
        (SOURCE.replace("Li Wei", "LI WEI").replace("2026-11-30", "2026-11-30,"), ()),
        ("", ("https://tea.example/li", "[[Tea House]]", "`brew.sh`", "80", "2026-11-30", "Li", "Wei", "Never sugar")),
    ],
)  # fmt: skip
def test_a_detail_that_is_lost_is_named(after: str, lost: tuple[str, ...]) -> None:
    """P1: a number, date, name, link, code or negation that the new text lacks is named, and one that is there is not."""
    assert measure({"a.md": SOURCE}, [after]).details == lost


@pytest.mark.parametrize(
    ("before", "after", "lost"),
    [
        (
            "Do not deploy on Friday. The server is not in Berlin.",
            "Deploy on Friday. The server is not in Berlin.",
            "not deploy on Friday",
        ),
        ("Never deploys on Fridays.", "Deploys on all days, but does not on Fridays; it isn't deployed then.", ""),
        ("Coffee? He doesn't drink it.", "He drinks coffee. Never tea.", "doesn't drink it"),
        ("Trinkt nicht Kaffee.", "Trinkt Kaffee.", "nicht Kaffee"),
        ("不喝咖啡，喝绿茶。", "喝咖啡，喝绿茶。", "不喝咖啡，喝绿茶"),
        ("不喝咖啡，喝绿茶。", "从来不喝咖啡。喝绿茶。", ""),
        ("Он не пьёт кофе.", "Он пьёт кофе.", "не пьёт кофе"),
    ],
)
def test_what_is_denied_stays_denied(before: str, after: str, lost: str) -> None:
    """D2: a negation is that of a word: another one elsewhere in the new text does not stand for it."""
    losses = measure({"a.md": before}, [after])
    assert losses.details == ((lost,) if lost else ()) and all(line.is_reworded is not bool(lost) for line in losses.lines)


def test_code_and_tables_are_not_reworded() -> None:
    """D2: a line of code with another indentation, or a row of a table with other values, is gone; their layout is no matter."""
    code = "```py\nif tea:\n    pour(tea)\n```\n"
    assert [line.is_reworded for line in measure({"a.md": code}, [code.replace("    ", "")]).lines] == [False]
    table = "| tea | degrees |\n|---|---|\n| green | 80 |\n| black | 95 |\n"
    assert measure({"a.md": table + code}, [f"{code}\n{table.replace(' ', '').replace('|---|---|', '| :-- | --- |')}"]).lines == ()
    mixed = measure({"a.md": table}, [table.replace("80", "9").replace("95", "80").replace("9 ", "95 ")])
    assert [(line.line, line.is_reworded) for line in mixed.lines] == [(3, False), (4, False)]


def test_what_is_in_no_source_is_named() -> None:
    """P1: facts that a model has added are named as such."""
    assert measure({"a.md": "Drinks tea."}, ["Drinks tea with Ann since 1990."]).new == ("1990", "Ann")


def test_a_line_is_kept_reworded_or_gone() -> None:
    """D2: lines that stand twice count once; one whose words stand elsewhere is reworded; the rest is gone, and is the share."""
    before = {
        "a.md": "# Tea\nLikes green tea.\nOwns a red bicycle.\n---\n",
        "b.md": "Likes green tea.\n\nThe tea is green and liked.\n",
    }
    losses = measure(before, ["# Tea\nLikes green tea.\n"])
    assert [(line.path, line.line, line.is_reworded) for line in losses.lines] == [("a.md", 3, False), ("b.md", 3, True)]
    assert losses.total[1] == 4 and losses.gone == (len("Owns a red bicycle."), 1) and 0.25 < losses.share < 0.5


def test_a_name_or_number_in_an_address_is_not_said() -> None:
    """P1: what only stands in a link of the new text counts as lost."""
    assert measure({"a.md": "Ask Ann about 2019."}, ["Ask https://x.example/ann/2019 about it."]).details == ("2019", "Ann")


@pytest.mark.parametrize("part", ["a", "a.", "1-", "`", "_1", "[[", "](", "x@", "'s", "茶", "http://", "- ", "not "])
def test_one_huge_line_is_measured(part: str) -> None:
    """D2: whatever a huge line is made of, it is gone through once: else this would take an hour."""
    line = part * (100_000 // len(part))
    assert measure({"a.md": line + "x"}, [line]).gone[1] <= 1


def test_words_are_compared_in_the_language_of_the_folder() -> None:
    """P1: a word in another form is no loss, one that no file has any longer is; also in Chinese."""
    assert measure({"a.md": "He drinks teas."}, ["Tea is what he drank."], ["drinks", "teas"]).words == ()
    assert measure({"a.md": "用户喜欢绿茶"}, ["用户喜欢茶"], ["绿茶", "喜欢"]).words == ("绿茶",)


LINES = st.lists(
    st.sampled_from(
        ["Drinks green tea.", "Likes tea with honey.", "Never coffee.", "# Tea", "- at 80 degrees", "  ", "---", "Ann: 5", "茶"]
    )
    | st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=30),
    max_size=6,
).map("\n".join)


@given(before=st.dictionaries(st.sampled_from(["a.md", "b.md", "c.md"]), LINES, min_size=1), after=st.lists(LINES, max_size=2))
def test_no_line_is_lost_without_a_word(before: Mapping[str, str], after: list[str]) -> None:
    """D2: every line of every source stands in what is made, or is named with its file and number; shares are from 0 to 1."""
    check(before, after, {(line.path, line.line) for line in measure(before, after).lines})
    assert 0 <= measure(before, after).share <= 1
    assert measure(before, list(before.values())).lines == ()


def check(before: Mapping[str, str], after: list[str], named: set[tuple[str, int]]) -> None:
    """Fail unless each line that says something is kept or named."""
    kept = {shown(line) for text in after for line in text.split("\n")}
    for path, text in before.items():
        for number, line in enumerate(text.split("\n"), 1):
            says_something = any(char.isalnum() for char in line)
            assert not says_something or shown(line) in kept or (path, number) in named


def shown(line: str) -> str:
    """A line, but for the space in it that says nothing."""
    return re.sub(r" ?\| ?", "|", " ".join(line.split()))


@settings(max_examples=25)
@given(bodies=st.lists(LINES, min_size=2, max_size=4), body=LINES, at=st.sampled_from(["user/0.md", "user/new.md"]))
def test_no_accepted_proposal_loses_a_line_without_a_word(bodies: list[str], body: str, at: str) -> None:
    """D2: whatever a model makes of files, and a person accepts, each line that is gone from the folder was named before."""

    async def run() -> None:
        folder = in_memory()
        files = {
            f"user/{n}.md": memory(f"Green tea {n}", "green tea with honey", body=f"The user drinks it at dawn.\n{text}")
            for n, text in enumerate(bodies)
        }
        await folder.apply([Create(path, data) for path, data in files.items()], "person", "test")
        await proposed(folder, reply(wish("merge", list(files), made(at, body))))
        for proposal in await list_proposals(folder):
            named = {(line.path, line.line) for line in proposal.losses.lines}
            assert sorted(proposal.sources) == sorted(files)
            await accept(folder, proposal, force=True)
            left = {path: await folder.read(path) for path in folder.files}
            assert sorted(left) == [at] and PurePosixPath(at).suffix == ".md"
            check({path: data.decode() for path, data in files.items()}, [data.decode() for data in left.values()], named)

    asyncio.run(run())
