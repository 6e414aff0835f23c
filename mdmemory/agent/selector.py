"""The selector: which memory files help with the coming reply, asked of a model, with lexical recall beside it. Floor 4."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mdmemory.errors import InvalidReply
from mdmemory.folder.any_folder import Folder
from mdmemory.models import Model, parse_json
from mdmemory.recall.ranking import Match
from mdmemory.recall.tokens import tokens
from mdmemory.render import age, render

logger = logging.getLogger("mdmemory")
MAX_MESSAGE_CHARS = 2_000
MAX_DESCRIPTION_CHARS = 240
FEW_TERMS = 4  # below this a message says too little by itself: "do it again"
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "files": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"path": {"type": "string"}, "reason": {"type": "string"}},
                "required": ["path", "reason"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["files"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation, as far as selection looks at it."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Pick:
    """A chosen file.

    Args:
        score: recall's score for a lexical pick, None for a model's.
    """

    path: str
    reason: str
    source: Literal["model", "lexical"]
    score: float | None = None


def query_of(messages: Sequence[Message]) -> str:
    """What to search for: the last message, and when it says little by itself also the user's earlier ones."""
    query = messages[-1].text if messages else ""
    if len(set(tokens(query))) < FEW_TERMS:
        query = "\n".join(message.text for message in [*(m for m in messages[:-1] if m.role == "user"), *messages[-1:]])
    return query


def lexical_picks(matches: Sequence[Match], min_score: float) -> list[Pick]:
    """Recall's matches above `min_score`, with the words they share as the reason."""
    picks = []
    for match in matches:
        terms = match.explain["terms"]
        shared = ", ".join(list(terms)[:5]) if isinstance(terms, Mapping) else ""
        if match.score >= min_score:
            picks.append(Pick(match.path, f"shares the words {shared}", "lexical", round(match.score, 3)))
    return picks


async def select(model: Model, messages: Sequence[Message], folder: Folder, paths: Sequence[str]) -> list[Pick]:
    """Ask a model which files help.

    Args:
        messages: the last few of the conversation, the user's latest last.
        paths: the files whose headers it is shown; see `shortlist`.

    Raises:
        ModelError: no answer, or none that names files.
    """
    config = folder.config
    now_ns = time.time_ns()
    shown = [{"role": message.role, "text": message.text[-MAX_MESSAGE_CHARS:]} for message in messages]
    headers = [_header(folder, path, now_ns) for path in paths]
    prompt = render("selector", config.prompts_dir, messages=shown, files=headers, limit=config.hint_max_files)
    reply = parse_json(await model([{"role": "user", "content": prompt}], schema=SCHEMA))
    files = reply.get("files")
    if not isinstance(files, list):
        raise InvalidReply(f"the selector's reply has no list of files: {str(reply)[:80]}")
    picks: dict[str, Pick] = {}
    for item in files:
        name, reason = (item.get("path"), item.get("reason")) if isinstance(item, Mapping) else (item, None)
        path = resolve_name(str(name), paths)
        if path is None:
            logger.info("the selector named a file that does not exist or could be several: %.80s", name)
        else:
            picks.setdefault(path, Pick(path, " ".join(str(reason or "chosen by the selector").split())[:200], "model"))
    if files and not picks:
        raise InvalidReply("the selector named only files that do not exist")
    return list(picks.values())[: config.hint_max_files]


def shortlist(folder: Folder, nearest: Sequence[str]) -> list[str]:
    """The files whose headers the selector sees: all that are valid today, or the nearest and the newest up to the limit.

    Args:
        nearest: of lexical recall, the best first.
    """
    limit, hidden = folder.config.selector_max_files, folder.outdated
    readable = [path for path, known in folder.files.items() if known.header is not None and path not in hidden]
    if len(readable) <= limit:
        return readable
    newest = sorted(readable, key=lambda path: -folder.files[path].mtime_ns)[:limit]
    return list(dict.fromkeys([*nearest[: limit // 2], *newest]))[:limit]


def _header(folder: Folder, path: str, now_ns: int) -> Mapping[str, object]:
    known = folder.files[path]
    assert known.header is not None  # `shortlist` leaves out the others
    description = " ".join(known.header.description.split())[:MAX_DESCRIPTION_CHARS]
    days = (now_ns - known.mtime_ns) / 86_400e9
    return {"path": path, "type": known.header.type, "name": known.header.name, "description": description, "age": age(days)}


def resolve_name(name: str, paths: Collection[str]) -> str | None:
    """The path a model means: as listed, or absolute, with `./`, without folder or extension, in other case, if only one fits."""
    wanted = name.strip().strip("`'\"").replace("\\", "/").removeprefix("./").strip("/")
    if not wanted:
        return None
    for candidate in (wanted, f"{wanted}.md"):
        if candidate in paths:
            return candidate
        folded = candidate.casefold()
        ends = [path for path in paths if f"/{folded}".endswith(f"/{path.casefold()}")]
        if ends:
            longest = max(ends, key=len)
            return longest if sum(len(path) == len(longest) for path in ends) == 1 else None
        inside = [path for path in paths if f"/{path.casefold()}".endswith(f"/{folded}")]
        if inside:
            return inside[0] if len(inside) == 1 else None
    return None
