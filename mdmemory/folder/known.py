"""What is known of one memory file: read from its bytes, and kept as text between processes. Floor 3."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from datetime import UTC, date, datetime
from operator import attrgetter
from pathlib import PurePosixPath
from typing import Any

from mdmemory.backends.protocol import etag_of
from mdmemory.errors import InvalidMemoryFile
from mdmemory.files.index import Listed
from mdmemory.files.journal import JOURNAL
from mdmemory.files.memory_file import Header, parse
from mdmemory.recall.dates import in_words, stated_date
from mdmemory.recall.entries import Document

INDEX = "MEMORY.md"
MAX_RECALL_BYTES = 262_144
_DATES = ("date", "created")
_HEADER = tuple(field.name for field in fields(Header))


def is_markdown(path: str) -> bool:
    """Whether a path ends in `.md`."""
    return path.lower().endswith(".md")


def is_memory_path(path: str) -> bool:
    """Whether a path is that of a memory file: `.md`, and neither the index nor a journal."""
    return is_markdown(path) and path != INDEX and not path.startswith(JOURNAL)


@dataclass(frozen=True, slots=True)
class Known:
    """A memory file as last seen.

    Args:
        etag: None when only the head of a large file was read.
        header: None when the file is broken; `problem` then says why.
        day: the date that it states, else that of its last change; UTC.
        last_good: the header before it broke, if one was ever seen.
        may_state, may_link: whether its text may hold facts, and links to other files.
    """

    size: int
    mtime_ns: int
    etag: str | None
    header: Header | None
    problem: InvalidMemoryFile | None = None
    warnings: tuple[str, ...] = ()
    day: date = date.min
    last_good: Header | None = None
    may_state: bool = True
    may_link: bool = True


Difference = tuple[Known | None, Known | None]
"""What was known of a file before and is known now; None for absent."""


def etag_in(known: Known | None) -> str | None:
    """The etag, where there is a file and it is known."""
    return None if known is None else known.etag


def is_same(before: Known | None, now: Known | None) -> bool:
    """Whether both are known to be the same bytes, or the same absence."""
    if before is None or now is None:
        return before is now
    return before.etag is not None and before.etag == now.etag


def going_on(before: Known | None, now: Known) -> Known:
    """What another process told of a file; of one that it never saw whole, with the header that was known here."""
    if before is None or now.header is not None or now.last_good is not None:
        return now
    return replace(now, last_good=before.header or before.last_good)


def known_from(path: str, data: bytes, size: int, mtime_ns: int, last_good: Header | None = None) -> tuple[Known, Document]:
    """What a file's bytes, or the first of them, say of it; and what recall searches."""
    complete = len(data) == size
    etag = etag_of(data) if complete else None
    try:
        file = parse(path, data, complete=complete)
    except InvalidMemoryFile as error:
        text = data.decode("utf-8", "replace")[:MAX_RECALL_BYTES]
        return Known(size, mtime_ns, etag, None, error, (), _day_of(mtime_ns), last_good, False, False), Document(text)
    document = _document(path, file.header, file.body, file.before)
    day, may_state = document.day or _day_of(mtime_ns), not complete or _has("::", file.body)
    may_link = not complete or _has("[[", file.body) or _has("](", file.body)
    return Known(size, mtime_ns, etag, file.header, None, file.warnings, day, None, may_state, may_link), document


def _document(path: str, header: Header, body: str, before: int) -> Document:
    stem, _, _ = path.rpartition(".")
    words = stem.replace("-", " ").replace("_", " ").replace("/", " ")
    own = header.fields or {}
    dates = [value for value in (*map(own.get, _DATES), header.valid_from) if isinstance(value, str)]
    day = stated_date((*dates, header.description, header.name, stem))
    about = "\n".join((header.description, " ".join(header.tags), in_words(day) if day else ""))
    return Document(body[:MAX_RECALL_BYTES], f"{words}\n{header.name}", about, day, before)


def _has(mark: str, text: str) -> bool:
    """Whether a mark of two characters is in a text; most texts lack its first, which is found out far sooner."""
    return mark[0] in text and mark in text


def _day_of(mtime_ns: int) -> date:
    return datetime.fromtimestamp(mtime_ns // 10**9, UTC).date()


def listed_as(path: str, known: Known) -> Listed:
    """What the index says of a file; a broken one keeps what was last good, or says that it is broken."""
    header = known.header or known.last_good
    if header is None:
        return Listed(PurePosixPath(path).stem, "this file can't be read: see `mdmemory doctor`", mtime_ns=known.mtime_ns)
    return Listed(header.name, header.description, header.pinned, known.mtime_ns)


def as_text(known: Known) -> str:
    """Everything but the path, as one line of JSON."""
    problem = known.problem and (known.problem.reason, known.problem.line)
    headers = (_values(known.header), _values(known.last_good))
    holds = (known.may_state, known.may_link)
    values = (known.size, known.mtime_ns, known.etag, known.day.toordinal(), known.warnings, problem, *headers, *holds)
    return json.dumps(values)


def from_text(path: str, text: str) -> Known:
    """Read what `as_text` wrote."""
    size, mtime_ns, etag, day, warnings, problem, header, last_good, *holds = json.loads(text)
    error = InvalidMemoryFile(path, *problem) if problem else None
    return Known(size, mtime_ns, etag, _header(header), error, tuple(warnings), date.fromordinal(day), _header(last_good), *holds)


def _values(header: Header | None) -> tuple[Any, ...] | None:
    return None if header is None else attrgetter(*_HEADER)(header)


def _header(values: list[Any] | None) -> Header | None:
    if values is None:
        return None
    found = dict(zip(_HEADER, values, strict=True))
    return Header(**{**found, "tags": tuple(found["tags"]), "source": tuple(found["source"])})
