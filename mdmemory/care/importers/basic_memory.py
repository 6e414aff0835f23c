"""basic-memory's notes: the same files, with name, description and type added. Floor 4, pure.

https://docs.basicmemory.com/concepts/knowledge-format: frontmatter with `title`, `type`, `permalink` and `tags`; observations are
lines such as `- [category] content #tag (context)`, relations such as `- relates_to [[Other note]]`. Text and unknown keys stay.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from mdmemory.care.importers.plan import Plan
from mdmemory.errors import InvalidMemoryFile
from mdmemory.files.memory_file import DEFAULT_TYPES, MAX_NAME_CHARS, MemoryFile, parse, set_field
from mdmemory.files.naming import shortened
from mdmemory.folder.known import INDEX

MAX_DESCRIPTION_CHARS = 200
_PROJECT = frozenset(("project", "task", "meeting", "decision", "spec", "conversation"))
_OBSERVATION = re.compile(r"[-*+] \[[^\[\]()]+\] +(.+)")
_NO_PROSE = ("#", "---", "```", "<!--", "- ", "* ", "+ ", "|", ">")


def plan_basic_memory(files: Mapping[str, bytes]) -> Plan:
    """Each note under its own path; the type that basic-memory had becomes `entity_type`."""
    plan = Plan()
    for path in sorted(files):
        if path == INDEX:
            plan.leave(path, "here this is the name of the index; give the note another name")
            continue
        try:
            data = _with_header(path, files[path])
        except InvalidMemoryFile as error:
            plan.leave(path, str(error))
            continue
        plan.add(path, path, data)
    return plan


def _with_header(path: str, data: bytes) -> bytes:
    """The note with the fields that a memory file has; one without frontmatter stays as it is."""
    file = parse(path, data)
    fields = file.header.fields
    if not fields:
        return data
    kind = file.header.type or "note"
    if kind not in DEFAULT_TYPES:
        data = set_field(path, data, "type", "project" if kind.casefold() in _PROJECT else "reference")
        if "entity_type" not in fields:
            data = set_field(path, data, "entity_type", kind)
    if "name" not in fields:
        title = fields.get("title")
        name = shortened(title, MAX_NAME_CHARS) if isinstance(title, str) else ""
        data = set_field(path, data, "name", name or shortened(file.header.name, MAX_NAME_CHARS))
    if "description" not in fields:
        data = set_field(path, data, "description", _description(file))
    return data


def _description(file: MemoryFile) -> str:
    """The first sentence of prose, else the first observation, else the name."""
    lines = [line.strip() for line in file.body.splitlines()]
    prose = next((line for line in lines if line and not line.startswith(_NO_PROSE)), "")
    observed = next((found[1] for line in lines if (found := _OBSERVATION.match(line))), "")
    return shortened(prose or observed, MAX_DESCRIPTION_CHARS) or file.header.name
