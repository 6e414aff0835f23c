"""Frontmatter's YAML, read strictly: where it is, what it says, and what is refused."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress

import frontmatter
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from mdmemory.errors import InvalidMemoryFile
from mdmemory.files import strict_yaml
from mdmemory.files.memory_file import parse
from mdmemory.files.strict_yaml import Field, StrictYAML, quote, read_fields, split

UTF8_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@pytest.fixture(params=["CSafeLoader", "SafeLoader"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Both of PyYAML's parsers: the one in C, and the one that is there without a compiler."""
    monkeypatch.setattr(strict_yaml, "_LOADER", getattr(yaml, request.param))
    yield request.param


def fields_of(text: str) -> list[Field]:
    """The fields of a text that is a mapping."""
    fields = read_fields("a.md", text)
    assert fields is not None
    return fields


def refusal(text: str) -> InvalidMemoryFile:
    """The error with which a file with this text is refused."""
    with pytest.raises(InvalidMemoryFile) as caught:
        parse("a.md", text.encode())
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        "type: no\r\nname: 010\r\n",
        "😀: 大\n# c\nb: 'x'   # d\n",
        "a: |\n  x\n\n\nb: >-\r\n  y\r\n  z\r\n",
        "a: {b: [c, d], e: {}}\nb: [1,\n 2] # x\n",
        "a:\n- 1\n- - 2\n  -\n# c\nb:\n  c:\n    d: e\n\nf:\n",
        'a: "x\n  y"\n"b": 1\n',
    ],
)
def test_a_field_knows_where_its_key_and_value_are(text: str) -> None:
    """Key and value are found character for character, whatever line ends, emoji and comments stand before them."""
    for field in fields_of(text):
        key, value = text[field.key_start : field.key_end], text[field.start : field.end]
        assert yaml.load(key, yaml.BaseLoader) == field.key
        assert yaml.load(f"{key}: {text[field.key_end + 1 : field.end]}\n", yaml.BaseLoader) == {field.key: field.value}
        assert value == value.strip() and not value.startswith(":")
        assert field.line == 2 + text.count("\n", 0, field.key_start)


def test_lines_are_counted_as_an_editor_counts_them() -> None:
    """YAML takes U+2028, NEL and a lone CR for line ends; the line in an error is still the editor's."""
    error = refusal('---\na: "x\u2028y\x85z"\nb: 1\nb: 2\n---\n')
    assert (error.line, str(error)) == (4, "a.md, line 4: the key 'b' stands on line 3 already; keep one of the two")


@pytest.mark.parametrize(
    "word", ["no", "yes", "true", "010", "12:30:00", "1_000", "0x1F", "1e3", ".nan", "~", "null", "2026-02-30"]
)
def test_scalars_are_text(word: str) -> None:
    """F8: what YAML would take for a truth value, a number, a time or nothing is the text that stands there."""
    assert [field.value for field in fields_of(f"a: {word}\nb: [{word}]\nc: {{d: {word}}}\n")] == [word, [word], {"d": word}]


def test_duplicate_keys_are_refused_with_both_lines() -> None:
    """F8: two equal keys are an error that names both lines, also in a nested mapping, and `a` equals `"a"`."""
    assert (
        str(refusal('---\na: 1\nb: 2\n"a": 3\n---\n')) == "a.md, line 4: the key 'a' stands on line 2 already; keep one of the two"
    )
    assert refusal("---\nm:\n  a: 1\n  a: 2\n---\n").line == 4


NESTED = "a: " + "[" * 3_000 + "]" * 3_000
BOMBS = {
    "alias bomb": "a: &a [x, x]\n"
    + "".join(f"{b}: &{b} [{', '.join(f'*{a}' for _ in range(9))}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
    "python object": 'a: !!python/object/apply:os.system ["true"]\n',
    "nested lists": NESTED + "\n",
    "nested mappings": "a: " + "{a: " * 3_000 + "x" + "}" * 3_000 + "\n",
    "nested blocks": "".join(" " * n + "a:\n" for n in range(170)),
    "nested dashes": "a:\n" + "- " * 3_000 + "x\n",
    "100k keys": "".join(f"k{n}: v\n" for n in range(100_000)),
    "1 MB value": "a: " + "x" * 1_000_000 + "\n",
    "1 MB of blank lines": "\n" * 1_000_000 + "a: b\n",
    "1 MB of comments": "# x\n" * 250_000 + "a: b\n",
    "1 MB of blanks": "a" + " " * 1_000_000 + "\n",
    "1 MB of colons": "a" + ":" * 1_000_000 + "\n",
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_at_once(name: str, parser: str) -> None:
    """F9: what would take much time or memory is refused, or is no frontmatter, within milliseconds and a few megabytes."""
    data = f"---\n{BOMBS[name]}---\nBody.\n".encode()
    tracemalloc.start()
    try:
        assert parse("a.md", data).header.fields == {}
    except InvalidMemoryFile as error:
        assert error.line is not None
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    began = time.process_time()
    with suppress(InvalidMemoryFile):
        parse("a.md", data)
    assert time.process_time() - began < (0.05 if parser == "CSafeLoader" else 0.5)
    assert peak < 8 * len(data) + 1_000_000


@pytest.mark.parametrize(
    ("text", "what"),
    [("a: &x y", "&x is a YAML anchor"), ("a: *x", "*x is a YAML alias"), ("a: !x y", "a YAML tag"), ("? [a]\n: b", "plain text")],
)
def test_what_stands_for_something_else_is_refused(text: str, what: str) -> None:
    """F9: anchors, aliases, tags and keys that are lists are refused with line and reason."""
    error = refusal(f"---\nname: x\n{text}\n---\n")
    assert error.line == 3
    assert what in error.reason


@pytest.mark.parametrize("name", ["name", '"a: b"', "'a: b'", "a:b", "Date created", "-x", "名前", "a#b"])
def test_a_first_key_may_look_odd(name: str) -> None:
    """F6: frontmatter is recognised by its first line being a key, in quotes or not."""
    assert StrictYAML("a.md").detect(f"---\n# c\n{name}: x\n---\n")


@pytest.mark.parametrize(
    "text",
    [
        "---\nProse.\n",
        "---\n\nNote: prose.\n",
        "---\n\nA note: prose.\n\n---\n",
        "---\n# Title\n\nNote: prose.\n",
        "---\n- a: b\n---\n",
        "----\na: b\n----\n",
        " ---\na: b\n---\n",
        "---",
        "--- a: b\n",
        "---\n[a](b): c\n---\n",
        "\n---\na: b\n---\n",
        "---\n**Bold**: x\n---\n",
    ],
)
def test_a_rule_is_no_fence(text: str) -> None:
    """F7: a body that begins with a rule is not mistaken for frontmatter."""
    assert split("a.md", text) is None
    assert parse("a.md", text.encode()).body == text


def test_a_fence_that_is_never_closed_says_so() -> None:
    """F2: a first key without a closing fence is an error on line 1, not a plain file."""
    assert str(refusal("---\nname: x\n\nBody.\n")).startswith("a.md, line 1: the frontmatter that opens here is never closed")
    assert "16,384" in str(refusal("---\nname: x\n\n" + "Body.\n" * 3_000))


def test_frontmatter_may_be_as_long_as_the_limit_and_no_longer() -> None:
    """F10: up to 16,384 characters are read whole, whatever their size in bytes."""
    value = "大" * (strict_yaml.MAX_FRONTMATTER_CHARS - len("a: \n"))
    assert parse("a.md", f"---\na: {value}\n---\n".encode()).header.fields == {"a": value}
    assert "16,384" in str(refusal(f"---\na: {value}大\n---\n"))


def test_broken_yaml_is_reported_where_it_begins() -> None:
    """F2: the line is that of the broken value, also for a quote or bracket that is never closed."""
    for text in ('"abc "def" ghi"', '"abc', "[a, b", "{a", "b: c", "@x", '"C:\\path"'):
        error = refusal(f"---\nname: x\ndescription: {text}\n---\nBody.\n")
        assert error.line == 3
        assert "goes in quotes" in error.reason


def test_a_character_that_yaml_refuses_is_named() -> None:
    """F2: a control character in the frontmatter is reported by its code and line."""
    assert str(refusal("---\na: b\nc: \x07\n---\n")).startswith("a.md, line 3: the frontmatter contains the character U+0007")


@given(UTF8_TEXT)
def test_whatever_is_quoted_reads_back_the_same(text: str) -> None:
    """F1: any text that we write is read back as that text, by us and by YAML's own typed reading, alone and in a list."""
    line = f"{quote(text)}: {quote(text)}\nb: [{quote(text, in_list=True)}]\n"
    assert "\n" not in quote(text)
    if len(text) < 100 and text != "b":  # YAML's limit for a key is 1,024 characters, escapes included
        assert yaml.safe_load(line) == {text: text, "b": [text]}
        assert [(field.key, field.value) for field in fields_of(line)] == [(text, text), ("b", [text])]


@pytest.mark.parametrize(
    "text",
    [
        *"PR #762|a: b|say \"hi\"|'x'|no|Y|010|1e3|0o17|12:30:00|2026-01-01|2001-99-99|0b_|~|null|=|<<".split("|"),
        *"*a|&a|!a|%a|@a|`a`|- a|? a|a:|# a|[a]|{a}|a\\\nb|\ta|a ||a\x85b|\u2028|\ufeff".split("|"),
    ],
)
def test_what_yaml_could_misread_is_quoted(text: str) -> None:
    """F1: text with `#`, `:`, quotes, or the look of a number or truth value is put in quotes, and every parser gives it back."""
    assert quote(text).startswith('"')
    for loader in (yaml.SafeLoader, yaml.CSafeLoader, yaml.BaseLoader):
        assert yaml.load(f"a: {quote(text)}", loader) == {"a": text}


@pytest.mark.parametrize(
    "text", ["Short title", "path C:\\out\\", "it's (still) fine; really, yes", "大明科技", "a#b", "http://x/y", "naïve 🎉 👩‍👩‍👧"]
)
def test_plain_text_stays_plain(text: str) -> None:
    """People's words are written as they are, without quotes or escapes."""
    assert quote(text) == text


def test_deep_nesting_does_not_reach_the_interpreters_limit() -> None:
    """F9: quoting a value of 100,000 brackets is text like any other."""
    assert quote("[" * 100_000) == '"' + "[" * 100_000 + '"'


SIMPLE_LINES = st.lists(
    st.builds(
        "{}:{}{}{}".format,
        st.from_regex(r"[A-Za-z_][\w-]{0,5}", fullmatch=True),
        st.sampled_from([" ", " ", " ", "  ", "", "\t"]),
        st.one_of(
            st.from_regex(r"[a-zA-Z0-9_][a-z0-9 :#.,'é大-]{0,8}[a-z0-9.#é-]", fullmatch=True),
            st.text("ab9_-.,:# '\"\\[]{}!&*?|>%@`é大\t\u2028\x85😀~=", max_size=12),
            st.text("ab9: #", max_size=8).map('"{}"'.format),
            st.lists(st.from_regex(r"[A-Za-z0-9_][a-z0-9#'\"?é-]{0,4}( [a-z0-9]#?)?", fullmatch=True), max_size=3).map(
                lambda words: f"[{', '.join(words)}]"
            ),
            st.text("ab9_ ,#:[]{}'\"é\u2028", max_size=8).map("[{}]".format),
            st.sampled_from(["no", "010", "12:30:00", "null", "a: b", "a #b", "a:", '"a"b', "- a", "? a", "1e5", "---", "..."]),
        ),
        st.sampled_from(["", "", "", " ", " # c"]),
    ),
    min_size=1,
    max_size=4,
).map("\n".join)


@given(SIMPLE_LINES, st.sampled_from(["", "\n", "\n\n"]))
def test_simple_lines_are_read_as_the_parser_reads_them(lines: str, end: str) -> None:
    """F8: what is read without a parser has the values, places and lines that the parser gives."""
    simple = strict_yaml._simple_fields(lines + end, 2)
    if simple is not None:
        assert simple == strict_yaml._Reader("a.md", lines + end, 2).document()


def test_a_list_of_words_is_read_as_a_list() -> None:
    """F8: tags and sources as they are written by everyone are lists of text, whatever YAML would make of their words."""
    assert fields_of("a: [no]\nb: [010, s-1#m2, two words]\n") == [
        Field("a", ["no"], 2, 0, 1, 3, 7, False),
        Field("b", ["010", "s-1#m2", "two words"], 3, 8, 9, 11, 35, False),
    ]


@given(SIMPLE_LINES, st.sampled_from(["\n", "\r\n"]), st.sampled_from(["", "\n", " \nBody: x\n---\n", "\x1c"]), st.booleans())
def test_the_frontmatter_is_where_python_frontmatter_finds_it(lines: str, newline: str, after: str, complete: bool) -> None:
    """F3 F5: `parse`, which looks for the fences once, says what python-frontmatter says when it looks for them itself."""
    text = f"---\n{lines}\n---{after}".replace("\n", newline)
    try:
        file = parse("a.md", text.encode(), complete=complete)
    except InvalidMemoryFile:
        return
    fields, body = frontmatter.parse(text, handler=StrictYAML("a.md", complete=complete))
    assert file.header.fields == fields
    assert not fields or file.body.replace("\r\n", "\n").strip() == body
