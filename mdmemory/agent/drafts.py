"""From suggestions to changes: each checked against what is there, what was forgotten, and what is secret. Floor 4, writes nothing.

Every outcome has a status. What can't be done as suggested is done so that nothing is lost: an `add` to a file that is there is
appended to it, an `update` of what was never seen is a new file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, Literal

from mdmemory.agent.adding import DEFAULT_TYPE, free_path
from mdmemory.agent.selector import resolve_name
from mdmemory.agent.suggestions import Suggestion
from mdmemory.agent.waiting import NOTHING, Waiting
from mdmemory.backends.paths import fault
from mdmemory.backends.protocol import etag_of
from mdmemory.errors import InvalidMemoryFile, InvalidPath
from mdmemory.files.changes import Change, Create, Replace
from mdmemory.files.history import Forgotten
from mdmemory.files.journal import Message
from mdmemory.files.memory_file import MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS, decode, encode, new_file, parse, set_field
from mdmemory.files.naming import shortened, slug
from mdmemory.files.secrets import redact
from mdmemory.folder.any_folder import Folder
from mdmemory.folder.known import is_memory_path

Status = Literal["created", "updated", "superseded", "existing", "dropped"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one suggestion.

    Args:
        path: the file that says it now; of what was dropped, the one suggested.
        reason: why it is worth keeping, or why it was dropped.
        proposal: the id of the proposal that waits for a person with it; "" when nothing waits.
    """

    status: Status
    path: str
    reason: str
    proposal: str = ""


@dataclass(frozen=True, slots=True)
class Ground:
    """What suggestions are judged by.

    Args:
        session: names the conversation in `source`.
        messages: those that the model saw, the first as number 1.
        files: the memory files it saw, as they are now.
        cut: those of them that it saw in part.
        sources: the entries that memory files named as their source before.
        waiting: what waits for a person, which counts as if it were saved: it is in `files`, its entries in `sources`.
    """

    folder: Folder
    session: str
    messages: Sequence[Message]
    files: Mapping[str, bytes]
    cut: frozenset[str]
    sources: frozenset[str]
    forgotten: Forgotten
    waiting: Waiting = NOTHING

    def said(self, suggestion: Suggestion) -> list[Message]:
        """The messages that say it."""
        return [self.messages[number - 1] for number in suggestion.sources if 0 < number <= len(self.messages)]

    def entry(self, message: Message) -> str:
        """A message as `source` names it."""
        return f"{self.session}#{message.id}"


@dataclass(slots=True)
class Drafts:
    """The changes that the suggestions of one reply come to."""

    ground: Ground
    outcomes: list[Outcome] = field(default_factory=list)
    _written: dict[str, bytes] = field(default_factory=dict)

    @property
    def changes(self) -> list[Change]:
        """One change a file."""
        files = self.ground.files
        return [
            Replace(path, data, etag_of(files[path]), files[path]) if path in files else Create(path, data)
            for path, data in self._written.items()
        ]

    @property
    def written(self) -> Mapping[str, bytes]:
        """What each changed file is to hold."""
        return dict(self._written)

    def take_back(self, written: Mapping[str, bytes], why: str) -> None:
        """Drop the last suggestion: what each file was to hold before it, and why it can't be done."""
        self._written = dict(written)
        self.outcomes[-1] = Outcome("dropped", self.outcomes[-1].path, why)

    def add(self, suggestion: Suggestion) -> None:
        """Take in a suggestion."""
        before = dict(self._written)
        suggestion, kinds = self._without_secrets(suggestion)
        if kinds and self.ground.folder.config.secrets == "refuse":
            self.outcomes.append(Outcome("dropped", suggestion.path, f"it holds a secret ({', '.join(kinds)})"))
            return
        try:
            self.outcomes.append(self._judged(suggestion))
        except (InvalidMemoryFile, InvalidPath) as error:  # this one can't be written; the others can
            self._written = before
            self.outcomes.append(Outcome("dropped", suggestion.path, str(error)))

    def _judged(self, suggestion: Suggestion) -> Outcome:
        messages = self.ground.said(suggestion)
        path = suggestion.path.strip().removeprefix("./")
        if suggestion.action != "add":  # which names a file that is there, more or less
            there = self.ground.folder.files.keys() | self.ground.waiting.files.keys() | self._written.keys()
            path = resolve_name(path, there) or path
        if suggestion.action == "none":
            return Outcome("existing", path, suggestion.reason)
        if all(message.role == "assistant" for message in messages):
            return Outcome("dropped", path, "no message of the user or of a tool says it")
        entries = list(dict.fromkeys(map(self.ground.entry, messages)))
        if not self.ground.forgotten.sources.isdisjoint(entries):
            return Outcome("dropped", path, "what it was drawn from was forgotten")
        if self.ground.sources.issuperset(entries):
            return Outcome("existing", path, "it was drawn from these messages before")
        if self.ground.forgotten.covers(path, suggestion.name, max(message.at for message in messages)):
            return Outcome("dropped", path, "it was forgotten, and has not been said since")
        return self._drafted(suggestion, path, entries, max(message.at for message in messages).date().isoformat())

    def _without_secrets(self, suggestion: Suggestion) -> tuple[Suggestion, list[str]]:
        keys = ("path", "name", "description", "body", "reason")
        fields = {key: without_secrets(self.ground.folder, getattr(suggestion, key)) for key in keys}
        kinds = sorted({kind for _, found in fields.values() for kind in found})
        clean: dict[str, Any] = {key: "" if key == "path" else text for key, (text, found) in fields.items() if found}
        return replace(suggestion, **clean), kinds

    def _drafted(self, suggestion: Suggestion, path: str, entries: Sequence[str], day: str) -> Outcome:
        current = {**self.ground.files, **self._written}
        words = _folded(suggestion.body)
        same = next((other for other, data in current.items() if words and words == _folded(_body(other, data))), None)
        if same is not None:
            return Outcome("existing", same, "a file says the same")
        old = resolve_name(suggestion.replaces, current.keys()) or path
        if suggestion.action == "supersede" and old in current:
            return self._superseded(suggestion, old, entries, day)
        if path in current and (parse(path, current[path]).header.fields or {}):
            whole = suggestion.action == "update" and path not in self.ground.cut
            self._written[path] = _updated(path, current[path], suggestion, entries, whole=whole)
            return Outcome("updated", path, suggestion.reason)
        return Outcome("created", self._new(suggestion, entries), suggestion.reason)

    def _superseded(self, suggestion: Suggestion, old: str, entries: Sequence[str], day: str) -> Outcome:
        data = self._written.get(old, self.ground.files.get(old, b""))
        header = parse(old, data).header
        if header.fields and not header.valid_until:
            self._written[old] = set_field(old, data, "valid_until", day)
        kind = suggestion.type or (header.type or "" if header.type in self.ground.folder.types else "")
        path = self._new(replace(suggestion, type=kind), entries, supersedes=old, day=day)
        return Outcome("superseded", path, suggestion.reason)

    def _new(self, suggestion: Suggestion, entries: Sequence[str], *, supersedes: str = "", day: str = "") -> str:
        """Draft a new file, and say where."""
        kind = suggestion.type or DEFAULT_TYPE
        name = shortened(suggestion.name, MAX_NAME_CHARS) or shortened(suggestion.body, 60)
        fields = {"supersedes": supersedes, "valid_from": day} if supersedes else {}
        description = shortened(suggestion.description, MAX_DESCRIPTION_CHARS) or name
        data = new_file(name, description, kind, suggestion.body, **fields, source=_one_or_list(entries))
        wanted = suggestion.path.strip().removeprefix("./")
        wanted = wanted if fault(wanted) is None and is_memory_path(wanted) else f"{kind}/{slug(name)}.md"
        stem = PurePosixPath(wanted).with_suffix("").as_posix()
        path = free_path(self.ground.folder, stem, data, taken={*self.ground.waiting.files, *self._written})
        self._written[path] = data
        return path


def without_secrets(folder: Folder, text: str) -> tuple[str, list[str]]:
    """The text without secrets, unless the settings keep them, and the kinds that were found."""
    return (text, []) if folder.config.secrets == "keep" else redact(text)


def _updated(path: str, data: bytes, suggestion: Suggestion, entries: Sequence[str], *, whole: bool) -> bytes:
    """The file with its new body, or with the new body below the old one, and with what else the suggestion says of it."""
    file = parse(path, data)
    for key, text, limit in (
        ("name", suggestion.name, MAX_NAME_CHARS),
        ("description", suggestion.description, MAX_DESCRIPTION_CHARS),
    ):
        if whole and text.strip() and text != getattr(file.header, key):
            data = set_field(path, data, key, shortened(text, limit))
    data = set_field(path, data, "source", _one_or_list(list(dict.fromkeys([*file.header.source, *entries]))))
    text, newline = decode(path, data), "\r\n" if "\r\n" in file.body else "\n"
    head, old = text[: len(text) - len(file.body)], file.body.rstrip()
    body = newline.join(re.split(r"\r?\n", suggestion.body.strip()))
    start = file.body[: len(file.body) - len(file.body.lstrip("\r\n"))] or newline
    return encode(path, f"{head}{start if whole else f'{old}{newline}{newline}'}{body}{newline}")


def _one_or_list(entries: Sequence[str]) -> str | Sequence[str]:
    return entries[0] if len(entries) == 1 else entries


def _body(path: str, data: bytes) -> str:
    try:
        return parse(path, data).body
    except InvalidMemoryFile:
        return ""


def _folded(text: str) -> str:
    """The words of a text, for telling that two say the same."""
    return " ".join(re.findall(r"\w+", text.casefold()))
