"""What was said in a coding agent's session, for the journal: from Claude Code's transcript, or from the hooks. Floor 6."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from stat import S_ISREG
from typing import Any

from mdmemory.agent.extractor import MEMORY_TOOLS
from mdmemory.errors import InvalidArguments
from mdmemory.files.journal import Message, new_message

MAX_TRANSCRIPT_BYTES = 64 * 1024 * 1024
_OF_MEMORY = re.compile(rf"mcp__\w*memory\w*__(?:{'|'.join(sorted(MEMORY_TOOLS))}|recall)")
_HINT = re.compile(r"\s*<memory-hint>.*?</memory-hint>\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Said:
    """Part of a transcript.

    Args:
        messages: what people, the agent and its tools said; calls of the memory and their answers are left out.
        end: how many bytes of the transcript are read by now.
    """

    messages: Sequence[Message] = ()
    end: int = 0

    @property
    def reply(self) -> str:
        """What the agent said last."""
        return next((message.text for message in reversed(self.messages) if message.role == "assistant"), "")


def read_transcript(path: Path, start: int, folder: str) -> Said | None:
    """What stands in a transcript of Claude Code from `start` on; None when it is none.

    Args:
        start: bytes that were read before; all is read when the transcript has become shorter.
        folder: of the memory, whose files the agent's own tools may have read.
    """
    try:
        found = path.stat()
        if not S_ISREG(found.st_mode):  # a pipe would never end
            return None
        size = found.st_size
        with path.open("rb") as file:
            file.seek(start if start <= size else 0)
            begin = file.tell()
            data = file.read(MAX_TRANSCRIPT_BYTES)
    except (OSError, ValueError):  # also a name that no file can have
        return None
    data = data[: data.rfind(b"\n") + 1]  # a line may be being written
    entries = [entry for line in data.splitlines() if (entry := _entry(line))]
    if data and not any("uuid" in entry and "sessionId" in entry for entry in entries):  # another agent's
        return None
    return Said(tuple(_messages(entries, folder)), begin + len(data))


def from_hooks(session: str, turn: str, said: Sequence[str], reply: str) -> list[Message]:
    """What the hooks themselves are told: prompts and the reply, with ids by which a hook that runs twice is known."""
    messages = []
    for role, text in (*(("user", each) for each in said), ("assistant", reply)):
        if text := _HINT.sub("", text):
            id = hashlib.sha256("\0".join((session, turn, role, text)).encode("utf-8", "replace")).hexdigest()[:32]
            with suppress(InvalidArguments):  # half a character
                messages.append(new_message({"role": role, "content": text}, id))
    return messages


def _entry(line: bytes) -> Mapping[str, Any] | None:
    """A line of a transcript."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) and isinstance(entry.get("type"), str) else None


def _messages(entries: Sequence[Mapping[str, Any]], folder: str) -> Iterator[Message]:
    calls: dict[str, bool] = {}
    """Whether each call is kept."""
    held: list[Mapping[str, Any]] = []
    for entry in entries:
        said = entry.get("message")
        if entry["type"] not in ("user", "assistant") or not isinstance(said, dict) or not isinstance(entry.get("uuid"), str):
            continue
        if any(entry.get(mark) for mark in ("isSidechain", "isMeta", "isCompactSummary")):  # no part of what was said
            continue
        if held and not (entry["type"] == "assistant" and said.get("id") == held[0]["message"].get("id")):
            yield from _assistant(held, calls, folder)
            held = []
        if entry["type"] == "assistant":  # a message of several blocks is several entries
            held.append(entry)
        else:
            yield from _user(entry, calls)
    if held:
        yield from _assistant(held, calls, folder)


def _user(entry: Mapping[str, Any], calls: Mapping[str, bool]) -> Iterator[Message]:
    blocks = _blocks(entry["message"])
    text = _HINT.sub("", _text(blocks))
    if text:
        yield from _made(entry, "", {"role": "user", "content": text})
    for block in blocks:
        if block.get("type") == "tool_result" and calls.get(id := str(block.get("tool_use_id"))):
            yield from _made(entry, f"-{id}", {"role": "tool", "tool_call_id": id, "content": _text(_blocks(block))})


def _assistant(entries: Sequence[Mapping[str, Any]], calls: dict[str, bool], folder: str) -> Iterator[Message]:
    blocks = [block for entry in entries for block in _blocks(entry["message"])]
    made = []
    for block in blocks:
        if block.get("type") == "tool_use":
            id, name, given = str(block.get("id")), str(block.get("name")), block.get("input")
            calls[id] = not (_OF_MEMORY.fullmatch(name) or _is_inside(given, folder))
            if calls[id]:
                made.append({"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}})
    text = _text(blocks)
    if text or made:
        yield from _made(entries[0], "", {"role": "assistant", "content": text or None, **({"tool_calls": made} if made else {})})


def _is_inside(given: Any, folder: str) -> bool:
    """Whether a tool is called on a file of the memory."""
    path = given.get("file_path") or given.get("path") if isinstance(given, dict) else None
    return isinstance(path, str) and f"{path}/".startswith(f"{folder.rstrip('/')}/")


def _made(entry: Mapping[str, Any], part: str, data: Mapping[str, Any]) -> Iterator[Message]:
    try:
        at = datetime.fromisoformat(str(entry.get("timestamp")))
    except ValueError:
        at = None
    with suppress(InvalidArguments):  # half a character, which no file can keep
        yield new_message(data, f"{entry['uuid']}{part}"[:200], at)


def _blocks(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _text(blocks: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(block["text"] for block in blocks if block.get("type") == "text" and isinstance(block.get("text"), str))
