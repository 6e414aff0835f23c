"""The journal: conversations word for word, a Markdown file a session, an entry a message. Floor 1, pure.

    ## user · 2026-11-30 10:12:03Z · 8f14e45fceea167a

    The text, as it was said.
    <!-- end 8f14e45fceea167a -->

What a message has besides a text stands behind it as JSON, and the end says so: `<!-- end 8f14e45fceea167a json -->`. An entry
without its end was cut off while it was written. In a text, what looks like the first or the last line of an entry gets a
backslash, and loses it again when it is read; docs/journal.md has the whole format.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, unquote

from mdmemory.errors import InvalidArguments
from mdmemory.files import strict_yaml

JOURNAL: Final = "journal/"
SUMMARIES: Final = "project/conversations/"  # memory files that say what long conversations were about
MAX_ID_CHARS: Final = 200
MARK: Final = "extracted"
"""The role of entries that say how far memories were drawn from the conversation; they are no part of it."""
_ROLE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,39}")
_LINE: Final = re.compile(
    r"\n(?:## ([A-Za-z][A-Za-z0-9_-]*) · (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)Z · ([!-~]+)\r?(?=\n|\Z)|<!-- end ([!-~]+) (json )?-->)"
)
"""The first or the last line of an entry."""
_CUT_HEAD: Final = re.compile(r"\n#[^\n]*\Z")
_LIKE_HEAD: Final = re.compile(r"^(?=\\*## [A-Za-z][A-Za-z0-9_-]* · \d{4}-)", re.MULTILINE)
_LIKE_END: Final = re.compile(r"(?<=<!--)(?=\\* end )")
_ESCAPED: Final = re.compile(r"^\\(?=\\*## [A-Za-z][A-Za-z0-9_-]* · \d{4}-)|(?<=<!--)\\(?=\\* end )", re.MULTILINE)
_OWN_ID: Final = re.compile("[0-9a-f]{16}")
_UNSAFE_IN_NAME: Final = re.compile(r'^[.-]|^ | $|[\x00-\x1f\x7f/\\%:*?"<>|]')
_PATH: Final = re.compile(rf"{JOURNAL}\d{{4}}/\d\d/(.+)\.md")
_DESCRIPTION: Final = re.compile(r"\A(\n---\n(?:[^\n-][^\n]*\n)*?)description: [^\n]*\n")  # in the frontmatter
_JSON: Final = "```json\n"


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation; made by `new_message`.

    Args:
        id: names it within its session.
        at: UTC, to the second.
        data: role, content and whatever else it has, as the OpenAI or Anthropic API takes it.
    """

    id: str
    at: datetime
    data: Mapping[str, Any]

    @property
    def role(self) -> str:
        """Who speaks: user, assistant, tool or another."""
        return str(self.data["role"])

    def as_json(self, at: str) -> dict[str, Any]:
        """As one object, with the time as given; an `id` or `at` that the message has of its own is under `own`."""
        rest = {key: value for key, value in self.data.items() if key not in ("id", "at")}
        own = {key: self.data[key] for key in ("id", "at") if key in self.data}
        return {"id": self.id, "at": at, **rest, **({"own": own} if own else {})}

    @property
    def text(self) -> str:
        """What is said: the content, or its parts that are text."""
        content = self.data.get("content")
        if isinstance(content, list):
            return "\n".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
        return content if isinstance(content, str) else ""


@dataclass(frozen=True, slots=True)
class Journal:
    """What some bytes of a journal hold.

    Args:
        messages: in order, each id once.
        torn: of each entry that was cut off, what is known of it.
        end: where the last whole entry ends; what is added later is parsed from here.
    """

    messages: tuple[Message, ...]
    torn: tuple[str, ...]
    end: int


def new_message(data: Mapping[str, Any], id: str | None = None, at: datetime | None = None) -> Message:
    """A message as the journal keeps it: a copy, so that the host may go on with its own.

    Args:
        data: as the OpenAI or Anthropic API has it: `role`, `content`, `tool_calls`, …
        id: without one, a random one.
        at: when it was said; without it, now.

    Raises:
        InvalidArguments: it has no role, is no JSON, or holds half a character.
    """
    if not isinstance(role := data.get("role"), str) or not _ROLE.fullmatch(role):
        raise InvalidArguments(f"a message needs a role such as user, assistant or tool, not {role!r:.40}")
    if id is not None and not 0 < len(id) <= MAX_ID_CHARS:
        raise InvalidArguments(f"a message's id has 1 to {MAX_ID_CHARS} characters")
    try:
        text = json.dumps(data, ensure_ascii=False)
        f"{text}{id}".encode()
    except UnicodeEncodeError:
        raise InvalidArguments("the message holds half of a character (a lone surrogate), which no file can keep") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArguments(f"the message is no JSON: {error}; give it as the model's API takes it") from None
    moment = (at or datetime.now(UTC)).astimezone(UTC).replace(microsecond=0)
    return Message(secrets.token_hex(8) if id is None else id, moment, json.loads(text))


def is_own_id(id: str) -> bool:
    """Whether an id is one of the random ones, which no other message has."""
    return _OWN_ID.fullmatch(id) is not None


def end_mark(id: str) -> str:
    """How the last line of an entry begins; nothing else in a journal does."""
    return f"<!-- end {_quoted(id)} "


def entry_bytes(message: Message) -> bytes:
    """The entry of a message, ready to be appended."""
    body, more = _body(message.data)
    escaped = _LIKE_END.sub(r"\\", _LIKE_HEAD.sub(r"\\", body))
    when = message.at.isoformat(" ")[:19]
    head = f"## {message.role} · {when}Z · {_quoted(message.id)}"
    return f"{head}\n\n{escaped}\n{end_mark(message.id)}{more}-->\n\n".encode()


def opening(session: str, first: Message, about: Mapping[str, str] = {}) -> bytes:
    """The frontmatter of a session's file, for people and their tools.

    Args:
        about: more fields, such as the user and the agent.
    """
    words = " ".join(first.text.split())
    fields = {
        "name": f"Conversation {session}",
        "description": words if len(words) <= 120 else f"{words[:119]}…",
        "session": session,
        "started": f"{first.at.isoformat()[:19]}Z",
        **about,
    }
    lines = [f"{key}: {strict_yaml.quote(_LIKE_END.sub('~', value))}\n" for key, value in fields.items()]
    return "".join(["---\n", *lines, "---\n\n"]).encode()


def file_of(session: str, at: datetime) -> str:
    """The path of a session that begins at this time; `session_of` undoes it."""
    name = _UNSAFE_IN_NAME.sub(lambda found: f"%{ord(found[0]):02X}", session)
    return f"{JOURNAL}{at.year:04}/{at.month:02}/{name}.md"


def session_of(path: str) -> str | None:
    """The id of the session whose file this is; None when it is no journal."""
    found = _PATH.fullmatch(path)
    return unquote(found[1]) if found and "/" not in found[1] else None


def parse(data: bytes) -> Journal:
    """Read a journal, or what was added after `Journal.end`."""
    text = "\n" + data.decode("utf-8", "replace")
    messages: dict[str, Message] = {}
    torn: list[str] = []
    head: re.Match[str] | None = None
    last: re.Match[str] | None = None
    for line in _LINE.finditer(text):
        if line[1]:
            if head:
                torn.append(_cut_off(head))
            head = line
        elif head and line[4] == head[3]:
            message = _message(head, text[head.end() : line.start()], line[5])
            if message is None:
                torn.append(_cut_off(head))
            else:
                messages.setdefault(message.id, message)
            head, last = None, line
    if head:
        torn.append(_cut_off(head))
    elif _CUT_HEAD.search(text, last.end() if last else 0):
        torn.append("an entry was cut off in its first line")
    end = 0 if last is None else data.rfind(last[0].encode()) + len(last[0].encode())
    return Journal(tuple(messages.values()), tuple(torn), end)


def rewritten(data: bytes, change: Callable[[Message], Mapping[str, Any] | None]) -> tuple[bytes, int]:
    """A journal with other words in some entries, which keep their ids, roles and times.

    Args:
        change: what an entry's data are to become; None for as they are.

    Returns:
        The bytes, and how many entries changed. Whoever changes entries also loses the description, which quotes the first.
    """
    text = "\n" + data.decode("utf-8", "surrogateescape")
    parts, position, count = list[str](), 0, 0
    head: re.Match[str] | None = None
    for line in _LINE.finditer(text):
        if line[1]:
            head = line
        elif head and line[4] == head[3]:
            message = _message(head, text[head.end() : line.start()], line[5])
            new = None if message is None else change(message)
            if message is not None and new is not None:
                entry = entry_bytes(Message(message.id, message.at, {**new, "role": message.role})).decode(
                    "utf-8", "surrogateescape"
                )
                parts += [text[position : head.start() + 1], entry.rstrip("\n")]
                position, count = line.end(), count + 1
            head = None
    parts.append(text[position:])
    if count:
        parts[0] = _DESCRIPTION.sub(r"\1", parts[0])
    return "".join(parts)[1:].encode("utf-8", "surrogateescape"), count


def _message(head: re.Match[str], body: str, more: str | None) -> Message | None:
    role, when, id = head[1], head[2], head[3]
    try:
        at = datetime.fromisoformat(f"{when}+00:00")
    except ValueError:
        return None
    body = body.removeprefix("\n").removeprefix("\n")
    if "\\" in body:
        body = _ESCAPED.sub("", body)
    if more or role == "tool":
        return Message(unquote(id), at, _data(role, body, has_json=bool(more)))
    return Message(unquote(id), at, {"role": role, "content": body})


def _cut_off(head: re.Match[str]) -> str:
    return f"the entry {head[3]:.60} of {head[2]}Z ({head[1]}) was cut off"


def _body(data: Mapping[str, Any]) -> tuple[str, str]:
    """The body of an entry, and what its end says of it."""
    content = data.get("content")
    fields = {key: value for key, value in data.items() if key not in ("role", "content")}
    if isinstance(content, str) and (content or not fields):
        text = _fenced(content) if data["role"] == "tool" else content
        if not fields:
            return text, ""
    else:
        text, fields = "", {key: value for key, value in data.items() if key != "role"}
    block = f"{_JSON}{json.dumps(fields, ensure_ascii=False, indent=2)}\n```"
    return f"{text}\n\n{block}" if text else block, "json "


def _data(role: str, body: str, *, has_json: bool) -> dict[str, Any]:
    """What `_body` wrote; where a person has broken the JSON, all of it is text."""
    if has_json:
        start = body.rfind(_JSON)
        try:
            fields = json.loads(body[start + len(_JSON) :].removesuffix("```"))
        except (ValueError, RecursionError):
            fields = None
        if start >= 0 and isinstance(fields, dict):
            text = body[:start].removesuffix("\n\n")
            return {"role": role, **({"content": _unfenced(role, text)} if text else {}), **fields}
    return {"role": role, "content": _unfenced(role, body)}


def _fenced(text: str) -> str:
    """What a tool says, in a fence that it can't close."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


def _unfenced(role: str, text: str) -> str:
    found = re.fullmatch(r"(`{3,})text\n(.*)\n\1", text, re.DOTALL) if role == "tool" else None
    return found[2] if found else text


def _quoted(id: str) -> str:
    return quote(id, safe=":@/+=,")
