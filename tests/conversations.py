"""Conversations and what a scripted model draws from them, for tests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from folders import on_disk

from mdmemory import Config, ScriptedModel
from mdmemory.agent.extractor import Extraction, extract
from mdmemory.files.journal import Message, new_message
from mdmemory.files.memory_file import MemoryFile, parse
from mdmemory.folder.memory_folder import MemoryFolder

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
REVIEWED = Config(extract="propose")


def said(*lines: str | dict[str, Any], first: int = 1, start: datetime = START) -> list[Message]:
    """Messages with the ids m1, m2, …, a minute apart: the user and the assistant in turns, dicts as they are."""
    messages = []
    for number, line in enumerate(lines, first):
        data = line if isinstance(line, dict) else {"role": "user" if number % 2 else "assistant", "content": line}
        messages.append(new_message(data, f"m{number}", start + timedelta(minutes=number)))
    return messages


def memory(name: str, body: str, *sources: int, action: str = "add", **fields: str) -> dict[str, Any]:
    """One memory as a model proposes it."""
    given = {"path": "", "replaces": "", "description": f"about {name}", "type": "user", "reason": "it was said"}
    return {"action": action, **given, "name": name, "body": body, "sources": list(sources or (1,)), **fields}


def reply(*memories: dict[str, Any], summary: str = "") -> dict[str, Any]:
    """A model's whole reply."""
    return {"memories": list(memories), "summary": summary}


def reviewed(root: Path, files: Mapping[str, Any] = {}, **settings: Any) -> MemoryFolder:
    """A folder where what is drawn from conversations waits for a person."""
    return on_disk(root, files, config=REVIEWED, **settings)


async def drawn(folder: MemoryFolder, talk: list[Message], *replies: Any, session: str = "s1") -> Extraction:
    """One extraction, whose mark is added to the conversation."""
    result = await extract(folder, ScriptedModel(list(replies)), session, talk)
    assert result is not None
    talk.append(result.mark)
    return result


def file(root: Path, path: str) -> MemoryFile:
    """A memory file on disk."""
    return parse(path, (root / path).read_bytes())


def statuses(result: Extraction) -> list[tuple[str, str]]:
    """Status and path of each outcome."""
    return [(outcome.status, outcome.path) for outcome in result.outcomes]


TALK = said("I live in Hangzhou and I drink green tea.", "Noted!")
HOME = memory("Home", "Lives in Hangzhou.", path="user/home.md")
TEA = memory("Tea", "Drinks green tea.", path="user/tea.md")
