"""Hints: memory files quoted as dated reference data, within a budget of tokens. Floor 4."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mdmemory.agent.selector import Pick
from mdmemory.backends.protocol import File, FileProblem, etag_of
from mdmemory.errors import InvalidMemoryFile
from mdmemory.files.memory_file import parse
from mdmemory.files.safety import instructions_in
from mdmemory.folder.any_folder import Folder
from mdmemory.render import age, estimate_tokens, moment, render

MIN_FILE_TOKENS = 50  # a file of which less would fit is left out


@dataclass(frozen=True, slots=True)
class HintFile:
    """A file in a hint.

    Args:
        etag: of the content that was shown.
        cut: whether only its beginning fitted.
    """

    path: str
    reason: str
    etag: str
    cut: bool


@dataclass(frozen=True, slots=True)
class Hint:
    """Reference text for the model; `str(hint)` is what to hand it, as a message of its own before it reasons.

    Args:
        files: what it brings; empty when only the index has news.
        tokens: an estimate of its length.
    """

    text: str
    files: tuple[HintFile, ...]
    tokens: int

    def __str__(self) -> str:
        return self.text


async def make_hint(folder: Folder, picks: Sequence[Pick], shown: Mapping[str, str], news: str) -> Hint | None:
    """Read the picked files and quote them.

    Args:
        shown: etag by path of what the session was shown already; only changed files come again.
        news: index lines that changed, or "".

    Returns:
        None when nothing is left to say.
    """
    found = await folder.read_many([pick.path for pick in picks]) if picks else {}
    budget = folder.config.hint_max_tokens
    files: list[HintFile] = []
    blocks: list[Mapping[str, object]] = []
    for pick in picks:
        file = found[pick.path]
        if isinstance(file, FileProblem) or shown.get(pick.path) == etag_of(file.data) or budget < MIN_FILE_TOKENS:
            continue
        text, cut = _fitting(body_of(pick.path, file), budget)
        budget -= estimate_tokens(text)
        files.append(HintFile(pick.path, pick.reason, etag_of(file.data), cut))
        blocks.append(_block(folder, pick, file, text, cut))
    if not files and not news:
        return None
    whole = render("hint", folder.config.prompts_dir, files=blocks, news=news)
    return Hint(whole, tuple(files), estimate_tokens(whole))


def body_of(path: str, file: File) -> str:
    """The file without its frontmatter, which the index shows; as it is when the frontmatter is broken."""
    try:
        return parse(path, file.data).body.strip()
    except InvalidMemoryFile:
        return file.data.decode("utf-8", "replace")


def _fitting(text: str, max_tokens: int) -> tuple[str, bool]:
    """The text, or its beginning up to a line end within the budget."""
    if estimate_tokens(text) <= max_tokens:
        return text, False
    part = text[: max_tokens * 4]
    while estimate_tokens(part) > max_tokens:
        part = part[: len(part) * 3 // 4]
    return part.rsplit("\n", 1)[0] if "\n" in part else part, True


def _block(folder: Folder, pick: Pick, file: File, text: str, cut: bool) -> Mapping[str, object]:
    days = max(0.0, (time.time_ns() - file.mtime_ns) / 86_400e9)
    suspicions = instructions_in(text, limit=1)
    return {
        "path": pick.path,
        "date": moment(file.mtime_ns).strftime("%Y-%m-%d"),
        "age": age(days),
        "stale": days >= folder.config.stale_days,
        "reason": pick.reason,
        "text": text,
        "cut": cut,
        "suspicious": suspicions[0].line if suspicions else None,
    }
