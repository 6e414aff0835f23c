"""Every number and switch that a user may set, with its default. Floor 1."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from os import PathLike
from typing import Literal

from mdmemory.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that an injected scorer judges.

    Args:
        text: its name, its description and its best passage.
        modified: UTC.
        score: recall's own, 0 to 1.
    """

    path: str
    text: str
    modified: datetime
    score: float


@dataclass(frozen=True, slots=True)
class Config:
    """Settings of a memory.

    Args:
        extra_types: memory types besides user, feedback, project and reference, each with the line that explains it to the model.
        prompts_dir: a folder whose `*.md.j2` files replace ours of the same name.
        index_max_lines, index_max_bytes: the index's limits, on disk and in the system prompt.
        hint_max_files: files a hint may bring.
        hint_max_tokens: estimated tokens a hint may take.
        hint_wait_s: how long the first `take_hint` of a turn waits by default.
        min_score: lexical picks below this share (0-1) of the query's weight are not given.
        selector_timeout_s: when an LLM selector is given up.
        selector_max_files: headers shown to the selector, the lexically nearest and the newest first.
        stale_days: from this age on a hint says to verify.
        journal: keep every conversation word for word in `journal/`; a folder opened as `read_only` gets none.
        window_messages: how many of a conversation's last messages are its window.
        window_tokens: how many estimated tokens they may take; None for no such limit.
        stages: of the work, such as `plan` and `write`; a mount may be silent in some of them.
        languages: whose endings search ignores, as Snowball names them; each word goes through all of them, in this order.
        embed: texts to vectors, for search by meaning beside that by words; what is unchanged is embedded once a process.
        scorer: a query and candidates to how well each answers it; its scores replace recall's among the 50 nearest files.
        watch: let the system tell what changes in a folder on this machine, from the second look on; else each look is a scan.
        extract_every: messages of a conversation after which what is worth remembering is drawn from them; 1 is every turn.
        extract: whether what a model draws from conversations is saved at once (`apply`), or waits for a person (`propose`).
        extract_timeout_s: when a model that is asked for it, or to consolidate, is given up; also how long closing a session waits
            for it.
        summary_over: from this many messages on, a conversation has a memory file with its summary; 0 for never.
        secrets: what becomes of passwords and keys in what is drawn from conversations: redact them, refuse the memory, or keep.
        cache: keep what is known of the files in the user's cache folder, or in the folder given here, so that no process reads an
            unchanged file again; False keeps it in memory.
        history_days: how old what the history keeps may become; None for ever.
        history_bytes: how much the history may take; None for no limit. What goes is the oldest; the log's last 64 KB always stay.
        consolidate: whether what a model proposes for files that say much the same waits for a person (`propose`), or is done at
            once where nothing is lost (`apply`).
        max_loss: the share (0-1) of the lines or bytes of some files that may go without an explicit yes; a run may take half of it
            of everything.
        half_life_days: age at which recall's time factor has gone half of its way from 1 to 0.5.
    """

    extra_types: Mapping[str, str] = field(default_factory=dict)
    prompts_dir: str | PathLike[str] | None = None
    index_max_lines: int = 200
    index_max_bytes: int = 25_000
    hint_max_files: int = 5
    hint_max_tokens: int = 2_000
    hint_wait_s: float = 0.3
    min_score: float = 0.15
    selector_timeout_s: float = 20.0
    selector_max_files: int = 300
    stale_days: float = 14.0
    half_life_days: float = 180.0
    extract: Literal["apply", "propose"] = "apply"
    extract_every: int = 15
    extract_timeout_s: float = 60.0
    summary_over: int = 60
    secrets: Literal["redact", "refuse", "keep"] = "redact"
    history_days: float | None = 90.0
    history_bytes: int | None = 50_000_000
    consolidate: Literal["propose", "apply"] = "propose"
    max_loss: float = 0.2
    stages: tuple[str, ...] = ()
    watch: bool = True
    cache: bool | str | PathLike[str] = True
    journal: bool = True
    window_messages: int = 200
    window_tokens: int | None = None
    languages: tuple[str, ...] = ("english",)
    embed: Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]] | None = None
    scorer: Callable[[str, Sequence[Candidate]], Awaitable[Sequence[float]]] | None = None

    def __post_init__(self) -> None:
        for name in (
            "index_max_lines",
            "index_max_bytes",
            "hint_max_tokens",
            "selector_max_files",
            "half_life_days",
            "selector_timeout_s",
            "extract_every",
            "extract_timeout_s",
            "window_messages",
            "window_tokens",
            "history_days",
            "history_bytes",
        ):
            if getattr(self, name) is not None and not getattr(self, name) > 0:  # so that NaN is refused too
                raise ConfigError(f"{name} must be more than 0")
        for name in ("min_score", "max_loss"):
            if not 0 <= getattr(self, name) <= 1:
                raise ConfigError(f"{name} is a share: from 0 to 1")
        if not (self.hint_max_files >= 0 and self.hint_wait_s >= 0 and self.summary_over >= 0):
            raise ConfigError("hint_max_files, hint_wait_s and summary_over may not be negative")
        if self.secrets not in ("redact", "refuse", "keep"):
            raise ConfigError('secrets is "redact", "refuse" or "keep"')
        for name in ("consolidate", "extract"):
            if getattr(self, name) not in ("propose", "apply"):
                raise ConfigError(f'{name} is "propose" or "apply"')
