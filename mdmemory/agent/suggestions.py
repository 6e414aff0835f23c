"""What a model suggests to remember: its reply read leniently, then checked. Floor 4."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from mdmemory.errors import InvalidReply
from mdmemory.models import Reply, checked, parse_json

_TEXTS = ("path", "replaces", "name", "description", "type", "body", "reason")
_ACTIONS = ("add", "update", "supersede", "none")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One thing to remember.

    Args:
        action: `add`, `update`, `supersede` or `none`.
        path: of the file to make or change; for `none`, of the one that says it already.
        replaces: for `supersede`, the file that is no longer true.
        sources: the numbers of the messages that say it, as the prompt has them.
    """

    action: str
    path: str
    replaces: str
    name: str
    description: str
    type: str
    body: str
    reason: str
    sources: tuple[int, ...]


def schema(types: Iterable[str]) -> Mapping[str, Any]:
    """The JSON Schema of a reply."""
    text = {"type": "string"}
    fields = {
        "action": {"type": "string", "enum": list(_ACTIONS)},
        **dict.fromkeys(_TEXTS, text),
        "type": {"type": "string", "enum": [*types, ""]},
        "sources": {"type": "array", "items": {"type": "integer"}},
    }
    item = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    properties = {"memories": {"type": "array", "items": item}, "summary": text}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def read_suggestions(reply: Reply, types: Iterable[str]) -> tuple[list[Suggestion], str]:
    """The suggestions of a reply and its summary; prose around the JSON, fields too many and empty ones left out do no harm.

    Raises:
        InvalidReply: it has another form; the message names the place.
    """
    said = parse_json(reply)
    memories = said.get("memories")
    if not isinstance(memories, list):
        raise InvalidReply("The reply does not have the asked-for form: it has no list of memories")
    whole = {"memories": [_complete(item) for item in memories], "summary": said.get("summary") or ""}
    found = checked(whole, schema(types))
    suggestions = [Suggestion(**{**item, "sources": tuple(item["sources"])}) for item in found["memories"]]
    for number, suggestion in enumerate(suggestions):
        is_named = suggestion.name.strip() or suggestion.action == "update"
        if suggestion.action != "none" and not (suggestion.body.strip() and is_named):
            raise InvalidReply(f"The reply does not have the asked-for form: memories[{number}] has no name or no body")
    return suggestions, found["summary"]


def _complete(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    sources = item.get("sources")
    sources = sources if isinstance(sources, list) else [sources] if sources else []
    numbers = [int(source) if isinstance(source, str) and source.strip().isdecimal() else source for source in sources]
    return {"action": item.get("action"), **{key: item.get(key) or "" for key in _TEXTS}, "sources": numbers}
