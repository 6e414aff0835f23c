"""Fields and links in the text of a memory file, as Obsidian and its plugin Dataview read them. Floor 1, pure.

A field is `key:: value` on a line of its own, in a list or not, or `[key:: value]` or `(key:: value)` within a line. Code, comments
and quotes hold none. Dates in brackets at the end of a value say when it was so: `(2024-01 → 2025-03)`; see docs/facts.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

from mdmemory.errors import InvalidMemoryFile
from mdmemory.files.days import first_of, last_of
from mdmemory.files.index_lines import Blocks
from mdmemory.files.memory_file import decode, parse

_MARKER = r"(?:[-*+]|\d{1,9}[.)])"
_KEY = r"[*_]{0,3}([^\W_](?:[\w \t/'’&+.-]{0,80}[\w.])?)[*_]{0,3}[ \t]*::(?:[ \t]+|(?=\[))"
_OWN_LINE = re.compile(rf"{_KEY}(.*)")
_START = re.compile(rf"([ \t]*)(?:({_MARKER})[ \t]+(?:\[.\][ \t]+)?)?")
_IN_SQUARE = r"((?:\[\[[^\[\]]*\]\]|\[[^\[\]]*\]\([^()]*\)|[^\[\]])*+)"
_IN_ROUND = r"((?:\([^()]*\)|[^()])*+)"
_WITHIN = re.compile(rf"\[{_KEY}{_IN_SQUARE}\]|\({_KEY}{_IN_ROUND}\)")
_DATE = r"\d{4}(?:-\d{1,2}(?:-\d{1,2})?)?"
_DATES = re.compile(rf"\([ \t]*+({_DATE})?[ \t]*+(→|->|–|—|(?<=[ \t])-(?=[ \t]))?[ \t]*+({_DATE})?[ \t]*+\)$")
_LINK = (
    r"\[\[(?P<page>[^\[\]|\#]+)(?:\#[^\[\]|]*)?(?:\|(?P<alias>[^\[\]]*))?\]\]"
    r"|\[(?P<text>[^\[\]]+)\]\((?:<(?P<angle>[^<>]+)>|(?P<bare>(?![A-Za-z][A-Za-z0-9+.-]*:)[^()\s<>]+))\)"
)
_ONE_LINK = re.compile(_LINK)
_LINKS = re.compile(re.sub(r"\?P<\w+>", "?:", rf"(?:{_LINK})(?:[ \t]*,[ \t]*(?:{_LINK}))*"))
_QUOTE = re.compile(rf"[ \t]*(?:{_MARKER}[ \t]+)?>")


@dataclass(frozen=True, slots=True)
class Link:
    """A link to another file.

    Args:
        target: the path or name as written, without its heading.
        text: what people read.
        line: 1-based, in the file.
    """

    target: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Field:
    """A field as it stands in the text.

    Args:
        line: 1-based, in the file.
        value: without its dates.
        end_of_value, end: where in the line its value ends, and where its dates do.
        marker: of the list's item that it is, if it is one that is not indented.
    """

    line: int
    key: str
    value: str
    valid_from: str | None
    valid_until: str | None
    end_of_value: int
    end: int
    marker: str | None = None


def fields_of(path: str, data: bytes) -> Iterator[Field]:
    """Every field of a memory file's text; of a file that can't be read, none."""
    for number, text, visible in _lines(path, data):
        if "::" in visible and not _QUOTE.match(visible):
            yield from _fields(text, visible, number)


def links_of(path: str, data: bytes) -> Iterator[Link]:
    """Every link to another file in a memory file's text; of a file that can't be read, none."""
    for number, _, visible in _lines(path, data):
        if "](" in visible or "[[" in visible:
            yield from links_in(visible, number)


def value_links(value: str) -> list[Link]:
    """The parts of a value that is nothing but links with commas between; else none."""
    return list(links_in(value)) if _LINKS.fullmatch(value) else []


def links_in(text: str, line: int = 0) -> Iterator[Link]:
    """The links of one line."""
    for found in _ONE_LINK.finditer(text):
        if found["page"] is not None:
            target = found["page"].strip(" \t\\")
            yield Link(target, " ".join((found["alias"] or "").split()) or shown(target), line)
        elif target := unquote(re.split(r"[#?]", found["angle"] or found["bare"], maxsplit=1)[0]):
            yield Link(target, " ".join(found["text"].split()), line)


def shown(target: str) -> str:
    """What people read of a link that has no text of its own: the last part of its path."""
    return target.rpartition("/")[2].removesuffix(".md") or target


def _fields(text: str, visible: str, number: int) -> Iterator[Field]:
    """The fields of one line; those within it, or else the one that it is."""
    within = list(_WITHIN.finditer(visible))
    for found in within:
        yield from _field(found, 1 if found[1] else 3, text, number)
    start = _START.match(visible)
    own = _OWN_LINE.match(visible, start.end()) if start and not within else None
    if start and own and (start[2] or len(start[1].expandtabs(4)) < 4):  # else it is code
        yield from _field(own, 1, text, number, start[2] if not start[1] else None)


def _field(found: re.Match[str], group: int, text: str, number: int, marker: str | None = None) -> Iterator[Field]:
    start, end = found.span(group + 1)
    key, whole = text[slice(*found.span(group))], text[start:end].rstrip()
    begin, until, length = _dates(whole)
    if whole[:length] and key == found[group]:  # else it has code in it
        key = " ".join(key.split())
        yield Field(number, key, whole[:length], begin, until, start + length, start + len(whole), marker)


def _dates(text: str) -> tuple[str | None, str | None, int]:
    """The dates at the end of a value, and where the value without them ends."""
    found = _DATES.search(text)
    if found is None or not (found[1] or found[3]) or (found[1] and found[3] and not found[2]):
        return None, None, len(text)
    begin, arrow, until = found.groups()
    if arrow is None:
        begin = until = begin or until
    first, last = first_of(begin), last_of(until)
    is_wrong = (begin and not first) or (until and not last) or (first and last and first > last)
    return (None, None, len(text)) if is_wrong else (begin, until, len(text[: found.start()].rstrip()))


def _lines(path: str, data: bytes) -> Iterator[tuple[int, str, str]]:
    """Number, text and visible text of every line behind the frontmatter."""
    try:
        whole, body = decode(path, data), parse(path, data).body
    except InvalidMemoryFile:
        return
    before = whole.count("\n") - body.count("\n")
    blocks, in_comment = Blocks(), False
    for number, raw in enumerate(body.split("\n"), before + 1):
        text = raw.removesuffix("\r")
        visible, in_comment = _without_comments(blocks.visible(text), in_comment)
        yield number, text, visible


def _without_comments(visible: str, is_inside: bool) -> tuple[str, bool]:
    """The line with Obsidian's `%% comments %%` blotted out, and whether the next one begins in one."""
    if "%%" not in visible:
        return ("" if is_inside else visible), is_inside
    parts = visible.split("%%")
    kept = [part if (number % 2 == 1) == is_inside else "x" * len(part) for number, part in enumerate(parts)]
    return "xx".join(kept), is_inside != (len(parts) % 2 == 0)
