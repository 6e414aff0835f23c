"""How a file is cut, and which words count for each piece."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmemory.recall.entries import Document, entry_of, words_of
from mdmemory.recall.passages import Counts, passages_of
from mdmemory.recall.ranking import LexicalIndex, RankedPassage
from mdmemory.recall.tokens import ENGLISH
from mdmemory.recall.units import cut

CHAT = "Anna: Hi Ben!\n\nBen: Hello.\n\nAnna: Where did the boat go?\n\nBen: A teacher bought it.\nFor little money."


def weight(text: str, term: str) -> list[float]:
    """What a term counts in each passage of a text."""
    cut_up = passages_of(text)
    counts = Counts(cut_up)
    found = dict(counts.weights(counts.own(counts.find([term])))[term])
    return [round(found.get(place, 0.0), 3) for place in range(len(cut_up.lines))]


def passages(text: str, query: str) -> list[RankedPassage]:
    """The passages of one file that answer, best first."""
    index = LexicalIndex()
    index.put("a.md", Document(text), 0)
    return index.rank_passages(query, limit=10)


def test_turns_are_units_with_their_speaker_and_lines() -> None:
    """A turn ends where the next begins; blank lines after it are not part of it."""
    units = cut(CHAT)
    assert [(unit.speaker, unit.line, unit.end_line) for unit in units] == [
        ("Anna", 1, 1),
        ("Ben", 3, 3),
        ("Anna", 5, 5),
        ("Ben", 7, 8),
    ]
    assert units[3].text == "A teacher bought it.\nFor little money."


@pytest.mark.parametrize(
    "line",
    [
        "{}: {}",
        "**{}:** {}",
        "**{}**: {}",
        "- {}: {}",
        "[10:30] {}: {}",
        "{} (10:30): {}",
        "{}：{}",
        "### {}\n\n{}",
        "## {} · 10:30\n\n{}",
    ],
)
def test_conversations_are_known_by_their_labels(line: str) -> None:
    """Bold, dated, listed, full-width and heading labels are read alike."""
    text = "\n\n".join(
        line.format(who, said) for who, said in [("用户", "one"), ("Bot 2", "two"), ("用户", "three"), ("Bot 2", "four")]
    )
    assert [(unit.speaker, unit.text.strip()) for unit in cut(text)] == [
        ("用户", "one"),
        ("Bot 2", "two"),
        ("用户", "three"),
        ("Bot 2", "four"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Deadline: Friday\n\nOwner: Anna\n\nStatus: open\n\nBudget: none",
        "Why: it broke\n\nHow: slowly\n\nWhy: it rained\n\nSome prose.\n\nMore.\n\nMore.\n\nMore.\n\nMore.\n\nAnd more.",
        "See https://example.org: it is good",
        "Note: one\n\nNote: two\n\nNote: three\n\nNote: four",
    ],
)
def test_notes_are_not_taken_for_conversations(text: str) -> None:
    """Fields, marks of one kind and links make no speakers, so that nothing meant for conversations touches notes."""
    assert {unit.speaker for unit in cut(text)} == {None}


def test_notes_are_cut_into_paragraphs_and_items() -> None:
    """A heading belongs to what follows it, an item is a unit of its own, and a fence is never cut."""
    text = "# Title\n\nFirst.\nStill first.\n\n## Part\n\n- one\n- two\n  more\n\n```\na\n\nb\n```\n"
    assert [(unit.line, unit.end_line) for unit in cut(text)] == [(1, 4), (6, 8), (9, 10), (12, 16)]


@given(st.lists(st.sampled_from(["", "# h", "- item", "text", "A: x", "B: y", "```", "  "]), max_size=20))
def test_no_line_with_words_is_lost(lines: list[str]) -> None:
    """Every line with words is in exactly one unit, whatever the text looks like."""
    covered = [line for unit in cut("\n".join(lines)) for line in range(unit.line, unit.end_line + 1)]
    assert len(covered) == len(set(covered))
    assert {number for number, line in enumerate(lines, 1) if line.strip()} <= set(covered)


@given(
    st.lists(st.sampled_from(["", "\r", "# h", "#tag", "- item", "12. item", "1234. text", "text", "  text", "~~~"]), max_size=20)
)
def test_units_end_where_people_see_an_end(lines: list[str]) -> None:
    """Outside of a fence, a unit with more than headings in it ends before a blank line, a heading and an item."""
    for unit in cut("\n".join(lines)):
        fenced = says = False
        for line in unit.text.split("\n"):
            starts = line in ("", "\r", "# h", "- item", "12. item")
            assert fenced or not (says and starts)
            fenced ^= line == "~~~"
            says = says or line not in ("", "\r", "# h")


@pytest.mark.parametrize("indent", ["", "  ", "\t", " " * 60, "> ", "-   "])
@pytest.mark.parametrize("label", ["{}:", "**{}** :", "__{}__:", "[2026-11-30] {} :", "{} (10:30):", "10:30:05 {}：", "{}\t:"])
def test_labels_may_be_indented_and_dated(indent: str, label: str) -> None:
    """The name is what stands there without spaces, marks and times."""
    text = "\n".join(f"{indent}{label.format(name)} said" for name in ["Dr. O'Neil-Ray", "B_2"] * 2)
    assert [unit.speaker for unit in cut(text)] == ["Dr. O'Neil-Ray", "B_2"] * 2


def test_headings_alone_are_gone_through_once() -> None:
    """A file of nothing but headings is one passage, and each is looked at once: else this would take hours."""
    (unit,) = cut("# Heading\n\n" * 100_000)
    assert (unit.line, unit.end_line) == (1, 199_999)


def test_short_passages_borrow_from_their_neighbours() -> None:
    """A neighbour's word counts .3, .2 and .1 at distance 1, 2 and 3, less as the borrower is longer."""
    text = "\n\n".join(["boat", *("x" for _ in range(4))])
    assert weight(text, "boat") == pytest.approx([1, 0.3 * 0.99, 0.2 * 0.99, 0.1 * 0.99, 0], abs=1e-3)


def test_long_passages_do_not_borrow() -> None:
    """From a hundred words on a passage stands for itself."""
    long = " ".join(f"word{n}" for n in range(100))
    assert weight(f"boat\n\n{long}", "boat") == [1, 0]


def test_a_question_counts_for_the_reply() -> None:
    """Its words count whole for the next turn of another speaker and half for the one who asks."""
    assert weight(CHAT, "boat")[2:] == [0.5, 1.0]
    assert passages(CHAT, "where did the boat go?")[0].line == 7


def test_one_who_goes_on_talking_answers_nobody() -> None:
    """A question before a turn of the same speaker stays with its own turn, and is borrowed like other words."""
    text = "Anna: hi\n\nBen: hi\n\nAnna: Where is the boat?\n\nAnna: Never mind, x.\n\nBen: ok"
    assert weight(text, "boat")[2] == 1 and weight(text, "boat")[3] < 0.3


def test_a_question_mark_in_a_note_changes_nothing() -> None:
    """Notes have no replies: a question counts for its own paragraph only, beside what neighbours borrow."""
    assert weight("Where is the boat?\n\nIn Kiel.", "boat")[0] == 1


def test_the_person_named_comes_first_and_their_name_elsewhere_does_not() -> None:
    """Asked what Ben says of the boat, Ben's turn leads, not the one that calls him by name."""
    text = "Anna: Ben, the boat!\n\nBen: The boat sails.\n\nAnna: The boat, Ben.\n\nBen: Fine."
    index = LexicalIndex()
    index.put("a.md", Document(text), 0)
    assert index.rank_passages("Ben boat", limit=1)[0].line == 3
    assert index.rank("Ben boat", limit=1, now_ns=0, half_life_days=180)[0].explain["speaker"] == "Ben"


def test_a_name_alone_is_a_word_like_others() -> None:
    """Where nothing but a speaker's name is asked for, turns that mention it are found."""
    assert 1 in [found.line for found in passages(CHAT, "Ben")]


@given(st.lists(st.sampled_from([*CHAT.split("\n\n"), "Where? Where is it?", "boat " * 99, "x " * 120, "お茶が好き?"]), max_size=9))
def test_a_passage_weighs_what_its_terms_count(blocks: list[str]) -> None:
    """The length that is kept is the sum of all weights, those that are borrowed and given included."""
    text = "\n\n".join(blocks)
    cut_up = passages_of(text)
    weights = [weight(text, term) for term in set(cut_up.text.split())]
    assert [sum(each[place] for each in weights) for place in range(len(cut_up.lines))] == pytest.approx(cut_up.lengths, abs=0.01)


@given(
    st.lists(st.sampled_from(["", "# h", "- it's", "text", "Anna: x?", "Ben: y", "お茶"]), max_size=20),
    st.sampled_from(["", "Boat", "茶"]),
)
def test_what_is_kept_of_a_file_gives_its_passages_again(lines: list[str], name: str) -> None:
    """Terms and columns come back as they were, a note's head as its first passage."""
    document = Document("\n".join(lines), name=name, before=3)
    words = words_of(document, 0, ENGLISH)
    again = entry_of(words, 0, ENGLISH)
    spoken = bool(words.speakers)
    wanted = passages_of(document.text, before=3, head="" if spoken else words.name, head_words=len(name.split()))
    assert [list(column) for column in again.passages] == [list(column) for column in wanted]
    assert again.head == (tuple(words.name.split()) if spoken else ())
    assert set(words.body.partition("\n")[0].split()) == ({"anna", "ben"} if spoken else set())


def test_words_side_by_side_count_more() -> None:
    """Of two paragraphs with the same words, the one that has them next to each other comes first."""
    text = "The cat sat on a hot roof of tin.\n\nThe tin roof sat on a hot cat."
    assert passages(text, "tin roof")[0].line == 3


def test_lines_are_those_of_the_file() -> None:
    """With frontmatter before the text, passages are found on the lines where an editor shows them."""
    index = LexicalIndex()
    index.put("a.md", Document("one\n\ntwo boats", name="Title", before=5), 0)
    assert [(item.line, item.end_line) for item in index.rank_passages("boat", limit=1)] == [(8, 8)]
    assert [(item.line, item.end_line) for item in index.rank_passages("title", limit=1)] == [(1, 5)]
