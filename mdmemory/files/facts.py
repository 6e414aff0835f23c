"""Facts: what a memory file says of its subject, `- works at:: [[Acme]] (2024-01 → 2025-03)`. Floor 1, pure.

The subject is the file, the predicate a field's key, the object its value. To add or to end a fact touches one line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from mdmemory.errors import InvalidArguments, InvalidMemoryFile
from mdmemory.files.changes import uses_crlf
from mdmemory.files.fields import Field, fields_of, shown, value_links
from mdmemory.files.memory_file import BOM, decode, encode, parse

_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]")


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement.

    Args:
        subject: the name of the file.
        object: what people read: the text of a link, or the value as written.
        link: the path or name that the link leads to, as written; None for text.
        valid_from, valid_until: a year, month or day, each with its whole span; None for an open end.
        line: 1-based, in the file.
    """

    subject: str
    predicate: str
    object: str
    link: str | None = None
    valid_from: str | None = None
    valid_until: str | None = None
    path: str = ""
    line: int = 0


def facts_of(path: str, data: bytes) -> list[Fact]:
    """Every fact of a memory file; of a file that can't be read, none."""
    try:
        subject = parse(path, data).header.name
    except InvalidMemoryFile:
        return []
    return [fact for field in fields_of(path, data) for fact in _facts(field, subject, path)]


def read_value(text: str) -> tuple[str, str | None]:
    """Object and link of a value: `[[companies/acme|Acme]]` is `("Acme", "companies/acme")`."""
    links = value_links(text.strip())
    return (links[0].text, links[0].target) if len(links) == 1 else (text.strip(), None)


def write_fact(fact: Fact) -> str:
    """The line of a fact.

    Raises:
        InvalidArguments: it can't be written so that it is read as the same.
    """
    value = fact.object
    if fact.link is not None:
        value = f"[[{fact.link}]]" if shown(fact.link) == fact.object else f"[[{fact.link}|{fact.object}]]"
    line = f"- {fact.predicate}:: {value}{_written(fact.valid_from, fact.valid_until)}"
    if facts_of("", line.encode("utf-8", "replace")) != [replace(fact, subject="", path="", line=1)]:
        raise InvalidArguments(
            f"{line[:200]!r} does not say this as one line: a predicate has letters, digits, spaces and -/'&+., "
            "a value is one link or one line of text, a date is a year, month or day, and the first is not after the last"
        )
    return line


def add_fact(data: bytes, fact: Fact) -> bytes:
    """The file with one more fact, behind those that its text has as a list, else at its end; every other byte stays.

    A file that says so already stays as it is.

    Args:
        fact: of the file `fact.path`; its subject and line don't count.

    Raises:
        InvalidMemoryFile: the file can't be read.
        InvalidArguments: the fact can't be written, or would not be read where it would stand.
    """
    text, line = decode(fact.path, data), write_fact(fact)
    parse(fact.path, data)
    before = _said(data, fact)
    if _told(fact) in before:
        return data
    newline = "\r\n" if uses_crlf(text) else "\n"
    lines = _lines(text)
    listed = [field for field in fields_of(fact.path, data) if field.marker]
    if listed:
        at = listed[-1].line
        while at < len(lines) and lines[at][:1] in (" ", "\t") and lines[at].strip():
            at += 1  # what is indented below it belongs to it
        marker = listed[-1].marker or ""
        line = line if marker not in ("*", "+") else f"{marker}{line[1:]}"
    else:
        at = len(lines)
        last = lines[-1] if lines else ""
        line = f"{newline}{line}" if last.strip() and not _ITEM.match(last) else line
    above, below = "".join(lines[:at]), "".join(lines[at:])
    added = f"{line}{newline}" if not above or above.endswith("\n") else f"{newline}{line}"
    changed = encode(fact.path, f"{above}{added}{below}")
    if _said(changed, fact) != sorted([*before, _told(fact)]):
        raise InvalidArguments(f"{fact.path}: the fact would stand in code, a comment or a quote; edit the file itself")
    return changed


def end_fact(data: bytes, fact: Fact, until: str) -> bytes:
    """The file in which an open fact ends; every byte outside of its dates stays.

    Args:
        fact: as it was read from the file; without a line, the only open one that says this.
        until: the last year, month or day of it.

    Raises:
        InvalidMemoryFile: the file can't be read.
        InvalidArguments: there is no such open fact, or it shares its line with another.
    """
    text = decode(fact.path, data)
    what = f"{fact.predicate}:: {fact.object}"
    found = [field for field in fields_of(fact.path, data) if _is_open(field, fact)]
    if len(found) != 1:
        several = f"{len(found)} open facts say" if found else "no open fact says"
        raise InvalidArguments(f"{fact.path}: {several} {what!r:.100}")
    field = found[0]
    if len(value_links(field.value)) > 1:
        raise InvalidArguments(f"{fact.path}, line {field.line} says several things with one date; give each its own line")
    lines = _lines(text)
    line = lines[field.line - 1]
    mark = len(BOM) if field.line == 1 and line.startswith(BOM) else 0
    lines[field.line - 1] = line[: mark + field.end_of_value] + _written(field.valid_from, until) + line[mark + field.end :]
    changed = encode(fact.path, "".join(lines))
    (open_fact,) = _facts(field, parse(fact.path, data).header.name, fact.path)
    ended = [replace(each, valid_until=until) if each == open_fact else each for each in facts_of(fact.path, data)]
    if facts_of(fact.path, changed) != ended:
        raise InvalidArguments(
            f"{fact.path}: {what!r:.100} can't end with {until!r:.40}; give a year, month or day after its first"
        )
    return changed


def fold(predicate: str) -> str:
    """A predicate as it is compared: `Works-at` is `works at`."""
    return " ".join(re.split(r"[\s_-]+", predicate.casefold().strip()))


def _facts(field: Field, subject: str, path: str) -> list[Fact]:
    said: list[tuple[str, str | None]] = [(link.text, link.target) for link in value_links(field.value)] or [(field.value, None)]
    dates = field.valid_from, field.valid_until
    return [Fact(subject, field.key, text, target, *dates, path, field.line) for text, target in said]


def _written(begin: str | None, until: str | None) -> str:
    if begin == until:
        return f" ({begin})" if begin else ""
    return f" ({' '.join(part for part in (begin, '→', until) if part)})"


def _is_open(field: Field, fact: Fact) -> bool:
    if field.valid_until is not None or fact.line not in (0, field.line) or fold(field.key) != fold(fact.predicate):
        return False
    return any((said.object, said.link) == (fact.object, fact.link) for said in _facts(field, "", ""))


def _lines(text: str) -> list[str]:
    r"""The lines with their ends; only `\n` ends one."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _said(data: bytes, fact: Fact) -> list[tuple[str, ...]]:
    return sorted(map(_told, facts_of(fact.path, data)))


def _told(fact: Fact) -> tuple[str, ...]:
    """What a fact says, without where."""
    return fact.predicate, fact.object, str(fact.link), str(fact.valid_from), str(fact.valid_until)
