"""Pointer lines: how ours are written, which links count, and which prose does not belong in the index."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmemory.backends.paths import check
from mdmemory.errors import InvalidPath
from mdmemory.files.index import Listed, inline_content, pointers, render_line


def targets(text: str, *known: str) -> list[str]:
    return [pointer.target for pointer in pointers(text, known)]


def is_legal(path: str) -> bool:
    try:
        check(path)
    except InvalidPath:
        return False
    return path != "MEMORY.md" and not path.startswith("journal/")


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=400)
spiky = st.text(st.sampled_from("ab `[]()<>!#|\\*_—-:\n\t\u0007é大🙂"), max_size=60)
parts = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"), min_size=1, max_size=12) | st.text(
    st.sampled_from("ab ()[]<>%#?&;:`|'\"!*_^~.,é大"), min_size=1, max_size=12
)
paths = st.lists(parts, min_size=1, max_size=3).map(lambda names: "/".join(names) + ".md").filter(is_legal)


@pytest.mark.parametrize(
    ("path", "listed", "line"),
    [
        ("food.md", Listed("Food", "likes hotpot"), "- [Food](food.md) — likes hotpot"),
        ("food.md", Listed("Food", ""), "- [Food](food.md)"),
        ("a/x.md", Listed(" ", "d"), "- [x](a/x.md) — d"),
        ("a.md", Listed("two\n  lines", "tab\there\r\nnext\x1b[31m"), "- [two lines](a.md) — tab here next[31m"),
        ("a.md", Listed("[WIP] `x` a\\b <i>", "[kept] `as` it <is>"), r"- [\[WIP\] \`x\` a\\b \<i>](a.md) — [kept] `as` it <is>"),
        ("大明科技.md", Listed("大明科技", "客户"), "- [大明科技](大明科技.md) — 客户"),
        ("my (best) 50%.md", Listed("x", ""), "- [x](my%20%28best%29%2050%25.md)"),
        ("report..final 🙂.md", Listed("x", ""), "- [x](report..final%20🙂.md)"),
        ("a:b/c#d?.md", Listed("x", ""), "- [x](a%3Ab/c%23d%3F.md)"),
        ("R&D&copy;.md", Listed("x", ""), "- [x](R&D%26copy;.md)"),
    ],
)
def test_line_is_one_markdown_item(path: str, listed: Listed, line: str) -> None:
    """A pointer line is one list item: white space collapsed, controls removed, and encoded only where Markdown needs it."""
    assert render_line(path, listed) == line


def test_long_description_ends_at_a_word() -> None:
    """A description is shortened to 240 characters at a word's end, or between characters where there are no words."""
    english = render_line("a.md", Listed("A", "word " * 100)).partition(" — ")[2]
    chinese = render_line("a.md", Listed("A", "记" * 300)).partition(" — ")[2]
    assert english == ("word " * 47).strip() + " word…" or english == ("word " * 47).strip() + "…"
    assert len(english) <= 240 and len(chinese) == 240 and chinese.endswith("记…")
    assert render_line("a.md", Listed("A", "x" * 240)).endswith("x" * 240)


def test_shortening_keeps_a_letter_with_its_marks() -> None:
    """An accent or a joined emoji is never cut off the character it belongs to."""
    accented = render_line("a.md", Listed("A", "x" * 238 + "e\u0301" + "y" * 20))
    joined = render_line("a.md", Listed("A", "x" * 238 + "👩\u200d💻" + "y" * 20))
    assert accented.endswith("x" * 10 + "…") and joined.endswith("x" * 10 + "…")


@given(path=paths, name=words | spiky, description=words | spiky)
def test_our_line_points_to_its_file(path: str, name: str, description: str) -> None:
    """Whatever name and description a file has, its line is one line whose first link leads back to the path."""
    line = render_line(path, Listed(name, description))
    assert "\n" not in line and "\r" not in line
    assert pointers(line)[0].target == path
    if "[" not in description:
        assert pointers(line)[0].pure and len(pointers(line)) == 1


@pytest.mark.parametrize("style", ["[x]({})", "[x](<{}>)", "see [[{}]] there", '[x]({} "title")', "[x](./{}#part)", "[ref]: {}"])
def test_every_way_to_write_a_link_counts(style: str) -> None:
    """Inline links, with angle brackets, a title or an anchor, reference definitions and wikilinks all point to the file."""
    assert targets(style.format("a/plan.md")) == ["a/plan.md"]


@pytest.mark.parametrize("item", ["- ", "* ", "+ ", "3. ", "4) ", "  - ", "\t* ", "- [ ] ", "- [x] ", "- **"])
def test_pure_pointer_is_a_list_item_that_starts_with_the_link(item: str) -> None:
    """Bullets, numbers, indented items and task boxes that start with a link are pointer lines."""
    assert [pointer.pure for pointer in pointers(f"{item}[Plan](plan.md) — when we ship")] == [True]


@pytest.mark.parametrize("line", ["[Plan](plan.md)", "- see [Plan](plan.md)", "# [Plan](plan.md)", "- [Plan](plan.md), [B](b.md)"])
def test_a_line_that_says_more_is_not_pure(line: str) -> None:
    """Prose, headings and items with several links point to their files without being pointer lines."""
    found = pointers(line)
    assert found[0].target == "plan.md" and not any(pointer.pure for pointer in found)


@pytest.mark.parametrize(
    "text",
    [
        "[x](https://example.com/a.md)",
        "[x](mailto:a@b.md)",
        "[x](/etc/a.md)",
        "[x](C:\\a.md)",
        "[x](../a.md)",
        "[x](a.txt)",
        "[x](#a.md)",
        "[x](.git/a.md)",
        "[x](MEMORY.md)",
        "[x](journal/a.md)",
        "[x] (a.md)",
        r"\[x](a.md)",
        "`[x](a.md)`",
        "``a ` [x](a.md)``",
        "<!-- [x](a.md) -->",
        "```\n[x](a.md)\n```",
        "- ~~~\n  [x](a.md)\n  ~~~",
        "````\n```\n[x](a.md)\n````",
        "<!--\n\n- [x](a.md)\n-->",
        "```\n[x](a.md)",
    ],
)
def test_other_links_and_code_do_not_count(text: str) -> None:
    """Other schemes, absolute and hidden paths, code, comments and escaped brackets hold no pointer."""
    assert pointers(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "a ` b [x](a.md)",
        r"\`[x](a.md)\`",
        "```\ncode\n```\n[x](a.md)",
        "<!-- c --> [x](a.md)",
        "<!--\nc\n--> [x](a.md)",
        "``` a `b` \n[x](a.md)",
        "text <!-- open\n[x](a.md)",
        "[x `y]` z](a.md)",
        "![x](a.md)",
        "[a [b] c](a.md)",
    ],
)
def test_links_beside_code_count(text: str) -> None:
    """A lone backtick, a closed fence or comment before a link does not hide it."""
    assert targets(text) == ["a.md"]


def test_targets_are_decoded() -> None:
    """Percent signs, backslashes and bare spaces in a target are understood."""
    assert targets("[x](my%20plan.md) [y](<my plan.md>) [z](my plan.md) [w](a\\(1\\).md) [v](a(1).md)") == [
        "my plan.md",
        "my plan.md",
        "my plan.md",
        "a(1).md",
        "a(1).md",
    ]


def test_wikilinks_name_a_file_with_or_without_its_folder() -> None:
    """A wikilink means the exact path, else the only file of that name in any folder."""
    known = ("plan.md", "a/food.md", "a/twin.md", "b/twin.md")
    assert targets("[[plan]] [[food|Food]] [[a/food#part|x]] [[twin]] [[new]]", *known) == [
        "plan.md",
        "a/food.md",
        "a/food.md",
        "twin.md",
        "new.md",
    ]


def test_pointer_says_where_it_stands() -> None:
    """A pointer carries its line's number and text, and the place of its target."""
    (pointer,) = pointers("\ufeff# Memory\r\n\r\n- [Plan](plan.md) — x\r\n")
    assert (pointer.line, pointer.text) == (3, "- [Plan](plan.md) — x")
    assert pointer.text[pointer.start : pointer.end] == "plan.md"


@pytest.mark.parametrize(
    "unit", ["[", "](", "[a](", "`" * 3 + "x", "[[", "<!--", "[a[b](", "(", "[x](a ", "\\", '[x](a "b ', "~~~", " ", "> ", "- "]
)
def test_hostile_lines_are_read_in_linear_time(unit: str) -> None:
    """A line of 200,000 characters made to trip a parser is read in a moment."""
    started = time.process_time()
    pointers(unit * (200_000 // len(unit)))
    assert time.process_time() - started < 2


def test_inline_content_is_found() -> None:
    """I4: a memory written into the index itself is found: a long paragraph, a long list of facts, frontmatter."""
    paragraph = "The user lives in Hangzhou and " * 12
    facts = "".join(f"- fact {n}\n" for n in range(9))
    header = "---\nname: Food\ndescription: likes\n---\n"
    assert inline_content(f"# Memory\n\n{paragraph}\n") == [3]
    assert inline_content(f"# Memory\n{facts}") == list(range(2, 11))
    assert inline_content(f"# Memory\n\n{header}text\n")[:4] == [3, 4, 5, 6]


def test_notes_and_pointers_are_no_inline_content() -> None:
    """I4: short notes, headings, properties and any number of pointer lines belong in an index."""
    ours = "".join(render_line(f"{n}.md", Listed(f"N{n}", "d [[x]] " * 20)) + "\n" for n in range(50))
    theirs = "".join(f"- Food: [Hotpot {n}](h{n}.md)\n" for n in range(50))
    notes = "".join(f"- {'a note of fifty characters or a little more ' * 2}\n" for n in range(5))
    assert inline_content(f"---\ntags: [a]\n---\n# Memory\nA short note.\n\n{ours}\n{theirs}\n## Notes\n{notes}") == []
