"""Conversations in a journal, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mdmemory import Memory
from mdmemory.files.journal import Message, new_message, parse
from mdmemory.folder.journals import Journals
from mdmemory.folder.memory_folder import MemoryFolder


def said(text: str, id: str | None = None, role: str = "user", **more: Any) -> Message:
    """A message."""
    return new_message({"role": role, "content": text, **more}, id)


async def looked(folder: MemoryFolder) -> Journals:
    """The journals after a look at the folder."""
    await folder.refresh()
    return folder.journals


def file_in(root: Path, session: str) -> Path:
    """The one file of a session."""
    [place] = root.glob(f"journal/*/*/{session}.md")
    return place


def texts(messages: list[Message]) -> list[str]:
    """What was said."""
    return [message.text for message in messages]


def journal_of(root: Path, session: str) -> bytes:
    """The bytes of the one file of a session."""
    return file_in(root, session).read_bytes()


def said_in(root: Path, session: str) -> list[tuple[str, str]]:
    """Role and text of each message in the file."""
    return [(message.role, message.text) for message in parse(journal_of(root, session)).messages]


async def talk(memory: Memory, session: str, *turns: tuple[str, str]) -> None:
    """Hold a conversation."""
    for text, reply in turns:
        async with memory.session(session).turn(text) as turn:
            await turn.finish(reply)
