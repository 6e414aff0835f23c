"""One memory file: bytes in, header and body out, and bytes again with nothing lost. Floor 1.

A memory file is UTF-8 Markdown with frontmatter between `---` fences. Reading never changes it; `set_field` touches the bytes
of that field alone, so a byte order mark, CRLF, comments, key order, unknown keys and a missing final newline stay as people
left them.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

import frontmatter

from mdmemory.errors import InvalidMemoryFile
from mdmemory.files.strict_yaml import Field, StrictYAML, quote, read_fields, split

DEFAULT_TYPES: Mapping[str, str] = {
    "user": "who the user is: role, goals, knowledge, preferences",
    "feedback": "how the user wants you to work: corrections, and what they confirmed",
    "project": "ongoing work, decisions, deadlines and their reasons, which code and history don't show",
    "reference": "where to find things: systems, dashboards, documents, people",
}
MAX_NAME_CHARS = 200
MAX_DESCRIPTION_CHARS = 1_000
BOM = "\ufeff"
_TRUE = frozenset(("true", "yes", "on", "1"))
_HEADING = re.compile(r"#{1,6}[ \t]+(.*)")


@dataclass(frozen=True, slots=True)
class Header:
    """What is known of a memory file without its body.

    Args:
        type: one of the configured types, None for a plain file.
        source: the journal entries it was drawn from, each as `session#entry`.
        fields: every key of the frontmatter as written; scalars are text.
    """

    name: str
    description: str
    type: str | None = None
    pinned: bool = False
    tags: tuple[str, ...] = ()
    valid_from: str | None = None
    valid_until: str | None = None
    supersedes: str | None = None
    source: tuple[str, ...] = ()
    fields: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class MemoryFile:
    """A memory file as read.

    Args:
        path: inside the folder.
        body: what follows the frontmatter, with its own line ends.
        warnings: what is valid but most likely not meant, such as a `#` that YAML takes for a comment.
        before: lines before the body.
    """

    path: str
    header: Header
    body: str
    warnings: tuple[str, ...] = ()
    before: int = 0


def parse(path: str, data: bytes, *, complete: bool = True) -> MemoryFile:
    """Read a memory file, or its head.

    Args:
        data: the file's bytes, or the first of them.
        complete: whether `data` is the whole file.

    Raises:
        InvalidMemoryFile: not UTF-8, or frontmatter that can't be read; with the line.
    """
    text = decode(path, data, complete=complete).removeprefix(BOM)
    parts = split(path, text, complete=complete)
    if parts is None:
        return MemoryFile(path, _header(path, {}, text), text)
    is_as_found = "\r" not in text  # python-frontmatter takes out each "\r\n", and then the parts lie elsewhere
    handler = StrictYAML(path, complete=complete, parts=parts if is_as_found else None)
    fields, _ = frontmatter.parse(text[: parts.body] if is_as_found else text, handler=handler)
    if not handler.is_mapping:  # prose or a list between two rules
        return MemoryFile(path, _header(path, {}, text), text)
    body = text[parts.body :]
    head = text[parts.start : parts.end].replace("\r\n", "\n")  # as python-frontmatter gives it to its handler
    warnings = tuple(_comment_warnings(head, handler.fields)) if "#" in head else ()
    return MemoryFile(path, _header(path, fields, body, handler.fields), body, warnings, text.count("\n", 0, parts.body))


def decode(path: str, data: bytes, *, complete: bool = True) -> str:
    """The bytes as text.

    Raises:
        InvalidMemoryFile: not UTF-8; says what it looks like.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise InvalidMemoryFile(path, "the file is not UTF-8 (it looks like UTF-16); save it as UTF-8. It is left as it is")
    try:
        text, _ = codecs.utf_8_decode(data, "strict", complete)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidMemoryFile(
            path, "the file is not UTF-8 (perhaps Latin-1); save it as UTF-8. It is left as it is", line
        ) from None
    if "\0" in text:
        raise InvalidMemoryFile(path, "the file contains NUL bytes, so it is not text. It is left as it is")
    return text


def encode(path: str, text: str) -> bytes:
    """The text as UTF-8.

    Raises:
        InvalidMemoryFile: a lone surrogate or a NUL, which no UTF-8 text file can hold.
    """
    if "\0" in text:
        raise InvalidMemoryFile(path, "the text contains a NUL character; leave it out")
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise InvalidMemoryFile(
            path, "the text contains half of a character (a lone surrogate); write the whole character", line
        ) from None


def _header(path: str, fields: Mapping[str, Any], body: str, places: Sequence[Field] = ()) -> Header:
    nested = fields.get("metadata")
    said = {**nested, **fields} if isinstance(nested, dict) else fields

    def text(key: str) -> str | None:
        value = said.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            lines = {field.key: field.line for field in places}
            raise InvalidMemoryFile(path, f"the field {key!r} must be text", lines.get(key, lines.get("metadata")))
        return value.strip() if value else None

    tags = said.get("tags") or ()
    if isinstance(tags, str):
        tags = [tag.strip() for tag in tags.split(",")]
    sources = said.get("source") or ()
    sources = [sources] if isinstance(sources, str) else sources
    return Header(
        name=text("name") or _first_heading(body) or PurePosixPath(path).stem,
        description=text("description") or ("" if fields else _first_line(body)),
        type=text("type"),
        pinned=(text("pinned") or "").casefold() in _TRUE,
        tags=tuple(str(tag).removeprefix("#") for tag in tags if tag),
        valid_from=text("valid_from"),
        valid_until=text("valid_until"),
        supersedes=text("supersedes"),
        source=tuple(entry.strip() for entry in sources if isinstance(entry, str) and entry.strip()),
        fields=fields,
    )


def _first_heading(body: str) -> str | None:
    headings = (_heading(match[1]) for line in body[:4096].splitlines() if (match := _HEADING.match(line)))
    return next((heading for heading in headings if heading), None)


def _heading(text: str) -> str:
    """The text of a heading without the marks that may close it: `C#` in `# C# #`."""
    text = text.strip()
    bare = text.rstrip("#")
    return bare.rstrip() if not bare or bare[-1].isspace() else text


def _first_line(body: str) -> str:
    lines = (line.strip() for line in body[:4096].splitlines())
    return next((line[:MAX_DESCRIPTION_CHARS] for line in lines if line and not line.startswith(("#", "---", "```", "<!--"))), "")


def _comment_warnings(yaml_text: str, fields: Sequence[Field]) -> list[str]:
    warnings = []
    for field in fields:
        rest = yaml_text[field.end :].split("\n", 1)[0].strip()
        if field.plain and field.key in ("name", "description") and rest.startswith("#"):
            warnings.append(
                f"line {field.line}: YAML takes {rest[:40]!r} for a comment, so the {field.key} ends before it; "
                "put the value in double quotes if it belongs to it"
            )
    return warnings


def check_typed(file: MemoryFile, types: Mapping[str, str]) -> None:
    """Refuse a file that is not a full memory file: what agents create must be one.

    Raises:
        InvalidMemoryFile: the message shows how the frontmatter must look.
    """
    fields = file.header.fields or {}
    if not fields:
        start = file.body.lstrip()
        before = "a code fence" if start.startswith("```") else "blank lines" if start.startswith("---") else ""
        what = f"it must begin with frontmatter{f', without {before} before it' if before else ''}. {shape(types)}"
        raise InvalidMemoryFile(file.path, what, 1)
    for key, limit in (("name", MAX_NAME_CHARS), ("description", MAX_DESCRIPTION_CHARS)):
        value = fields.get(key)
        if not isinstance(value, str) or not value.strip():
            raise InvalidMemoryFile(file.path, f"the frontmatter needs a {key}. {shape(types)}", 1)
        if len(value) > limit:
            raise InvalidMemoryFile(
                file.path, f"the {key} has {len(value):,} characters; at most {limit:,}. Put the rest into the body", 1
            )
    if file.header.type not in types:
        said = "has no type" if file.header.type is None else f"has type {file.header.type!r}"
        raise InvalidMemoryFile(file.path, f"the frontmatter {said}; it must be one of {', '.join(types)}. {shape(types)}", 1)


def shape(types: Mapping[str, str]) -> str:
    """How a memory file looks, for error messages."""
    fields = f"name: Short title\ndescription: one line that says when this is useful\ntype: {' | '.join(types)}"
    return f"A memory file looks like this:\n---\n{fields}\n---\n\nThe memory itself."


def new_file(name: str, description: str, type: str, body: str, **fields: str | Sequence[str]) -> bytes:
    """The bytes of a new memory file.

    Args:
        fields: further frontmatter, such as `tags=["a", "b"]` or `source="session#entry"`.
    """
    head = {"name": name, "description": description, "type": type, **fields}
    lines = "".join(f"{quote(key)}: {_rendered(value)}\n" for key, value in head.items())
    return encode("the new file", f"---\n{lines}---\n\n{body.strip(chr(10))}\n")


def set_field(path: str, data: bytes, key: str, value: str | Sequence[str] | None) -> bytes:
    """Set or remove one top-level field; every other byte stays.

    Args:
        value: text or a list of texts; None removes the field.

    Raises:
        InvalidMemoryFile: the file has no frontmatter, a broken one, or one that would be, or would change elsewhere too.
    """
    text = decode(path, data)
    mark = BOM if text.startswith(BOM) else ""
    text = text.removeprefix(BOM)
    parts = split(path, text)
    fields = None if parts is None else read_fields(path, text[parts.start : parts.end])
    if parts is None or fields is None:
        raise InvalidMemoryFile(path, "it has no frontmatter, so no field can be set", 1)
    head = text[parts.start : parts.end]
    newline = "\r\n" if text[: parts.start].endswith("\r\n") else "\n"
    field = next((field for field in fields if field.key == key), None)
    wanted: dict[str, Any] = {field.key: field.value for field in fields}
    if value is None:
        wanted.pop(key, None)
        head = head if field is None else _without(head, field)
    else:
        wanted[key] = value if isinstance(value, str) else list(value)
        head = head + f"{quote(key)}: {_rendered(value)}{newline}" if field is None else _with_value(head, field, value)
    changed = encode(path, mark + text[: parts.start] + head + text[parts.end :])
    file = parse(path, changed)
    if file.header.fields != wanted or file.body != text[parts.body :]:  # odd line ends, `? key`, and what else YAML allows
        raise InvalidMemoryFile(path, f"{key!r} can't be set without changing more than that; edit the file itself", 1)
    return changed


def _without(head: str, field: Field) -> str:
    start, end = head.rfind("\n", 0, field.key_start) + 1, head.find("\n", field.end) + 1
    return head[:start] + (head[end:] if end else "")


def _with_value(head: str, field: Field, value: str | Sequence[str]) -> str:
    colon = head.index(":", field.key_end) + 1
    gap = head[colon : field.start]
    if "\n" in gap:  # a block on lines of its own: the value moves up to the key, a comment between them stays
        return f"{head[:colon]} {_rendered(value)}{gap.rstrip()}{head[field.end :]}"
    return head[:colon] + (gap or " ") + _rendered(value) + head[field.end :]


def _rendered(value: str | Sequence[str]) -> str:
    if isinstance(value, str):
        return quote(value)
    return "[" + ", ".join(quote(item, in_list=True) for item in value) + "]"
