"""Exports of other memories and apps, in the forms that theirs have, with texts of our own."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

NOON = 1_764_504_000.25  # 2025-11-30 12:00 UTC


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    """A zip archive of these files."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        for path, data in files.items():
            made.writestr(path, data)
    return archive.getvalue()


def node(id: str, parent: str | None, role: str, *parts: Any, **more: Any) -> tuple[str, dict[str, Any]]:
    """A node of a conversation of ChatGPT; `more` goes into its message, `type` into its content."""
    content = {"content_type": more.pop("type", "text"), "parts": list(parts)}
    message = {"id": id, "author": {"role": role, "name": None}, "create_time": NOON, "content": content, "recipient": "all"}
    return id, {"id": id, "parent": parent, "children": [], "message": {**message, "metadata": {}, **more}}


def chatgpt(*nodes: tuple[str, dict[str, Any]], id: str = "c1", **more: Any) -> dict[str, Any]:
    """A conversation of ChatGPT; the last node is the current one."""
    root = {"id": "root", "parent": None, "children": [], "message": None}
    mapping = {"root": root, **dict(nodes)}
    about = {"title": "A walk", "create_time": NOON - 60, "update_time": NOON + 60, "conversation_id": id}
    return {**about, "mapping": mapping, "current_node": list(mapping)[-1], **more}


def walk(*more: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """A conversation of ChatGPT of two messages, and more."""
    said = (
        node("m1", "root", "user", "Where can I walk?"),
        node("m2", "m1", "assistant", "Around the lake.", create_time=NOON + 2),
    )
    return chatgpt(*said, *more)


def says(id: str, sender: str, text: str, minute: int = 0, **more: Any) -> dict[str, Any]:
    """A message of Claude's export."""
    at = f"2025-11-30T12:{minute:02}:00.123456Z"
    content = [{"start_timestamp": at, "stop_timestamp": at, "type": "text", "text": text, "citations": []}]
    common = {"uuid": id, "text": text, "content": content, "sender": sender, "created_at": at, "updated_at": at}
    return {**common, "attachments": [], "files": [], **more}


def claude(*messages: dict[str, Any], id: str = "k1", **more: Any) -> dict[str, Any]:
    """A conversation of Claude's export."""
    about = {"uuid": id, "name": "Bread", "created_at": "2025-11-30T12:00:00.000000Z", "updated_at": "2025-11-30T12:05:00.000000Z"}
    return {**about, "account": {"uuid": "a1"}, "chat_messages": list(messages), **more}


def remembered(id: str, memory: str, **more: Any) -> dict[str, Any]:
    """A memory as mem0's `get_all` has it."""
    times = {"created_at": "2025-11-30T04:00:00-08:00", "updated_at": None}
    return {"id": id, "memory": memory, "hash": "0" * 32, "user_id": "alice", "metadata": None, **times, **more}


def as_json(value: Any) -> bytes:
    """The bytes of a JSON file."""
    return json.dumps(value, ensure_ascii=False).encode()
