"""JSON that anybody may have written: read in bounds, and asked for shapes that it may not have. Floor 4, pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from mdmemory.errors import InvalidArguments


def load_json(path: str, data: bytes) -> Any:
    """The value in a JSON file.

    Raises:
        InvalidArguments: it is no JSON, or nested too deeply.
    """
    try:
        return json.loads(data)
    except RecursionError:
        raise InvalidArguments(f"{path} is nested too deeply to be read; nothing was imported") from None
    except ValueError as error:
        raise InvalidArguments(f"{path} is no JSON ({error}); nothing was imported") from None


def rows(path: str, data: bytes, *keys: str) -> Iterator[tuple[str, Any]]:
    """Each element of a JSON list, with where it stands.

    Args:
        keys: of an object that the list may be in.

    Raises:
        InvalidArguments: there is no list.
    """
    value = load_json(path, data)
    if isinstance(value, dict):
        value = next((value[key] for key in keys if isinstance(value.get(key), list)), None)
    if not isinstance(value, list):
        wanted = "a list" + "".join(f", or an object with a list {key!r}" for key in keys)
        raise InvalidArguments(f"{path} is not of the expected form: it should be {wanted}. Nothing was imported.")
    for number, element in enumerate(value):
        yield f"{path}[{number}]", element


def as_text(value: Any) -> str:
    """The value if it is text, else none."""
    return value if isinstance(value, str) else ""


def as_dict(value: Any) -> Mapping[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_time(value: Any) -> datetime | None:
    """A time, written as seconds since 1970 or as ISO 8601; None for what is neither. Without a zone it is UTC."""
    try:
        if isinstance(value, str):
            at = datetime.fromisoformat(value)
            at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            at = datetime.fromtimestamp(value, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return at if at.year >= 1970 else None
