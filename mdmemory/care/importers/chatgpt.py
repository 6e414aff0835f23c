"""ChatGPT's data export: the conversations in `conversations.json`, or `conversations-000.json` and so on. Floor 4, pure.

A conversation is a tree: `mapping` has its nodes, each with a `message`, a `parent` and `children`, and `current_node` is the end of
the branch that the app shows. OpenAI documents none of it, so nothing here relies on a key being there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mdmemory.care.importers.plan import Plan, Utterance
from mdmemory.care.importers.shapes import as_dict, as_list, as_text, as_time, rows
from mdmemory.errors import InvalidArguments

KIND = "chatgpt"
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
    others = sum(1 for key in nodes.keys() - branch.keys() if _text(_message(nodes, key))[0])
    if others:
        plan.leave(source, f"{others} messages of other branches: of edited questions and regenerated answers")
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
        for piece in pieces:
            plan.leave(f"{source}#{id}", piece)
        if text:
            yield Utterance(id, at, as_text(as_dict(message.get("author")).get("role")), text)


def _branch(nodes: Mapping[str, Any], current: Any) -> dict[str, None]:
    """The nodes from the root to the current one; without one, to the newest."""
    if not isinstance(current, str) or current not in nodes:
        times = {key: as_time(_message(nodes, key).get("create_time")) for key in nodes}
        known = {key: at for key, at in times.items() if at}
        current = max(known, key=lambda key: known[key]) if known else next(reversed(nodes), None)
    found: dict[str, None] = {}
    while isinstance(current, str) and current in nodes and current not in found:
        found[current] = None
        current = as_dict(nodes[current]).get("parent")
    return dict.fromkeys(reversed(found))


def _message(nodes: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    return as_dict(as_dict(nodes[key]).get("message"))


_INSTRUCTIONS = "the user's custom instructions"


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
        return f"the output of a tool, {as_text(author.get('name')) or 'unnamed'}"
    if role not in ("user", "assistant"):
        return f"a message of the role {role or 'unknown'!r}"
    if role == "assistant" and recipient != "all":
        return f"a call of the tool {recipient}"
    return "the model's reasoning" if content_type in _REASONING else None


def _text(message: Mapping[str, Any]) -> tuple[str, list[str]]:
    """What a message says, and what else is in it."""
    content = as_dict(message.get("content"))
    texts, pieces = [as_text(content.get("text")) or as_text(content.get("result"))], []
    for part in as_list(content.get("parts")):
        if isinstance(part, str) or as_text(as_dict(part).get("text")):  # of what was spoken, the transcription
            texts.append(part if isinstance(part, str) else part["text"])
        elif part:
            kind = as_text(as_dict(part).get("content_type")) or "something that is no text"
            pieces.append(f"{kind} {as_text(as_dict(part).get('asset_pointer'))}".rstrip())
    for thought in as_list(content.get("thoughts")):
        texts.append(as_text(as_dict(thought).get("content")))
    for attachment in as_list(as_dict(message.get("metadata")).get("attachments")):
        pieces.append(f"the attachment {as_text(as_dict(attachment).get('name')) or 'without a name'}")
    return "\n".join(text for text in texts if text.strip()), pieces
