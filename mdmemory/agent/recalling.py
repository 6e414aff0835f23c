"""Recall in one answer: the passages that fit a query best, quoted and dated, within a budget of tokens. Floor 4."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from mdmemory.backends.protocol import File
from mdmemory.errors import InvalidMemoryFile
from mdmemory.files.memory_file import parse
from mdmemory.files.safety import instructions_in
from mdmemory.folder.any_folder import Folder
from mdmemory.recall.ranking import RankedPassage
from mdmemory.render import age, estimate_tokens, render

MAX_PASSAGES = 20
MIN_SHARE = 0.2  # of the best passage's score: what fits so much less is not worth its tokens


@dataclass(frozen=True, slots=True)
class Quote:
    """A passage word for word.

    Args:
        line, end_line: counted from 1, both included.
        score: 0 to 1, compared with the best passage.
        date: the day of the file, as `2026-11-30`; UTC.
    """

    path: str
    name: str
    line: int
    end_line: int
    score: float
    date: str
    text: str


async def recall(folder: Folder, query: str, max_tokens: int | None = None, filters: Mapping[str, Any] = {}) -> list[Quote]:
    """The passages that share words with the query, best first.

    Args:
        max_tokens: what their texts may take, estimated (default `config.hint_max_tokens`); the best is cut rather than left out.

    Raises:
        InvalidArguments: a filter that there is not.
        Unavailable: the folder can't be looked at.
    """
    await folder.refresh()
    passages = await folder.search_passages(query, limit=MAX_PASSAGES, **filters)
    found = await folder.read_many(list(dict.fromkeys(passage.path for passage in passages))) if passages else {}
    left = folder.config.hint_max_tokens if max_tokens is None else max_tokens
    quotes: list[Quote] = []
    for passage in passages:
        file = found[passage.path]
        if passage.score < MIN_SHARE or not isinstance(file, File):
            continue
        lines = file.data.decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
        passage = _said(passage, file.data, lines)
        if any(_overlaps(passage, quote) for quote in quotes):
            continue
        text = "\n".join(lines[passage.line - 1 : passage.end_line]).strip("\n")
        if estimate_tokens(text) > left:
            if quotes:
                continue
            text = _cut(text, left)
        left -= estimate_tokens(text)
        quotes.append(_quote(folder, passage, text))
    return quotes


def _said(passage: RankedPassage, data: bytes, lines: Sequence[str]) -> RankedPassage:
    """The passage; where it is the header of a file, the first paragraph of its body."""
    try:
        before = data.count(b"\n") - parse(passage.path, data).body.count("\n")
    except InvalidMemoryFile:
        return passage
    start = next((number for number, line in enumerate(lines[before:], before + 1) if line.strip()), None)
    if passage.end_line > before or start is None:
        return passage
    end = next((number for number, line in enumerate(lines[start:], start) if not line.strip()), len(lines))
    return replace(passage, line=start, end_line=end)


def _overlaps(passage: RankedPassage, quote: Quote) -> bool:
    return passage.path == quote.path and passage.line <= quote.end_line and quote.line <= passage.end_line


def _cut(text: str, max_tokens: int) -> str:
    while estimate_tokens(text) > max_tokens:
        text = text[: len(text) * 3 // 4]
    return f"{text}… (cut)"


def _quote(folder: Folder, passage: RankedPassage, text: str) -> Quote:
    known = folder.files.get(passage.path)
    name = known.header.name if known and known.header else passage.path
    day = known.day.isoformat() if known else ""
    return Quote(passage.path, name, passage.line, passage.end_line, round(passage.score, 3), day, text)


def quoted_for_model(folder: Folder, quotes: Sequence[Quote]) -> str:
    """The passages as reference data, which nothing in them can close."""
    today = datetime.now(UTC).date()
    blocks = [
        {
            **asdict(quote),
            "age": age((today - datetime.fromisoformat(quote.date).date()).days) if quote.date else "",
            "suspicious": bool(instructions_in(quote.text, limit=1)),
        }
        for quote in quotes
    ]
    return render("recalled", folder.config.prompts_dir, passages=blocks)
