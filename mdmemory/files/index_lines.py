"""The lines of the index: how ours are written, and which links to memory files anyone's lines hold. Floor 1.

Links are found as CommonMark 0.31 finds them (code spans, fences and comments hide them, backslashes escape), one line at a time,
and a little more leniently: a target with bare spaces counts, and so do wikilinks as Obsidian writes them.
"""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from urllib.parse import quote, unquote

BOM = "\ufeff"
MAX_NAME = 120
MAX_DESCRIPTION = 240
MAX_NOTE = 300  # characters of a paragraph that still is a note in the index, not a memory
MAX_NOTE_LINES = 8
KEPT_LINES = 4_096  # a save looks at every line of the index, and nearly all are as they were

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_INVISIBLE = re.compile("[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_IN_NAME = re.compile(r"[\\`\[\]<]")  # what would end the link's text early, or hide it in a code span or comment
_IN_TARGET = re.compile(r"[\s\x00-\x1f\x7f-\x9f()%<>\"\[\]#?\\:`|]|&(?=#?\w+;)")
_IN_ANGLE = re.compile(r"[\t-\r\x00-\x1f\x7f<>%#?\\:]")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_FIELD = re.compile(r"[ \t#]|[\w-]+:|$")
_MEMORY_FIELDS = ("name:", "description:", "type:")

_ITEM = r"(?:[-*+]|\d{1,9}[.)])[ \t]+"
_STARTS_ITEM = re.compile(rf"[ \t]*{_ITEM}(?:\[[ xX]\][ \t]+)?[*_]{{0,3}}")
_FENCE = re.compile(rf"[ \t>]*+(?:{_ITEM})?(`{{3,}}(?=[^`]*$)|~{{3,}})")  # the blanks are given back to nothing: no quadratic time
_COMMENT = re.compile(rf"[ \t>]*+(?:{_ITEM})?<!--")
# An escape, a code span, backticks that open none, a comment, whole or not. So written that no line takes quadratic time.
_HIDDEN = re.compile(r"\\[!-/:-@\[-`}~]|(`{1,32}+)(?!`).+?(?<!`)\1(?!`)|`+|<!--(?:.*?(-->)|.*)")
_LINK = re.compile(
    r"""
    \[\[(?P<page>[^\[\]|\#]+)(?:\#[^\[\]|]*)?(?:\|[^\[\]]*)?\]\](?!\()
    | \[(?:[^\[\]]|\[[^\[\]]*\])*+\]\([ \t]*
      (?:<(?P<angle>[^<>]*)>|(?P<bare>(?:[^()<>]|\([^()]*\))*?))
      (?:[ \t]+(?:"[^"]*"|'[^']*'|\([^()]*\)))?[ \t]*\)
    | ^[ ]{0,3}\[[^\[\]]+\]:[ \t]*(?P<definition>[^\s<>]+)
    """,
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Listed:
    """What the index needs to know of a memory file."""

    name: str
    description: str
    pinned: bool = False
    mtime_ns: int = 0


@dataclass(frozen=True, slots=True)
class Pointer:
    """A link to a memory file.

    Args:
        line: 1-based.
        target: path inside the folder.
        text: the whole line, without its ending.
        pure: the line is a list item that starts with this link and has no other.
        start, end: where the target stands in `text`.
        style: how the target is written: bare `](x.md)`, angle `](<x y.md>)`, definition `[x]: x.md`, page `[[x]]`.
    """

    line: int
    target: str
    text: str
    pure: bool
    start: int
    end: int
    style: str


@dataclass(frozen=True, slots=True)
class Line:
    """One line; `inside` when it lies in a fence or comment that an earlier line opened."""

    text: str
    end: str
    inside: bool
    pointers: tuple[Pointer, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A text's lines; `tail` is where a fence or comment opens that never closes, else the number of lines."""

    lines: list[Line]
    tail: int


class Names:
    """The paths that wikilinks may mean."""

    def __init__(self, known: Collection[str]) -> None:
        self._known = known
        self._stems: dict[str, str | None] | None = None

    def find(self, page: str) -> str:
        """The path that `[[page]]` means: the exact one, else the only file of that name in any folder."""
        path = page if page.lower().endswith(".md") else page + ".md"
        if path in self._known or "/" in path:
            return path
        if self._stems is None:
            self._stems = {}
            for known in self._known:
                name = known.rpartition("/")[2]
                self._stems[name] = None if name in self._stems else known
        return self._stems.get(path) or path


class Blocks:
    """Follows fences and comments from line to line; of what is visible, positions stay."""

    def __init__(self) -> None:
        self._fence = ""
        self._comment = False

    @property
    def open(self) -> bool:
        return bool(self._fence) or self._comment

    def visible(self, text: str) -> str:
        """The line, as long as it was, with what hides or isn't a link blotted out; empty when all of it is hidden."""
        if self._fence:
            marks = text.strip(" \t>")
            if len(marks) >= len(self._fence) and set(marks) == {self._fence[0]}:
                self._fence = ""
            return ""
        if self._comment:
            end = text.find("-->") + 3
            if end < 3:
                return ""
            self._comment = False
            text = "x" * end + text[end:]
        elif fence := _FENCE.match(text):
            self._fence = fence[1]
            return ""
        text = _HIDDEN.sub(lambda m: "x" * len(m[0]) if m[1] or m[2] or m[0][0] == "\\" else m[0], text)
        if comment := _COMMENT.match(text):
            self._comment = True
            return text[: comment.end()]
        return text


def render_line(path: str, listed: Listed) -> str:
    """The pointer line of a memory file as we write it: `- [Name](file.md) — description`."""
    return _rendered(path, listed.name, listed.description)


@lru_cache(maxsize=KEPT_LINES)
def _rendered(path: str, name: str, description: str) -> str:
    name = _one_line(name) or path.rpartition("/")[2].removesuffix(".md")
    name = _IN_NAME.sub(r"\\\g<0>", _shorten(name, MAX_NAME))
    description = _shorten(_one_line(description), MAX_DESCRIPTION)
    line = f"- [{name}]({_encode(path)})"
    return f"{line} — {description}" if description else line


def pointers(text: str, known: Collection[str] = ()) -> list[Pointer]:
    """Every link to a memory file, in order.

    Args:
        text: the index.
        known: paths of the folder, for wikilinks that name a file without its folder.
    """
    return [pointer for line in read(text, Names(known)).lines for pointer in line.pointers]


def read(text: str, names: Names) -> Page:
    """Split a text (without BOM) into lines, and find their links."""
    blocks = Blocks()
    lines: list[Line] = []
    opened = 0
    for number, raw in enumerate(_LINE.findall(text.removeprefix(BOM)), 1):
        content = raw.removesuffix("\n").removesuffix("\r") if raw.endswith("\n") else raw
        inside = blocks.open
        visible = blocks.visible(content)
        opened = number - 1 if blocks.open and not inside else opened
        lines.append(Line(content, raw[len(content) :], inside, _links(number, content, visible, names)))
    return Page(lines, opened if blocks.open else len(lines))


def retarget(text: str, pointer: Pointer, path: str, names: Names) -> str:
    """The line with the pointer's target replaced, written the way it was."""
    written = text[pointer.start : pointer.end]
    if pointer.style == "page":
        suffix = ".md" if written.strip().endswith(".md") else ""
        short = path.rpartition("/")[2].removesuffix(".md")
        page = short if "/" not in written and names.find(short) == path else path.removesuffix(".md")
        return text[: pointer.start] + page + suffix + text[pointer.end :]
    anchor = re.search(r"[#?].*", written)
    special = _IN_ANGLE if pointer.style == "angle" and "%" not in written else _IN_TARGET
    prefix = "./" if written.startswith("./") else ""
    return text[: pointer.start] + prefix + _encode(path, special) + (anchor[0] if anchor else "") + text[pointer.end :]


def _links(number: int, text: str, visible: str, names: Names) -> tuple[Pointer, ...]:
    if "[" not in visible:
        return ()
    starts_item = _STARTS_ITEM.match(visible)
    found = []
    for match in _LINK.finditer(visible):
        style = match.lastgroup or ""
        start, end = match.span(style)
        if target := _target(text[start:end], style, names):
            pure = starts_item is not None and match.start() == starts_item.end()
            found.append(Pointer(number, target, text, pure, start, end, style))
    if len(found) > 1:
        found = [replace(pointer, pure=False) for pointer in found]
    return tuple(found)


def _target(written: str, style: str, names: Names) -> str | None:
    if style == "page":
        return _memory_path(names.find(written.strip(" \t\\")))
    return _target_of(written)


@lru_cache(maxsize=KEPT_LINES)
def _target_of(written: str) -> str | None:
    url = _ESCAPED.sub(r"\1", written.strip(" \t"))
    return None if _SCHEME.match(url) else _memory_path(unquote(re.split(r"[#?]", url, maxsplit=1)[0]))


def _memory_path(path: str) -> str | None:
    path = posixpath.normpath(path)
    return path if path.lower().endswith(".md") and _may_be_memory(path) else None


def _may_be_memory(path: str) -> bool:
    hidden = path.startswith(("/", ".")) or "/." in path
    return not hidden and path != "MEMORY.md" and not path.startswith("journal/") and "\0" not in path


def _encode(path: str, special: re.Pattern[str] = _IN_TARGET) -> str:
    return special.sub(lambda m: quote(m[0], safe="", errors="replace"), path)


def _one_line(text: str) -> str:
    return " ".join(_INVISIBLE.sub("", text).split())


def _shorten(text: str, most: int) -> str:
    """At most `most` characters: cut at a word's end where there is one, never between a letter and its marks."""
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    if text[most - 1] != " ":
        head = cut.rpartition(" ")[0]
        cut = head if len(head) >= most // 2 else cut
    while cut and (unicodedata.category(text[len(cut)]) in ("Mn", "Mc", "Me", "Cf", "Sk") or cut[-1] == "\u200d"):
        cut = cut[:-1]
    return cut.rstrip() + "…"


def inline_content(text: str) -> list[int]:
    """Numbers (from 1) of the lines that belong in a memory file: long paragraphs, long runs of notes, frontmatter."""
    lines = read(text, Names(())).lines
    found = _frontmatter([line.text for line in lines])
    block: list[int] = []
    longest = paragraph = 0
    for number, line in enumerate([*lines, Line("", "", False, ())], 1):
        item = _STARTS_ITEM.match(line.text) is not None
        if line.text.strip() and not line.text.startswith("#") and not (item and line.pointers):
            block.append(number)
            paragraph = len(line.text) + (0 if item else paragraph)
            longest = max(longest, paragraph)
            continue
        if len(block) > MAX_NOTE_LINES or longest > MAX_NOTE:
            found.update(block)
        if len(line.text) > MAX_NOTE + MAX_NAME + MAX_DESCRIPTION:
            found.add(number)
        block, longest, paragraph = [], 0, 0
    return sorted(found)


def _frontmatter(lines: list[str]) -> set[int]:
    """Lines of each block between two `---` that holds a memory's name, description or type."""
    rules = [position for position, line in enumerate(lines) if line.rstrip() == "---"]
    found: set[int] = set()
    for start, end in pairwise(rules):
        block = lines[start + 1 : end]
        if all(_FIELD.match(line) for line in block) and any(line.startswith(_MEMORY_FIELDS) for line in block):
            found.update(range(start + 1, end + 2))
    return found
