"""What models are asked and what they answer: read leniently, then checked. Floor 1."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from mdmemory.errors import InvalidReply

Message = Mapping[str, Any]
Reply = dict[str, Any] | str

_FENCE: Final = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
# Where the thoughts have no opening tag, the closing one begins a line: inside JSON it can't, since strings hold no line ends.
_THOUGHTS: Final = re.compile(r"\A(?:\s*<think>.*?|.*?^[ \t]*)</think>", re.MULTILINE | re.DOTALL)
_OPENING: Final = re.compile(r"[{\[]")
_DECODER: Final = json.JSONDecoder()
_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


class Model(Protocol):
    """Answers a conversation."""

    async def __call__(self, messages: Sequence[Message], *, schema: Mapping[str, Any] | None = None) -> Reply:
        """Answer.

        Args:
            messages: dicts with `role` (system, user or assistant) and `content`.
            schema: JSON Schema that the reply should follow; `checked` tells whether it does.
        """
        ...


def parse_json(reply: Reply) -> dict[str, Any]:
    """The JSON object of a reply, with or without code fences, prose or a model's thoughts around it.

    Raises:
        InvalidReply: there is none; the message shows how the reply begins.
    """
    if isinstance(reply, dict):
        return reply
    if not isinstance(reply, str):
        raise InvalidReply(f"The reply is neither text nor a dict but {type(reply).__name__}")
    try:
        whole = json.loads(reply)
    except ValueError:
        whole = _first_object(_THOUGHTS.sub("", reply))
    except RecursionError:
        whole = None
    if isinstance(whole, dict):
        return whole
    start = " ".join(reply[:200].split())[:80]
    raise InvalidReply(f"The reply is not a JSON object: {start!r}")


def _first_object(text: str) -> dict[str, Any] | None:
    for part in (*_FENCE.findall(text), text):
        position = 0
        while opening := _OPENING.search(part, position):
            try:
                value, position = _DECODER.raw_decode(part, opening.start())
            except ValueError:
                position = opening.end()
                continue
            except RecursionError:
                break
            if isinstance(value, dict):
                return value
    return None


def checked(reply: Reply, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object of a reply that follows the schema.

    Args:
        reply: what the model answered.
        schema: JSON Schema with type, properties, required, items, enum, additionalProperties (false) and maxItems.

    Raises:
        InvalidReply: it does not; the message names the place.
    """
    value = parse_json(reply)
    fault = _fault(value, schema, "reply")
    if fault:
        raise InvalidReply(f"The reply does not have the asked-for form: {fault}")
    return value


def _fault(value: Any, schema: Mapping[str, Any], place: str) -> str | None:
    allowed = schema.get("type", [])
    allowed = [allowed] if isinstance(allowed, str) else allowed
    if allowed and not any(_is_a(value, name) for name in allowed):
        return f"{place} is {type(value).__name__}, not {' or '.join(allowed)}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{place} is {str(value)[:40]!r}, not one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            return f"{place} has {len(value)} items, more than {schema['maxItems']}"
        return next((f for n, item in enumerate(value) if (f := _fault(item, schema.get("items", {}), f"{place}[{n}]"))), None)
    if isinstance(value, dict):
        known = schema.get("properties", {})
        if missing := [key for key in schema.get("required", ()) if key not in value]:
            return f"{place} lacks {', '.join(missing)}"
        if schema.get("additionalProperties") is False and (extra := [key for key in value if key not in known]):
            return f"{place} has the unknown {', '.join(extra)[:80]}"
        return next((f for key in known if key in value and (f := _fault(value[key], known[key], f"{place}.{key}"))), None)
    return None


def _is_a(value: Any, name: str) -> bool:
    if isinstance(value, bool):  # to Python a bool is an int
        return name == "boolean"
    return isinstance(value, _TYPES[name])
