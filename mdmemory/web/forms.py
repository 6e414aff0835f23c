"""A memory file as a form, and back to bytes in which only what was edited is different. Floor 6, pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any, Final, Literal

from mdmemory.files.changes import uses_crlf
from mdmemory.files.memory_file import BOM, MemoryFile, decode, encode, parse, set_field

Kind = Literal["line", "text", "list", "type", "switch", "fixed"]
_KNOWN: Final[Mapping[str, Kind]] = {
    "name": "line",
    "description": "text",
    "type": "type",
    "tags": "list",
    "pinned": "switch",
    "valid_from": "line",
    "valid_until": "line",
    "supersedes": "line",
}
_LABELS: Final = {"valid_from": "Valid from", "valid_until": "Valid until"}
_LINE: Final = re.compile(r"([^\r\n]*)(\r\n|\r|\n|\Z)")


@dataclass(frozen=True, slots=True)
class Input:
    """One field of the frontmatter in a form.

    Args:
        value: as the form shows it; of a list, its parts with commas between.
        kind: how it is edited; `fixed` is shown only, as it is nested.
        instead: what counts while it is empty.
    """

    key: str
    label: str
    value: str
    kind: Kind
    instead: str = ""


def inputs(file: MemoryFile) -> list[Input]:
    """The fields of a file: those that mean something here, then its others."""
    fields = file.header.fields or {}
    header = file.header
    derived = {"name": header.name, "description": header.description}
    known = [
        Input(key, _LABELS.get(key, key.capitalize()), *_shown(key, fields.get(key), kind), derived.get(key, ""))
        for key, kind in _KNOWN.items()
    ]
    return known + [Input(key, key, *_shown(key, value, "line")) for key, value in fields.items() if key not in _KNOWN]


def _shown(key: str, value: Any, kind: Kind) -> tuple[str, Kind]:
    if value is None:
        return "", kind
    if isinstance(value, str):
        text = flat(value)
        return text, "text" if kind == "line" and "\n" in text else kind
    if isinstance(value, list) and all(isinstance(item, str) and not set(item) & {",", "\n"} for item in value):
        return ", ".join(value), "list"
    return str(value), "fixed"


def body_of(file: MemoryFile) -> str:
    """The body without the empty lines above it, which a form has no need to show."""
    return file.body.lstrip("\r\n")


def filled(given: Sequence[Input], values: Mapping[str, str]) -> list[Input]:
    """The inputs as they were sent; as they are, when none was."""
    if not any(name.startswith("field.") for name in values):
        return list(given)
    return [each if each.kind == "fixed" else replace(each, value=values.get(f"field.{each.key}", "")) for each in given]


def edited(path: str, data: bytes, values: Mapping[str, str]) -> bytes:
    """The file with what was changed in the form.

    Args:
        data: the file that the form was made of.
        values: the form's inputs, as `field.KEY`, and `body`.

    Raises:
        InvalidMemoryFile: it can't be set, or the file can't be read.
    """
    file, text = parse(path, data), decode(path, data)
    changed = dict(_changes(file, values))
    head, shown = text[: len(text) - len(file.body)], body_of(file)
    above = file.body[: len(file.body) - len(shown)]
    body = retext(shown, values["body"]) if "body" in values else shown
    newline = "\r\n" if uses_crlf(text) else "\n"
    if changed and not head.removeprefix(BOM):
        head += f"---{newline}---{newline}{newline}"
    elif body and head.removeprefix(BOM) and not head.endswith("\n"):
        head += newline
    data = encode(path, head + above + body)
    for key, value in changed.items():
        data = set_field(path, data, key, value)
    return data


def _changes(file: MemoryFile, values: Mapping[str, str]) -> Iterator[tuple[str, str | Sequence[str] | None]]:
    """The fields that were changed, and what each becomes; None where it goes."""
    for given in inputs(file):
        name = f"field.{given.key}"
        value = values.get(name, "").strip()
        if given.kind == "switch":
            was = given.value.casefold() in ("true", "yes", "on", "1")
            if was != (name in values):
                yield given.key, None if was else "true"
        elif given.kind != "fixed" and name in values and value != given.value.strip():
            parts = [part.strip() for part in value.split(",") if part.strip()]
            yield given.key, (parts if given.kind == "list" else value) or None


def retext(before: str, after: str) -> str:
    """The edited text, with the line ends that the lines had which stayed: in forms, every line ends in LF.

    Args:
        before: what the form was made of, with its own line ends.
        after: what came back.
    """
    if flat(before) == after:
        return before
    old, new = list(_lines(before)), list(_lines(after))
    usual = "\r\n" if uses_crlf(before) else "\n"
    was = [(content, bool(end)) for content, end in old]
    given = [(content, bool(end)) for content, end in new]
    head = _shared(was, given)
    tail = _shared(was[head:][::-1], given[head:][::-1])
    matcher = SequenceMatcher(None, was[head : len(was) - tail], given[head : len(given) - tail])
    made = ["".join(line) for line in old[:head]]
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            made += ["".join(line) for line in old[head + i1 : head + i2]]
        elif i2 - i1 == j2 - j1:
            pairs = zip(old[head + i1 : head + i2], new[head + j1 : head + j2], strict=True)
            made += [content + ((own or usual) if end else "") for (_, own), (content, end) in pairs]
        else:
            made += [content + (usual if end else "") for content, end in new[head + j1 : head + j2]]
    text = "".join([*made, *("".join(line) for line in old[len(old) - tail :])])
    return text if flat(text) == after else after.replace("\n", usual)  # a lone CR before an empty line would swallow it


def flat(text: str) -> str:
    """The text as a form shows it."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Content and end of each line; the last one may have no end."""
    for found in _LINE.finditer(text):
        if found[0]:
            yield found[1], found[2]


def _shared(some: Sequence[object], others: Sequence[object]) -> int:
    """How many both begin with."""
    return next(
        (place for place, (one, other) in enumerate(zip(some, others, strict=False)) if one != other), min(len(some), len(others))
    )
