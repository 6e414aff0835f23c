"""Claude's data export: `conversations.json` into the journal, what Claude remembered (`memories.json`) into files. Floor 4, pure.

A conversation has `chat_messages`, each with `sender`, `text` or parts in `content`, and `attachments` whose text is in the export.
Anthropic documents none of it, so nothing here relies on a key being there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from mdmemory.care.importers.plan import Plan, Utterance
from mdmemory.care.importers.shapes import as_dict, as_list, as_text, as_time, load_json, rows
from mdmemory.errors import InvalidArguments, InvalidMemoryFile
from mdmemory.files.memory_file import new_file
from mdmemory.files.naming import shortened, slug

KIND = "claude"
OTHER_BRANCH = "on a branch that the app does not show: an edited question or a retried answer"
_PIECES = {"thinking": "the model's reasoning", "tool_use": "a call of a tool", "tool_result": "the output of a tool"}
_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}


def plan_claude(files: Mapping[str, bytes]) -> Plan:
    """Each conversation as a session of the journal, and each memory as a file.

    Raises:
        InvalidArguments: it is no export of Claude.
    """
    plan = Plan()
    names: dict[str, str] = {}
    chats: list[tuple[str, Any]] = []
    memories: list[Mapping[str, Any]] = []
    for path, data in sorted(files.items()):
        if _is(path, "projects"):
            for project in _objects(path, data):
                names[as_text(project.get("uuid"))] = as_text(project.get("name"))
                plan.leave(f"{path}: {as_text(project.get('name'))}", "a project's instructions and documents")
        elif _is(path, "memories"):
            memories += _objects(path, data)
        else:
            chats += rows(path, data, "conversations")
    if not (memories or any("chat_messages" in as_dict(chat) for _, chat in chats)):
        raise InvalidArguments("There is no conversation of Claude in it: those have `chat_messages`. Nothing was imported.")
    for kept in memories:
        _remember(plan, kept, names)
    for where, chat in chats:
        id = as_text(as_dict(chat).get("uuid"))
        if id and isinstance(chat.get("chat_messages"), list):
            plan.converse(KIND, id, as_text(chat.get("name")).strip(), _said(plan, f"{KIND}:{id}", chat))
        else:
            plan.leave(where, "it has no id, or no messages")
    return plan


def _is(path: str, what: str) -> bool:
    """Whether a file of the export is `what.json` or lies in the folder `what`."""
    pure = PurePosixPath(path)
    return what in pure.parts[:-1] or pure.stem.startswith(what)


def _objects(path: str, data: bytes) -> list[Mapping[str, Any]]:
    value = load_json(path, data)
    return [element for element in (value if isinstance(value, list) else [value]) if isinstance(element, dict)]


def _remember(plan: Plan, kept: Mapping[str, Any], names: Mapping[str, str]) -> None:
    """Files for what Claude remembered of the user, and of each project."""
    found = {"": as_text(kept.get("conversations_memory"))}
    found |= {id: as_text(text) for id, text in as_dict(kept.get("project_memories")).items()}
    for id, text in found.items():
        if not text.strip():
            continue
        key = f"{KIND}:memories{f'/{id}' if id else ''}"
        name = shortened(f"What Claude knew of {names.get(id) or id}" if id else "What Claude knew of the user", 100)
        kind, path = ("project", f"project/claude-{slug(names.get(id) or id)}.md") if id else ("user", "user/claude.md")
        try:
            plan.add(
                key,
                plan.free_path(key, path, id),
                new_file(name, "what Claude remembered from conversations", kind, text, source=key),
            )
        except InvalidMemoryFile as error:
            plan.leave(key, str(error))


def _said(plan: Plan, source: str, chat: Mapping[str, Any]) -> Iterator[Utterance]:
    at = as_time(chat.get("created_at"))
    messages = [as_dict(message) for message in chat["chat_messages"]]
    branch = _branch(messages, as_text(chat.get("current_leaf_message_uuid")))
    shown = set(map(id, branch))
    for message in messages:
        if id(message) not in shown:
            plan.leave(f"{source}#{as_text(message.get('uuid'))}", OTHER_BRANCH)
    for message in branch:
        uuid = as_text(message.get("uuid"))
        where, role = f"{source}#{uuid}", _ROLES.get(as_text(message.get("sender")))
        at = as_time(message.get("created_at")) or at
        text, pieces = _text(message)
        if not uuid or role is None:
            plan.leave(where, "it has no id, or neither a human nor the assistant says it")
            continue
        for name, what in pieces:
            plan.leave(f"{where}: {name}", what)
        if text:
            yield Utterance(uuid, at, role, text)


def _branch(messages: Sequence[Mapping[str, Any]], leaf: str) -> list[Mapping[str, Any]]:
    """The messages that the app shows: all, unless they name their parents and some have several answers."""
    by_id = {as_text(message.get("uuid")): message for message in messages}
    parents = [as_text(message.get("parent_message_uuid")) for message in messages]
    answered = [parent for parent in parents if parent in by_id]
    if len(set(answered)) == len(answered):
        return list(messages)
    current, found = leaf if leaf in by_id else as_text(messages[-1].get("uuid")), dict[str, Mapping[str, Any]]()
    while current in by_id and current not in found:
        found[current] = by_id[current]
        current = as_text(by_id[current].get("parent_message_uuid"))
    return list(found.values())[::-1]


def _text(message: Mapping[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    """What a message says, the text of its attachments included, and the name and kind of what else is in it."""
    texts, pieces = list[str](), list[tuple[str, str]]()
    for part in map(as_dict, as_list(message.get("content"))):
        kind = as_text(part.get("type"))
        if kind in ("text", "voice_note", ""):
            texts.append(as_text(part.get("text")))
        else:
            pieces.append((as_text(part.get("name")) or kind, _PIECES.get(kind, "something that is no text")))
    if not any(text.strip() for text in texts):
        texts = [as_text(message.get("text"))]
    for attachment in map(as_dict, as_list(message.get("attachments"))):
        name, content = as_text(attachment.get("file_name")), as_text(attachment.get("extracted_content"))
        if content:
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", content)), default=0))
            texts.append(f"Attachment {' '.join(name.split())}:\n\n{fence}\n{content}\n{fence}")
        else:
            pieces.append((name, "an attachment of which the export has no text"))
    for file in [*as_list(message.get("files")), *as_list(message.get("files_v2"))]:
        pieces.append((as_text(as_dict(file).get("file_name")), "a file that the export lacks"))
    return "\n\n".join(text for text in texts if text.strip()), list(dict.fromkeys(pieces))
