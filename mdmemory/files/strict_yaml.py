"""The YAML of frontmatter, read strictly: scalars are text; duplicate keys, anchors, aliases and tags are refused. Floor 1.

YAML's own reading turns `no` into False, `010` into 8 and `12:30:00` into 45000, keeps the last of two equal keys without a
word, and lets nine aliases stand for a billion nodes. Here only the events of the parser are used, so none of that is ever
built.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml
from frontmatter.default_handlers import YAMLHandler

from mdmemory.errors import InvalidMemoryFile

MAX_FRONTMATTER_CHARS = 16_384
MAX_DEPTH = 8
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OPENING = re.compile(r"---[ \t]*\r?\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?$", re.MULTILINE)
_KEY_LINE = re.compile(r"""(?:[ \t]*(?:\#[^\n]*)?\r?\n)*["']?[^\s"'#:\-\[{>|*&!%][^\n:]*:(?:[ \t\r\n]|$)""")


@dataclass(frozen=True, slots=True)
class Field:
    """A top-level key with its value, and where both stand.

    Args:
        value: text, or lists and dictionaries of text.
        line: 1-based line of the key in the file.
        start, end: the value's characters, counted from the start of the frontmatter's text.
        key_start: the key's first character, counted likewise.
        plain: whether the value is an unquoted scalar.
    """

    key: str
    value: Any
    line: int
    key_start: int
    start: int
    end: int
    plain: bool


@dataclass(frozen=True, slots=True)
class Split:
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
        InvalidMemoryFile: the fence is never closed, or only after 16,384 characters.
    """
    opening = _OPENING.match(text)
    if opening is None or not (_KEY_LINE.match(text, opening.end()) or _CLOSING.match(text, opening.end())):
        return None
    closing = _CLOSING.search(text, opening.end(), opening.end() + MAX_FRONTMATTER_CHARS + 4)
    if closing is None:
        if not complete or len(text) > MAX_FRONTMATTER_CHARS:
            raise InvalidMemoryFile(
                path, f"the frontmatter is longer than {MAX_FRONTMATTER_CHARS:,} characters; move text into the body", 1
            )
        raise InvalidMemoryFile(
            path, "the frontmatter that opens here is never closed; add a line with --- after its last field", 1
        )
    body = closing.end() + 1 if closing.end() < len(text) else closing.end()
    return Split(opening.end(), closing.start(), body)


class StrictYAML(YAMLHandler):
    """python-frontmatter's handler for one file: strict, and with line numbers in its errors."""

    def __init__(self, path: str, *, complete: bool = True) -> None:
        super().__init__()
        self.path, self.complete = path, complete
        self.fields: list[Field] = []
        self.is_mapping = False

    def detect(self, text: str) -> bool:
        """Whether the text begins with frontmatter."""
        return split(self.path, text, complete=self.complete) is not None

    def split(self, text: str) -> tuple[str, str]:
        """The YAML and the body; ValueError, which python-frontmatter takes for "no frontmatter", when there is none."""
        parts = split(self.path, text, complete=self.complete)
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
        raise InvalidMemoryFile(
            path, f"the frontmatter is longer than {MAX_FRONTMATTER_CHARS:,} characters; move text into the body", 1
        )
    reader = _Reader(path, first_line)
    try:
        events = yaml.parse(yaml_text, Loader=_LOADER)
        start = next(event for event in events if not isinstance(event, (yaml.StreamStartEvent, yaml.DocumentStartEvent)))
        if isinstance(start, yaml.StreamEndEvent):
            return []
        if not isinstance(start, yaml.MappingStartEvent):
            return None
        reader.refuse_marks(start)
        return list(reader.mapping(events, 1))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = first_line + mark.line if mark else None
        hint = (
            "; quote the value if it contains : # or quotes" if "mapping values" in str(error) or "expected" in str(error) else ""
        )
        raise InvalidMemoryFile(path, f"the frontmatter is not valid YAML: {error.problem}{hint}", line) from None
    except yaml.YAMLError as error:
        raise InvalidMemoryFile(path, f"the frontmatter is not valid YAML: {str(error).splitlines()[0]}") from None


class _Reader:
    """Builds values from parser events; holds what errors need to say where."""

    def __init__(self, path: str, first_line: int) -> None:
        self.path, self.first_line = path, first_line

    def refuse(self, event: Any, reason: str) -> InvalidMemoryFile:
        return InvalidMemoryFile(self.path, reason, self.first_line + event.start_mark.line)

    def refuse_marks(self, event: Any) -> None:
        if isinstance(event, yaml.AliasEvent):
            raise self.refuse(
                event, f"*{event.anchor} is a YAML alias, which memory files may not use; quote the value if it is text"
            )
        if getattr(event, "anchor", None):
            raise self.refuse(
                event, f"&{event.anchor} is a YAML anchor, which memory files may not use; quote the value if it is text"
            )
        if getattr(event, "tag", None):
            raise self.refuse(event, "a YAML tag (!…) may not be used in a memory file; quote the value if it is text")

    def mapping(self, events: Iterator[Any], depth: int) -> Iterator[Field]:
        seen: dict[str, int] = {}
        while not isinstance(key := next(events), yaml.MappingEndEvent):
            self.refuse_marks(key)
            line = self.first_line + key.start_mark.line
            if not isinstance(key, yaml.ScalarEvent):
                raise self.refuse(key, "a key must be plain text")
            if key.value in seen:
                raise self.refuse(key, f"the key {key.value!r} stands on line {seen[key.value]} already; keep one of the two")
            seen[key.value] = line
            first = next(events)
            value, end = self.value(first, events, depth)
            plain = isinstance(first, yaml.ScalarEvent) and not first.style
            yield Field(key.value, value, line, _start(key), _start(first), end, plain)

    def value(self, event: Any, events: Iterator[Any], depth: int) -> tuple[Any, int]:
        self.refuse_marks(event)
        if isinstance(event, yaml.ScalarEvent):
            return event.value, _end(event)
        if depth >= MAX_DEPTH:
            raise self.refuse(event, f"the frontmatter is nested deeper than {MAX_DEPTH} levels")
        if isinstance(event, yaml.MappingStartEvent):
            inner = list(self.mapping(events, depth + 1))
            return {field.key: field.value for field in inner}, inner[-1].end if inner else _end(event)
        items, end = [], _end(event)
        while not isinstance(item := next(events), yaml.SequenceEndEvent):
            value, end = self.value(item, events, depth + 1)
            items.append(value)
        return items, max(end, _end(item) if event.flow_style else end)


def _start(event: Any) -> int:
    return int(event.start_mark.index)


def _end(event: Any) -> int:
    return int(event.end_mark.index)


def quote(value: str) -> str:
    """The value as a one-line YAML scalar that every YAML reader takes for the same text."""
    if value and "\n" not in value and " #" not in value and value.isprintable():
        try:
            same = yaml.safe_load(value) == value and yaml.safe_load(f"k: {value}") == {"k": value}
        except yaml.YAMLError:
            same = False
        if same:
            return value
    escaped = "".join(_escape(c) for c in value)
    return f'"{escaped}"'


def _escape(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char == "\n":
        return "\\n"
    if char.isprintable():
        return char
    return f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}" if ord(char) < 65536 else f"\\U{ord(char):08x}"
