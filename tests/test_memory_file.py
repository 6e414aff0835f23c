"""One memory file: what is read, what is written, and that nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from mdmemory.errors import InvalidMemoryFile
from mdmemory.files.memory_file import DEFAULT_TYPES, check_typed, decode, encode, new_file, parse, set_field

PAIRS = Path(__file__).parent / "memory_files"
ONLY_TEXT = ("name", "description", "type", "pinned", "valid_from", "valid_until", "supersedes")
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=80)
LINE = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=80).filter(str.strip)
SEEN = sorted(PAIRS.glob("*.md"))
GOOD = [path for path in SEEN if "fields" in json.loads(path.with_suffix(".json").read_text("utf-8"))]
WITH_FIELDS = [
    path
    for path in GOOD
    if path.read_bytes().removeprefix(b"\xef\xbb\xbf").startswith(b"---") and parse("a.md", path.read_bytes()).header.fields
]


def fields_of(data: bytes) -> dict[str, Any]:
    """The fields of a file."""
    return dict(parse("a.md", data).header.fields or {})


def test_every_pair_is_a_pair() -> None:
    """A memory file without its expectation, or the other way round, is a test that does not run."""
    assert {path.stem for path in SEEN} == {path.stem for path in PAIRS.glob("*.json")}
    assert {path.suffix for path in PAIRS.iterdir()} == {".md", ".json"}
    assert b"\r\n" in (PAIRS / "crlf.md").read_bytes()  # .gitattributes keeps the bytes


@pytest.mark.parametrize("path", SEEN, ids=lambda path: path.stem)
def test_a_file_reads_as_its_twin_says(path: Path) -> None:
    """F1 F2 F3 F5 F6 F7 F8 F9 F10: header, body and warnings, or the problem with its line."""
    wanted = json.loads(path.with_suffix(".json").read_text("utf-8"))
    try:
        file = parse(path.name, path.read_bytes())
    except InvalidMemoryFile as error:
        assert {"problem": error.reason, "line": error.line} == wanted
        return
    assert list(file.header.fields or ()) == list(wanted["fields"])
    assert list(file.warnings) == wanted.pop("warnings", [])
    assert file.body == wanted.pop("body")
    assert list(file.header.tags) == wanted.pop("tags", [])
    assert file.header.pinned == wanted.pop("pinned", False)
    assert list(file.header.source) == wanted.pop("source", [])
    optional = dict.fromkeys(("valid_from", "valid_until", "supersedes"))
    assert {key: getattr(file.header, key) for key in optional | wanted} == optional | wanted


@given(
    st.binary()
    | st.binary().map(b"---\n".__add__)
    | st.text(alphabet="a:-#'\"[]{}&*!|> \n\r\t\u2028é").map(lambda text: f"---\na: {text}\n---\n".encode())
)
def test_any_bytes_are_a_memory_file_or_an_invalid_one(data: bytes) -> None:
    """F2 F5: whatever the bytes, the whole file and a part of it are read or refused with a reason."""
    for complete in (True, False):
        try:
            file = parse("a.md", data, complete=complete)
        except InvalidMemoryFile as error:
            assert error.reason
        else:
            assert data.decode("utf-8", "ignore").endswith(file.body)
            assert file.before == data.count(b"\n") - file.body.count("\n")


@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_a_head_reads_as_far_as_it_goes(path: Path) -> None:
    """F10: a file cut anywhere after its frontmatter, within a character too, has the header of the whole."""
    data = path.read_bytes()
    whole = parse(path.name, data)
    for end in range(len(data) - len(whole.body.encode()), len(data) + 1):
        head = parse(path.name, data[:end], complete=end == len(data))
        assert head.header.fields == whole.header.fields
        assert whole.body.startswith(head.body)


@pytest.mark.parametrize("path", [path for path in SEEN if path not in GOOD], ids=lambda path: path.stem)
def test_a_broken_file_is_never_rewritten(path: Path) -> None:
    """F2 F5: setting a field of a file that can't be read is refused; no second frontmatter is put before the first."""
    with pytest.raises(InvalidMemoryFile):
        set_field(path.name, path.read_bytes(), "tags", "user")


def test_a_field_that_must_be_text_is_mended() -> None:
    """F2: a file that is broken by a value alone is readable again when that value is set."""
    assert parse("a.md", set_field("a.md", (PAIRS / "type-is-a-list.md").read_bytes(), "type", "user")).header.type == "user"


@pytest.mark.parametrize("path", WITH_FIELDS, ids=lambda path: path.stem)
@given(value=TEXT | st.lists(TEXT, max_size=3))
def test_setting_a_field_changes_that_field_only(path: Path, value: str | list[str]) -> None:
    """F3 F4 F6 F12: the field has the value; every line of other fields, comments, body, mark and line ends are the same bytes."""
    data = path.read_bytes()
    before = fields_of(data)
    for key in [*before, "new key"]:
        if key in ONLY_TEXT and isinstance(value, list):
            with pytest.raises(InvalidMemoryFile, match="must be text"):
                set_field(path.name, data, key, value)
            continue
        after = set_field(path.name, data, key, value)
        assert fields_of(after) == before | {key: value}
        assert list(fields_of(after))[: len(before)] == list(before)
        assert_others_kept(data, after, key)


@pytest.mark.parametrize("path", WITH_FIELDS, ids=lambda path: path.stem)
def test_removing_a_field_changes_that_field_only(path: Path) -> None:
    """F6: the field's lines are gone, and everything else is the same bytes; removing what is not there changes nothing."""
    data = path.read_bytes()
    before = fields_of(data)
    assert set_field(path.name, data, "not there", None) == data
    for key in before:
        after = set_field(path.name, data, key, None)
        assert fields_of(after) == {name: value for name, value in before.items() if name != key}
        assert_others_kept(data, after, key)


def assert_others_kept(before: bytes, after: bytes, key: str) -> None:
    """All lines before the field's and, from the next field on, all after it are the same."""
    old, new = before.split(b"\n"), after.split(b"\n")
    start = next((n for n, line in enumerate(old) if line.removeprefix(b"\xef\xbb\xbf").startswith(f"{key}:".encode())), None)
    if start is None:  # a new field is the last line of the frontmatter
        added = next(line for line in new if line.startswith(key.encode()))
        new.remove(added)
        assert new == old
        assert added.endswith(b"\r") == old[0].endswith(b"\r")
        return
    ends = [
        n
        for n, line in enumerate(old[start + 1 :], start + 1)
        if line[:1] not in (b" ", b"\t", b"\r", b"", b"-") or line[:3] == b"---"
    ]
    assert new[:start] == old[:start]
    assert new[len(new) - len(old) + ends[0] :] == old[ends[0] :]


@pytest.mark.parametrize(
    ("head", "result"),
    [
        ("a: {b: c} # d\n", "a: v # d\n"),
        ("a: [b,\n c]\n", "a: v\n"),
        ("a:\n- b\n# c\n- d\n# e\n", "a: v\n# e\n"),
        ("a: # c\n  - b\n", "a: v # c\n"),
        ("a:\n  b:\n    c: d\n\nz: 1\n", "a: v\n\nz: 1\n"),
        ("a: |\n  b\n\nz: 1\n", "a: v\n\nz: 1\n"),
        ("a: >-\n  b\n", "a: v\n"),
        ("a:\n", "a: v\n"),
        ("a:   # c\n", "a: v   # c\n"),
        ("a:\tb\t# c\n", "a:\tv\t# c\n"),
        ("'a' : \"b\n  c\"\n", "'a' : v\n"),
        ("x: a\na: b: \n", None),
        ("a: b\n  c\nz: 1\n", "a: v\nz: 1\n"),
        ("z: 1\n? a\n: b\n", "z: 1\n? a\n: v\n"),
        ("a: {}\n", "a: v\n"),
        ("a: []\n", "a: v\n"),
        ("a: b\\\n", "a: v\n"),
        ("a: '\u2028b'\nz: 1\n", "a: v\nz: 1\n"),
    ],
)
def test_a_value_of_any_form_is_replaced_where_it_stands(head: str, result: str | None) -> None:
    """F6: blocks, lists, mappings, folded and quoted values give way to the new one; comments beside and below stay."""
    data = f"---\n{head}---\nBody.".encode()
    if result is None:
        with pytest.raises(InvalidMemoryFile):
            set_field("a.md", data, "a", "v")
    else:
        assert set_field("a.md", data, "a", "v").decode() == f"---\n{result}---\nBody."


@given(st.text(alphabet="ab:-#'\"[]{}?|> \n\r\t\u2028\x85\ufeff", max_size=30), st.sampled_from("abz"), TEXT | st.none())
def test_a_field_is_set_alone_or_not_at_all(head: str, key: str, value: str | None) -> None:
    """F6: in whatever YAML people write, other fields keep their values, or the change is refused."""
    data = f"---\na: {head}\nz: 1\n---\nBody.".encode()
    try:
        before = fields_of(data)
        after = set_field("a.md", data, key, value)
    except InvalidMemoryFile:
        return
    wanted = {name: old for name, old in before.items() if name != key} | ({} if value is None else {key: value})
    assert fields_of(after) == wanted
    assert parse("a.md", after).body == parse("a.md", data).body


def test_a_plain_file_gets_no_frontmatter() -> None:
    """F7: a field can't be set in a file that people made plain."""
    for data in (b"Text.\n", b"---\n\nText: under a rule.\n", b"", b"---\n- list\n---\n"):
        with pytest.raises(InvalidMemoryFile, match="no frontmatter"):
            set_field("a.md", data, "type", "user")


def test_the_last_field_is_not_removed_when_comments_would_be_left() -> None:
    """F6: comments alone between fences would read as a body, so that is refused."""
    with pytest.raises(InvalidMemoryFile, match="edit the file itself"):
        set_field("a.md", b"---\n# c\na: b\n---\n", "a", None)
    assert set_field("a.md", b"---\na: b\n---\n", "a", None) == b"---\n---\n"


@given(LINE, LINE, LINE, TEXT, st.lists(LINE, max_size=3))
def test_a_new_file_reads_back(name: str, description: str, type: str, body: str, tags: list[str]) -> None:
    """F1: what is put into a new file comes out of it, also for other YAML readers."""
    assume("\0" not in body)
    data = new_file(name, description, type, body, tags=tags, source="s#1")
    file = parse("a.md", data)
    assert file.header.fields == {"name": name, "description": description, "type": type, "tags": tags, "source": "s#1"}
    assert yaml.safe_load(data.decode().split("---\n")[1]) == file.header.fields
    assert file.body == "\n" + body.strip("\n") + "\n"
    assert file.header.name == name.strip()


def test_half_a_character_is_refused() -> None:
    """F11: a lone surrogate in what is to be written is an error with the line, in a body, a name and a field."""
    with pytest.raises(InvalidMemoryFile, match="line 2: the text contains half of a character"):
        encode("a.md", "one\ntwo \ud83d\n")
    with pytest.raises(InvalidMemoryFile, match="the new file, line 2"):
        new_file("half \ud83d", "d", "user", "b")
    with pytest.raises(InvalidMemoryFile, match="lone surrogate"):
        set_field("a.md", b"---\na: b\n---\n", "a", ["\udfff"])
    with pytest.raises(InvalidMemoryFile, match="NUL"):
        encode("a.md", "\0")


def test_what_is_not_utf_8_says_so() -> None:
    """F5: Latin-1 and UTF-16 are told from text, with the line; a character cut at the end of a head is fine."""
    with pytest.raises(InvalidMemoryFile, match=r"a\.md, line 2: the file is not UTF-8 \(perhaps Latin-1\)"):
        decode("a.md", b"one\ncaf\xe9 two")
    with pytest.raises(InvalidMemoryFile, match="looks like UTF-16"):
        decode("a.md", "x".encode("utf-16"))
    assert decode("a.md", "é".encode()[:1], complete=False) == ""
    with pytest.raises(InvalidMemoryFile):
        decode("a.md", "é".encode()[:1])


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("# C#\n", "C#"),
        ("## Two ##\n", "Two"),
        ("#tag\n# Title\n", "Title"),
        ("# \n", "note"),
        ("##\n#\n", "note"),
        ("text\n", "note"),
        ("# a # b #\n", "a # b"),
        ("####### x\n", "note"),
        ("# #\n", "note"),
    ],
)
def test_a_plain_file_is_named_by_its_first_heading(text: str, name: str) -> None:
    """F7: the name is the first heading, without the marks that may close it, or the file's own."""
    assert parse("folder/note.md", text.encode()).header.name == name


TYPED = "---\nname: N\ndescription: D\ntype: user\n---\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Text.\n", "must begin with frontmatter"),
        (TYPED.replace("name: N\n", ""), "needs a name"),
        (TYPED.replace(" D", ' " "'), "needs a description"),
        (TYPED.replace("user", "usr"), "has type 'usr'; it must be one of user, feedback, project, reference"),
        (TYPED.replace("type: user\n", ""), "has no type"),
        (TYPED.replace(" N", " " + "n" * 201), "the name has 201 characters; at most 200"),
        (TYPED.replace(" D", " [D]"), "'description' must be text"),
    ],
)
def test_what_agents_create_must_be_whole(text: str, said: str) -> None:
    """F8: a missing or wrong field is refused with what it must be and how a memory file looks."""
    with pytest.raises(InvalidMemoryFile, match=said):
        check_typed(parse("a.md", text.encode()), DEFAULT_TYPES)
    check_typed(parse("a.md", TYPED.encode()), DEFAULT_TYPES)
