"""What can be imported, by the name that the command knows it by. Floor 4."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike

from mdmemory.care.importers.basic_memory import plan_basic_memory
from mdmemory.care.importers.chatgpt import plan_chatgpt
from mdmemory.care.importers.claude import plan_claude
from mdmemory.care.importers.markdown import plan_markdown
from mdmemory.care.importers.mem0 import plan_mem0
from mdmemory.care.importers.plan import Plan
from mdmemory.care.importers.source import read_source
from mdmemory.errors import InvalidArguments


@dataclass(frozen=True, slots=True)
class Importer:
    """How one kind of source is read.

    Args:
        reads: the paths in it that are read; a single file always is.
        plan: what was read, by path, to a plan.
    """

    reads: re.Pattern[str]
    plan: Callable[[Mapping[str, bytes]], Plan]


_MARKDOWN = re.compile(r".+\.md", re.IGNORECASE)
_MEM0 = re.compile(r".+\.json")
_CHATGPT = re.compile(r"(?:.+/)?conversations(?:-\d+)?\.json")
_CLAUDE = re.compile(r"(?:.+/)?(?:(?:conversations|memories|projects)(?:-\d+)?|(?:memories|projects)/[^/]+)\.json")
IMPORTERS: Mapping[str, Importer] = {
    "claude-code": Importer(_MARKDOWN, plan_markdown),
    "markdown": Importer(_MARKDOWN, plan_markdown),
    "basic-memory": Importer(_MARKDOWN, plan_basic_memory),
    "mem0": Importer(_MEM0, plan_mem0),
    "chatgpt": Importer(_CHATGPT, plan_chatgpt),
    "claude": Importer(_CLAUDE, plan_claude),
}


def plan_import(kind: str, place: str | PathLike[str]) -> Plan:
    """What a file, a folder or a zip archive holds.

    Args:
        kind: one of `IMPORTERS`.

    Raises:
        InvalidArguments: there is no such kind, or nothing of that kind at the place.
    """
    importer = IMPORTERS.get(kind)
    if importer is None:
        raise InvalidArguments(f"there is no kind {kind!r}; there are {', '.join(IMPORTERS)}")
    source = read_source(place, lambda path: importer.reads.fullmatch(path) is not None)
    if not source.files:
        raise InvalidArguments(f"There is nothing in it that could be imported as {kind}. Nothing was imported.")
    plan = importer.plan(source.files)
    plan.left[:0] = source.left
    return plan
