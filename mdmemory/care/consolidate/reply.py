"""What a model makes of a cluster: its reply read leniently, then checked. Floor 4."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mdmemory.errors import InvalidReply
from mdmemory.folder.proposals.proposal import CONSOLIDATED, Kind
from mdmemory.models import Reply, checked, parse_json

_TEXT: Final[Mapping[str, Any]] = {"type": "string"}


def _object(**properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _list(items: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"type": "array", "items": items}


_FILE: Final = _object(path=_TEXT, name=_TEXT, description=_TEXT, body=_TEXT)
_KIND: Final = {"type": "string", "enum": list(CONSOLIDATED)}
SCHEMA: Final = _object(proposals=_list(_object(kind=_KIND, sources=_list(_TEXT), files=_list(_FILE), reason=_TEXT)))
"""The JSON Schema of a reply."""


@dataclass(frozen=True, slots=True)
class Made:
    """A file that a model wants in place of others."""

    path: str
    name: str
    description: str
    body: str


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One thing that a model wants done with the files of a cluster.

    Args:
        sources: the paths of the files that it is about.
        files: what is to be there in their place.
    """

    kind: Kind
    sources: tuple[str, ...]
    files: tuple[Made, ...]
    reason: str


def read_suggestions(reply: Reply) -> list[Suggestion]:
    """The suggestions of a reply; prose around the JSON, fields too many and empty ones left out do no harm.

    Raises:
        InvalidReply: it has another form; the message names the place.
    """
    proposals = parse_json(reply).get("proposals")
    if not isinstance(proposals, list):
        raise InvalidReply("The reply does not have the asked-for form: it has no list of proposals")
    found = checked({"proposals": [_complete(item) for item in proposals]}, SCHEMA)["proposals"]
    return [
        Suggestion(item["kind"], tuple(item["sources"]), tuple(Made(**file) for file in item["files"]), item["reason"])
        for item in found
    ]


def _complete(item: Any) -> Any:
    if not isinstance(item, dict):
        return item
    files = item.get("files") or []
    if isinstance(files, list):
        texts = ("path", "name", "description", "body")
        files = [{key: file.get(key) or "" for key in texts} if isinstance(file, dict) else file for file in files]
    return {"kind": item.get("kind"), "sources": item.get("sources") or [], "files": files, "reason": item.get("reason") or ""}
