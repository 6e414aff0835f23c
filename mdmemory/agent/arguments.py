"""Tool arguments against their JSON Schema, with errors that a model can act on. Floor 4."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mdmemory.errors import InvalidArguments

_WHOLE = re.compile(r"[0-9]{1,9}(?:\.0)?")
_TYPES: Mapping[str, type | tuple[type, ...]] = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict}
_LISTED = {"string": "texts", "integer": "whole numbers"}


def check_arguments(tool: str, arguments: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with numbers and booleans that came as text converted.

    Args:
        schema: an object schema whose properties have plain types.

    Raises:
        InvalidArguments: says which argument is missing, unknown or of the wrong type, and what the tool takes.
    """
    properties, required = schema["properties"], schema["required"]
    usage = ", ".join(f"{name}: {properties[name]['type']}{'' if name in required else ' (optional)'}" for name in properties)
    if not isinstance(arguments, Mapping):
        raise InvalidArguments(f"{tool} takes an object with {usage}.")
    missing = [name for name in required if arguments.get(name) is None]
    unknown = [str(name) for name in arguments if name not in properties]
    if missing or unknown:
        faults = [f"{' and '.join(missing)} is missing"] * bool(missing) + [f"{' and '.join(unknown)} is not known"] * bool(unknown)
        raise InvalidArguments(f"{tool}: {'; '.join(faults)}. It takes {usage}.")
    return {name: _converted(tool, name, value, properties[name]) for name, value in arguments.items() if value is not None}


def _converted(tool: str, name: str, value: Any, schema: Mapping[str, Any]) -> Any:
    wanted = schema["type"]
    if wanted == "integer" and isinstance(value, (str, float)) and _WHOLE.fullmatch(str(value)):
        value = int(float(value))
    if wanted == "boolean" and isinstance(value, str) and value.casefold() in ("true", "false"):
        value = value.casefold() == "true"
    if wanted == "array" and isinstance(value, str):
        value = [value]  # the only item, without its brackets
    items = value if wanted == "array" and isinstance(value, list) else ()
    if not all(isinstance(item, _TYPES[schema["items"]["type"]]) and not isinstance(item, bool) for item in items):
        raise InvalidArguments(f"{tool}: {name} must be a list of {_LISTED[schema['items']['type']]}.")
    if not isinstance(value, _TYPES[wanted]) or (wanted == "integer" and isinstance(value, bool)):
        raise InvalidArguments(f"{tool}: {name} must be of type {wanted}, not {type(value).__name__}.")
    if wanted == "integer" and value < schema.get("minimum", value):
        raise InvalidArguments(f"{tool}: {name} must be at least {schema['minimum']}.")
    return value
