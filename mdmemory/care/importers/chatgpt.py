"""ChatGPT's data export: the conversations in `conversations.json`, or `conversations-000.json` and so on. Floor 4, pure.

A conversation is a tree: `mapping` has its nodes, each with a `message` and a `parent`, and `current_node` is the end of the branch
that the app shows. OpenAI documents none of it, so nothing here relies on a key being there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mdmemory.care.importers.plan import Plan, Utterance
from mdmemory.care.importers.shapes import as_dict, as_list, as_text, as_time, rows
from mdmemory.errors import InvalidArguments

KIND = "chatgpt"
OTHER_BRANCH = "on a branch that the app does not show: an edited question or a regenerated answer"
_INSTRUCTIONS = "the user's custom instructions"
_PIECES = {"image": "an image", "audio": "a recording", "video": "a recording"}
_REASONING = frozenset(("thoughts", "reasoning_recap"))


def plan_chatgpt(files: Mapping[str, bytes]) -> Plan:
    """Each conversation as a session of the journal: what the user and the assistant said on the branch that the app shows.

    Raises:
        InvalidArguments: it is no export of ChatGPT.
    """
    plan = Plan()
    found = [row for path, data in sorted(files.items()) for row in rows(path, data, "conversations")]
    if not any("mapping" in as_dict(chat) for _, chat in found):
        raise InvalidArguments("There is no conversation of ChatGPT in it: those have a `mapping`. Nothing was imported.")
    for where, chat in found:
        id = as_text(as_dict(chat).get("conversation_id")) or as_text(as_dict(chat).get("id"))
        if id and isinstance(chat.get("mapping"), dict):
            title = as_text(chat.get("title")).strip()
            plan.converse(KIND, id, title, _said(plan, f"{KIND}:{id}", chat))
        else:
            plan.leave(where, "it has no id, or no messages")
    return plan


def _said(plan: Plan, source: str, chat: Mapping[str, Any]) -> Iterator[Utterance]:
    nodes: Mapping[str, Any] = chat["mapping"]
    branch = _branch(nodes, chat.get("current_node"))
    for key in nodes:
        if key not in branch and _text(_message(nodes, key))[0]:
            plan.leave(f"{source}#{key}", OTHER_BRANCH)
    at = as_time(chat.get("create_time")) or as_time(chat.get("update_time"))
    for key in branch:
        message = _message(nodes, key)
        id = as_text(message.get("id")) or key
        at = as_time(message.get("create_time")) or at
        text, pieces = _text(message)
        reason = _why_not(message)
        if reason is not None:
            if text or pieces or reason == _INSTRUCTIONS:
                plan.leave(f"{source}#{id}", reason)
            continue
        for name, what in pieces:
            plan.leave(f"{source}#{id}: {name}", what)
        if text:
            yield Utterance(id, at, as_text(as_dict(message.get("author")).get("role")), text)


def _branch(nodes: Mapping[str, Any], current: Any) -> dict[str, None]:
    """The nodes from the root to the current one; without one, to the newest."""
    if not isinstance(current, str) or current not in nodes:
        times = {key: as_time(_message(nodes, key).get("create_time")) for key in nodes}
        known = {key: at for key, at in times.items() if at}
        current = max(known, key=lambda key: known[key]) if known else next(reversed(list(nodes)), None)
    found: dict[str, None] = {}
    while isinstance(current, str) and current in nodes and current not in found:
        found[current] = None
        current = as_dict(nodes[current]).get("parent")
    return dict.fromkeys(reversed(found))


def _message(nodes: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return as_dict(as_dict(nodes[key]).get("message"))


def _why_not(message: Mapping[str, Any]) -> str | None:
    """Why a message is nothing that the user or the assistant said; None when it is."""
    metadata, author = as_dict(message.get("metadata")), as_dict(message.get("author"))
    role, recipient = as_text(author.get("role")), as_text(message.get("recipient")) or "all"
    content_type = as_text(as_dict(message.get("content")).get("content_type"))
    if content_type == "user_editable_context" or metadata.get("is_user_system_message"):
        return _INSTRUCTIONS
    if metadata.get("is_visually_hidden_from_conversation"):
        return "a message that the app hides"
    if role == "tool":
        return "the output of a tool"
    if role not in ("user", "assistant"):
        return "neither the user nor the assistant says it"
    if role == "assistant" and recipient != "all":
        return "a call of a tool"
    return "the model's reasoning" if content_type in _REASONING else None


def _text(message: Mapping[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    """What a message says, and the name and kind of what else is in it."""
    content = as_dict(message.get("content"))
    texts, pieces = [as_text(content.get("text")) or as_text(content.get("result"))], list[tuple[str, str]]()
    for part in as_list(content.get("parts")):
        if isinstance(part, str) or as_text(as_dict(part).get("text")):  # of what was spoken, the transcription
            texts.append(part if isinstance(part, str) else part["text"])
        elif part:
            kind = as_text(as_dict(part).get("content_type"))
            what = next((what for word, what in _PIECES.items() if word in kind), "something that is no text")
            pieces.append((as_text(as_dict(part).get("asset_pointer")) or kind, what))
    for thought in as_list(content.get("thoughts")):
        texts.append(as_text(as_dict(thought).get("content")))
    for attachment in as_list(as_dict(message.get("metadata")).get("attachments")):
        pieces.append((as_text(as_dict(attachment).get("name")), "an attachment, whose text is not in the conversation"))
    return "\n".join(text for text in texts if text.strip()), pieces
