"""mem0's memories: a file each. Floor 4, pure.

What `get_all()` of `Memory` and `MemoryClient` returns (mem0ai 2.2): `{"results": [{"id", "memory", "user_id", …}]}`, or the list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mdmemory.care.importers.plan import Plan
from mdmemory.care.importers.shapes import as_dict, as_list, as_text, as_time, rows
from mdmemory.errors import InvalidMemoryFile
from mdmemory.files.memory_file import DEFAULT_TYPES, new_file
from mdmemory.files.naming import shortened, slug

MAX_NAME_CHARS = 60
MAX_DESCRIPTION_CHARS = 200
_SCOPES = ("user_id", "agent_id", "app_id", "run_id")
_TAKEN = frozenset(("id", "memory", "metadata", "categories", "created_at", "updated_at", "expiration_date", *_SCOPES))
_COMPUTED = frozenset(("hash", "score", "score_details"))  # of the text, or of a search


def plan_mem0(files: Mapping[str, bytes]) -> Plan:
    """A file for each memory; `source: mem0:<id>` names it. With several users each has a folder of its own."""
    plan = Plan()
    found = [row for path, data in sorted(files.items()) for row in rows(path, data, "results", "memories")]
    users = {str(as_dict(item).get("user_id") or "") for _, item in found} - {""}
    for where, item in found:
        id = as_dict(item).get("id")
        if not isinstance(id, (str, int)) or not as_text(as_dict(item).get("memory")).strip():
            plan.leave(where, "it has no id or no text: a memory is an object with `id` and `memory`")
            continue
        key = f"mem0:{id}"
        try:
            path, data = _file(key, item, len(users) > 1)
        except (InvalidMemoryFile, ValueError, RecursionError) as error:
            plan.leave(key, str(error))
            continue
        plan.add(key, plan.free_path(key, path, str(id)), data)
    return plan


def _file(key: str, item: Mapping[str, Any], is_shared: bool) -> tuple[str, bytes]:
    """Where a memory goes, and its bytes."""
    text, more = item["memory"].strip(), dict(as_dict(item.get("metadata")))
    scopes = {scope: str(item[scope]) for scope in _SCOPES if isinstance(item.get(scope), (str, int)) and item[scope] != ""}
    user = scopes.get("user_id", "")
    kind = more.pop("type") if as_text(more.get("type")) in DEFAULT_TYPES else "user" if user else "project"
    fields: dict[str, Any] = {"source": key}
    rest = {name: value for name, value in item.items() if name not in _TAKEN | _COMPUTED} | more
    if tags := [tag for tag in as_list(item.get("categories")) if isinstance(tag, str)]:
        fields["tags"] = tags
    for name, given in (("created", "created_at"), ("updated", "updated_at"), ("valid_until", "expiration_date")):
        if at := as_time(item.get(given)):
            written = at.isoformat(timespec="seconds").replace("+00:00", "Z")
            fields[name] = written[:10] if name == "valid_until" else written
        else:
            rest[given] = item.get(given)
    fields |= scopes
    for name, value in rest.items():
        if value not in (None, "", [], {}):
            fields[f"mem0_{name}"] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    name = shortened(text, MAX_NAME_CHARS)
    folder = f"users/{slug(user)}/" if user and is_shared else ""
    return f"{folder}{kind}/{slug(name)}.md", new_file(name, shortened(text, MAX_DESCRIPTION_CHARS), kind, text, **fields)
