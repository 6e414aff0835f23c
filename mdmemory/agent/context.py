"""The context of a reply: the last messages of conversations, and older ones that help, each with its time. Floor 4."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal

from mdmemory.errors import InvalidArguments, InvalidReply, MdmemoryError
from mdmemory.folder.any_folder import Folder
from mdmemory.folder.journals import JournalFilters, Said, fitting
from mdmemory.models import Model, parse_json
from mdmemory.render import estimate_tokens, render, render_own

logger = logging.getLogger("mdmemory")
RECALLED_SHARE = 4  # of the tokens, a fourth at most is for older messages
CANDIDATES = 4  # a model chooses among this many times the messages wanted
MAX_SHOWN_CHARS = 1_000
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"messages": {"type": "array", "items": {"type": "integer"}}},
    "required": ["messages"],
    "additionalProperties": False,
}
Order = Literal["time", "score"] | Model


@dataclass(frozen=True, slots=True)
class Context:
    """Messages for the model: `str(context)` is text for it, `window` and `recalled` are what it is made of.

    Args:
        window: the last messages, oldest first.
        recalled: older messages that share words with the query; none of them is in the window.
        degraded: None, or `degraded: …` with what went wrong.
        prompts_dir: a folder whose `context.md.j2` replaces ours.
    """

    window: tuple[Said, ...] = ()
    recalled: tuple[Said, ...] = ()
    degraded: str | None = None
    prompts_dir: str | PathLike[str] | None = None

    def __str__(self) -> str:
        return self.render()

    @property
    def tokens(self) -> int:
        """An estimate of its length."""
        return estimate_tokens(str(self))

    def render(self, template: str | None = None) -> str:
        """The text for the model.

        Args:
            template: in Jinja's language, with `{{ window }}` and `{{ recalled }}`: lists of messages that have `when` (UTC),
                `role`, `session`, `text` and `calls`, the names of the tools called.

        Raises:
            ConfigError: it has no place for what there is, or uses what it is not given.
        """
        parts = {"window": [_shown(said) for said in self.window], "recalled": [_shown(said) for said in self.recalled]}
        return render("context", self.prompts_dir, **parts) if template is None else render_own(template, **parts)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a context is asked for; see `Memory.context`."""

    query: str | None = None
    session: str | None = None
    k: int | None = None
    top_k: int = 5
    max_tokens: int | None = None
    order: Order = "time"


async def make_context(folder: Folder, wanted: Wanted, filters: JournalFilters) -> Context:
    """The window and the older messages, as of the folder's last `refresh`.

    Raises:
        InvalidArguments: a filter or an order that there is not.
        Unavailable, UnsafeFile: a conversation can't be read.
    """
    if isinstance(wanted.order, str) and wanted.order not in ("time", "score"):
        raise InvalidArguments(f"order is 'time', 'score' or a model, not {wanted.order!r:.40}")
    config, journals = folder.config, folder.journals
    k = config.window_messages if wanted.k is None else wanted.k
    max_tokens = config.window_tokens if wanted.max_tokens is None else wanted.max_tokens
    spare = max_tokens // RECALLED_SHARE if max_tokens is not None and wanted.query else 0
    sessions = [session for session in journals.chosen(filters) if wanted.session in (None, session)]
    window = await journals.window(sessions, k, None if max_tokens is None else max_tokens - spare)
    context = Context(tuple(window), prompts_dir=config.prompts_dir)
    if wanted.query and wanted.top_k > 0:
        recalled, degraded = await _recall(folder, wanted, window, filters)
        recalled = recalled if max_tokens is None else fitting(recalled, spare)
        if wanted.order == "time":
            recalled = sorted(recalled, key=lambda said: said.message.at)
        context = replace(context, recalled=tuple(recalled), degraded=degraded)
    while max_tokens is not None and (context.window or context.recalled) and context.tokens > max_tokens:
        if context.window:
            context = replace(context, window=context.window[1:])
        else:
            context = replace(context, recalled=context.recalled[:-1])
    return context


async def _recall(folder: Folder, wanted: Wanted, window: Sequence[Said], filters: JournalFilters) -> tuple[list[Said], str | None]:
    """The older messages, best first, and what went wrong."""
    query, top_k, ranker = wanted.query or "", wanted.top_k, None if isinstance(wanted.order, str) else wanted.order
    found = await folder.journals.search(query, limit=CANDIDATES * top_k if ranker else top_k, leave_out=window, **filters)
    if ranker is None or not found:
        return found, None
    try:
        return (await _ranked(ranker, query, found, top_k, folder.config.prompts_dir))[:top_k], None
    except Exception as error:  # any callable can be a model, and any of its errors must leave the reply alone
        logger.warning("the ranker failed, lexical order is used: %s", error, exc_info=not isinstance(error, MdmemoryError))
        return found[:top_k], f"degraded: the ranker failed: {error}; lexical order was used"


async def _ranked(
    model: Model, query: str, found: Sequence[Said], limit: int, prompts_dir: str | PathLike[str] | None
) -> list[Said]:
    """The messages that a model chooses, in its order; numbers that it makes up are dropped."""
    shown = [{**_shown(said), "text": said.message.text[:MAX_SHOWN_CHARS]} for said in found]
    prompt = render("ranker", prompts_dir, query=query, messages=shown, limit=limit)
    numbers = parse_json(await model([{"role": "user", "content": prompt}], schema=SCHEMA)).get("messages")
    if not isinstance(numbers, list):
        raise InvalidReply(f"the ranker's reply has no list of messages: {str(numbers)[:80]}")
    chosen = [number for number in dict.fromkeys(map(str, numbers)) if number.isdecimal() and 1 <= int(number) <= len(found)]
    if numbers and not chosen:
        raise InvalidReply("the ranker named only messages that do not exist")
    return [found[int(number) - 1] for number in chosen]


def _shown(said: Said) -> dict[str, Any]:
    message = said.message
    return {
        "when": f"{message.at:%Y-%m-%d %H:%M}",
        "role": message.role,
        "session": said.session,
        "text": message.text,
        "calls": list(_called(message.data)),
    }


def _called(data: Mapping[str, Any]) -> Iterator[str]:
    """The names of the tools that a message calls, in OpenAI's form or in Anthropic's."""
    for parts in (data.get("tool_calls"), data.get("content")):
        for part in parts if isinstance(parts, list) else ():
            call = part.get("function", part) if isinstance(part, dict) and part.get("type") in ("function", "tool_use") else {}
            if isinstance(call, dict) and isinstance(call.get("name"), str):
                yield call["name"]
