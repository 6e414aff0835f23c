"""What is wrong with a file by itself. Floor 4, no input or output."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date

from mdmemory.backends.protocol import MAX_FILE_BYTES, File, FileProblem
from mdmemory.care.doctor.findings import Finding
from mdmemory.errors import ConfigError, InvalidMemoryFile
from mdmemory.files.days import first_of, last_of
from mdmemory.files.memory_file import MAX_DESCRIPTION_CHARS, Header, decode
from mdmemory.files.safety import instructions_in
from mdmemory.files.secrets import find_secrets
from mdmemory.folder.known import MAX_RECALL_BYTES, Known

STALE_DAYS = 180
MAX_SCANNED_CHARS = 256_000
_LINE = re.compile(r"line (\d+): ")


def check_file(path: str, known: Known, file: File | FileProblem, types: Mapping[str, str], today: date) -> Iterator[Finding]:
    """The findings of one memory file.

    Args:
        types: those that there are.
    """
    if known.size > MAX_FILE_BYTES:
        yield Finding("too-large", path, None, f"the file has {known.size / 2**20:.1f} MiB; at most 5 MiB are read")
        return
    if isinstance(file, FileProblem):
        yield Finding("unreadable", path, None, file.reason)
        return
    try:
        text = decode(path, file.data)
    except InvalidMemoryFile as error:
        yield Finding("encoding", path, error.line, error.reason)
        return
    if known.problem is not None:
        yield Finding("broken", path, known.problem.line, known.problem.reason)
    if known.size > MAX_RECALL_BYTES:
        yield Finding("long-file", path, None, f"the file has {known.size / 1024:,.0f} KB")
    if known.header is not None:
        yield from _header(path, known, known.header, types, today)
    for place in instructions_in(text[:MAX_SCANNED_CHARS]):
        yield Finding("instructions", path, place.line, f"reads like an instruction to a model: {place.text}")
    yield from secrets_in(path, text)


def _header(path: str, known: Known, header: Header, types: Mapping[str, str], today: date) -> Iterator[Finding]:
    for warning in known.warnings:
        line = _LINE.match(warning)
        yield Finding("yaml-comment", path, int(line[1]) if line else None, warning[line.end() if line else 0 :], is_fixable=True)
    if header.type is not None and header.type not in types:
        is_near = header.type.casefold() in types and "type" in (header.fields or {})
        yield Finding("unknown-type", path, None, f"the type {header.type!r} is none of {', '.join(types)}", is_near)
    if header.type is not None and not header.description:
        yield Finding("no-description", path, None, "it has a type and no description")
    if len(header.description) > MAX_DESCRIPTION_CHARS:
        yield Finding("long-description", path, None, f"the description has {len(header.description):,} characters")
    begins, ends = first_of(header.valid_from), last_of(header.valid_until)
    for key, text, day in (("valid_from", header.valid_from, begins), ("valid_until", header.valid_until, ends)):
        if text and day is None:
            yield Finding("bad-date", path, None, f"{key} is {text!r}, which is no date")
    if begins and ends and begins > ends:
        yield Finding("bad-date", path, None, f"it is valid from {header.valid_from} until {header.valid_until}: never")
    elif ends and ends < today:
        yield Finding("expired", path, None, f"it was valid until {header.valid_until}")
    elif header.type == "project" and (age := (today - known.day).days) > STALE_DAYS:
        yield Finding("stale", path, None, f"it is of {known.day:%Y-%m-%d}, {age} days ago")


def secrets_in(path: str, text: str, where: str = "") -> Iterator[Finding]:
    """The passwords and keys in a text, named by kind and line and never shown; nothing without the scanner.

    Args:
        where: in what, after the kind.
    """
    text = text[:MAX_SCANNED_CHARS]
    try:
        for secret in find_secrets(text):
            line = text.count("\n", 0, secret.start) + 1
            yield Finding("secret", path, line, f"looks like a secret: {secret.kind}{where}")
    except ConfigError:
        return
