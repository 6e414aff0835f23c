"""The YAML of frontmatter, read strictly: scalars are text; duplicate keys, anchors, aliases and tags are refused. Floor 1.

YAML's own reading turns `no` into False, `010` into 8 and `12:30:00` into 45000, keeps the last of two equal keys without a
word, and lets nine aliases stand for a billion nodes. Here only the events of the parser are used, so none of that is ever
built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import yaml
from frontmatter.default_handlers import YAMLHandler

from mdmemory.errors import InvalidMemoryFile

MAX_FRONTMATTER_CHARS = 16_384
MAX_DEPTH = 8
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OPENING = re.compile(r"---[ \t]*\r?\n")
_CLOSING = re.compile(r"\n(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE)  # a line end is sooner found than `^`
_FIRST_KEY = re.compile(
    r"""(?P<lead>(?:[ \t]*(?:\#[^\n]*)?\r?\n)*)
    (?: "[^"\n]*"[ \t]* | '[^'\n]*'[ \t]* | (?P<word>[\w-]+)(?=:) | [^\s"'\#:\-\[{>|*&!%](?:[^\n:]|:(?=\S))* ) :(?=\s|$)""",
    re.VERBOSE,
)
_EXAMPLE = "'it''s like this'"
_TEXT = r"[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff"
_WORD = rf"[A-Za-z0-9_]{_TEXT} ,:[\]{{}}]*"
_SIMPLE = re.compile(
    rf"""^([A-Za-z_][\w-]*):(\ +)("{_TEXT}"\\]*" | [A-Za-z0-9_]{_TEXT}]* | \[{_WORD}(?:,?[ ]{_WORD})*\])$""",
    re.ASCII | re.MULTILINE | re.VERBOSE,
)
_UNSAFE = re.compile(r'["\\\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]')  # lone surrogates stay, for `encode` to refuse
_NOT_PLAIN = re.compile(r"(?![\w(/$])|.*(?::(?:\s|$)|\s\#|\s$)|(?:[yn]|[-+.]?[0-9][-+.\w]*)$", re.IGNORECASE)


class Field(NamedTuple):
    """A top-level key with its value, and where both stand.

    Args:
        value: text, or lists and dictionaries of text.
        line: 1-based line of the key in the file.
        key_start, key_end, start, end: the key's and the value's characters, counted from the start of the frontmatter's text;
            what follows a block of text, its last line end included, is not part of the value.
        plain: whether the value is an unquoted scalar.
    """

    key: str
    value: Any
    line: int
    key_start: int
    key_end: int
    start: int
    end: int
    plain: bool


class Split(NamedTuple):
    """Where the parts of a file with frontmatter are: `text[start:end]` is the YAML, `text[body:]` the body."""

    start: int
    end: int
    body: int


def split(path: str, text: str, *, complete: bool = True) -> Split | None:
    """Find the frontmatter of a text that has no byte order mark.

    Args:
        complete: whether the text is the whole file; in a part, a missing closing fence means that the frontmatter is too long.

    Returns:
        None when there is no frontmatter, also when the first line is a rule and not a fence.

    Raises:
        InvalidMemoryFile: the fence is never closed, or not within 16,384 characters.
    """
    opening = _OPENING.match(text)
    if opening is None:
        return None
    start = opening.end()
    key = _FIRST_KEY.match(text, start, start + MAX_FRONTMATTER_CHARS)
    if key is None and not _CLOSING.match(text, start - 1):
        return None
    closing = _CLOSING.search(text, start - 1, start + MAX_FRONTMATTER_CHARS + 64)
    if key is not None and not (closing and key["word"]) and _has_blank_line(key["lead"]):
        return None  # a rule, a blank line, and prose with a colon in it
    if closing is None and (len(text) > MAX_FRONTMATTER_CHARS or not complete):
        raise _too_long(path)
    if closing is None:
        raise InvalidMemoryFile(
            path, "the frontmatter that opens here is never closed; add a line with --- after its last field", 1
        )
    body = closing.end() + 1 if closing.end() < len(text) else closing.end()
    return Split(start, closing.start() + 1, body)


def _has_blank_line(text: str) -> bool:
    return not all(line.strip() for line in text.splitlines())


def _too_long(path: str) -> InvalidMemoryFile:
    reason = (
        f"the frontmatter is not closed within {MAX_FRONTMATTER_CHARS:,} characters; close it with --- or move text into the body"
    )
    return InvalidMemoryFile(path, reason, 1)


class StrictYAML(YAMLHandler):
    """python-frontmatter's handler for one file: strict, and with line numbers in its errors.

    Args:
        parts: where they are in the text, when that is known.
    """

    def __init__(self, path: str, *, complete: bool = True, parts: Split | None = None) -> None:
        super().__init__()
        self.path, self.complete, self.parts = path, complete, parts
        self.fields: list[Field] = []
        self.is_mapping = False

    def detect(self, text: str) -> bool:
        """Whether the text begins with frontmatter."""
        return split(self.path, text, complete=self.complete) is not None

    def split(self, text: str) -> tuple[str, str]:
        """The YAML and the body; ValueError, which python-frontmatter takes for "no frontmatter", when there is none."""
        parts = self.parts or split(self.path, text, complete=self.complete)
        if parts is None:
            raise ValueError("no frontmatter")
        return text[parts.start : parts.end], text[parts.body :]

    def load(self, fm: str, **_: object) -> dict[str, Any]:
        """Every field as text, lists and dictionaries of text; `is_mapping` tells an empty mapping from none."""
        found = read_fields(self.path, fm)
        self.is_mapping, self.fields = found is not None, found or []
        return {field.key: field.value for field in self.fields}


def read_fields(path: str, yaml_text: str, first_line: int = 2) -> list[Field] | None:
    """Read the fields between the fences.

    Args:
        first_line: the line of the file on which `yaml_text` begins.

    Returns:
        None when the text is not a mapping: prose or a list between two rules.

    Raises:
        InvalidMemoryFile: bad YAML, a duplicate key, an anchor, alias or tag, or nesting deeper than 8.
    """
    if len(yaml_text) > MAX_FRONTMATTER_CHARS:
        raise _too_long(path)
    simple = _simple_fields(yaml_text, first_line)
    if simple is not None:
        return simple
    reader = _Reader(path, yaml_text, first_line)
    try:
        return reader.document()
    except yaml.MarkedYAMLError as error:
        opened = re.search("scanning|flow", error.context or "")  # then the context is the quote or bracket that isn't closed
        mark: Any = error.context_mark if opened and error.context_mark else error.problem_mark
        reason = f"the frontmatter is not valid YAML: {error.problem}; text with special characters goes in quotes: {_EXAMPLE}"
        raise InvalidMemoryFile(path, reason, mark and reader.line(mark.index)) from None
    except yaml.reader.ReaderError as error:
        reason = f"the frontmatter contains the character U+{_code(error.character):04X}, which YAML does not allow; leave it out"
        raise InvalidMemoryFile(path, reason, reader.line(yaml_text.find(chr(_code(error.character))))) from None


def _simple_fields(yaml_text: str, first_line: int) -> list[Field] | None:
    """The fields of a text that needs no parser: a word, a colon and text, or a list of words, on each line.

    Most files are so, and a parser takes long.

    Returns:
        None when any line is another.
    """
    found = _SIMPLE.findall(yaml_text)
    if len(found) != yaml_text.count("\n") + (not yaml_text.endswith("\n")):
        return None
    fields, at = dict[str, Field](), 0
    for line, (key, gap, value) in enumerate(found, first_line):
        key_end, mark = at + len(key), value[0]
        plain = mark not in '"['
        # plain text has no `: ` and no ` #` in it, and neither a space nor a colon at its end
        if key in fields or (plain and (": " in value or " #" in value or value[-1] in ": ")):
            return None
        start = key_end + 1 + len(gap)
        end = start + len(value)
        inner = value if plain else value[1:-1]
        fields[key] = Field(key, inner.split(", ") if mark == "[" else inner, line, at, key_end, start, end, plain)
        at = end + 1
    return list(fields.values())


def _code(character: Any) -> int:
    return character if isinstance(character, int) else ord(character)  # the two parsers differ here


class _Reader:
    """Builds values from parser events; holds what errors need to say where."""

    def __init__(self, path: str, text: str, first_line: int) -> None:
        self.path, self.text, self.first_line = path, text, first_line
        self.events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
        self.start = self.end = 0

    def line(self, index: int) -> int:
        """The line of the file; the parser's own count takes U+2028 and the like for line ends."""
        return self.first_line + self.text.count("\n", 0, index)

    def refuse(self, event: Any, reason: str) -> InvalidMemoryFile:
        return InvalidMemoryFile(self.path, reason, self.line(event.start_mark.index))

    def next(self) -> Any:
        """The next event, without the marks that memory files may not have."""
        event = next(self.events)
        self.start, end = event.start_mark.index, event.end_mark.index
        if self.start < end or isinstance(event, yaml.ScalarEvent):  # the end of a block has no characters: it lies at what follows
            self.end = self.start + len(self.text[self.start : end].rstrip())
        if isinstance(event, yaml.AliasEvent):
            raise self.refuse(event, f"*{event.anchor} is a YAML alias, which memory files may not use; quote it if it is text")
        if getattr(event, "anchor", None):
            raise self.refuse(event, f"&{event.anchor} is a YAML anchor, which memory files may not use; quote it if it is text")
        if getattr(event, "tag", None):
            raise self.refuse(event, "a YAML tag (!…) may not be used in a memory file; quote the value if it is text")
        return event

    def document(self) -> list[Field] | None:
        event: Any = self.next()
        while isinstance(event, (yaml.StreamStartEvent, yaml.DocumentStartEvent)):
            event = self.next()
        if isinstance(event, yaml.StreamEndEvent):
            return []
        if not isinstance(event, yaml.MappingStartEvent):
            return None
        fields = list(self.mapping(1))
        while not isinstance(event := self.next(), yaml.StreamEndEvent):
            if not isinstance(event, yaml.DocumentEndEvent):
                raise self.refuse(event, "a second YAML document begins here; a fence is --- alone on its line")
        return fields

    def mapping(self, depth: int) -> Iterator[Field]:
        seen: dict[str, int] = {}
        while not isinstance(key := self.next(), yaml.MappingEndEvent):
            if not isinstance(key, yaml.ScalarEvent):
                raise self.refuse(key, "a key must be plain text")
            key_start, key_end = self.start, self.end
            line = self.line(key_start)
            if key.value in seen:
                raise self.refuse(key, f"the key {key.value!r} stands on line {seen[key.value]} already; keep one of the two")
            seen[key.value] = line
            first = self.next()
            value = self.value(first, depth)
            plain = isinstance(first, yaml.ScalarEvent) and not first.style
            yield Field(key.value, value, line, key_start, key_end, first.start_mark.index, self.end, plain)

    def value(self, event: Any, depth: int) -> Any:
        if isinstance(event, yaml.ScalarEvent):
            return event.value
        if depth >= MAX_DEPTH:
            raise self.refuse(event, f"the frontmatter is nested deeper than {MAX_DEPTH} levels")
        if isinstance(event, yaml.MappingStartEvent):
            return {field.key: field.value for field in self.mapping(depth + 1)}
        items = []
        while not isinstance(item := self.next(), yaml.SequenceEndEvent):
            items.append(self.value(item, depth + 1))
        return items


def quote(value: str, *, in_list: bool = False) -> str:
    """The value as a one-line YAML scalar that every YAML reader takes for the same text.

    Args:
        in_list: whether it stands between brackets, where a comma would end it.
    """
    if value and not (
        _UNSAFE.search(value.replace("\\", "")) or _NOT_PLAIN.match(value) or (in_list and set(value) & set(",:?[]{}"))
    ):
        resolvers = yaml.SafeLoader.yaml_implicit_resolvers.get(value[0], ())
        if not any(pattern.match(value) for _, pattern in resolvers):
            return value
    return '"' + _UNSAFE.sub(lambda match: _escape(match[0]), value) + '"'


def _escape(char: str) -> str:
    return f"\\{char}" if char in '"\\' else "\\n" if char == "\n" else f"\\u{ord(char):04x}"
