"""What an import comes to before any folder is looked at: files, conversations, and what has no place here. Floor 4."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256

from mdmemory.backends.paths import check, collision_key
from mdmemory.errors import InvalidArguments, InvalidMemoryFile, InvalidPath
from mdmemory.files.changes import Create
from mdmemory.files.journal import Message, file_of, new_message
from mdmemory.files.memory_file import parse
from mdmemory.files.naming import slug
from mdmemory.folder.known import is_memory_path
from mdmemory.folder.settle import check_change


@dataclass(frozen=True, slots=True)
class Left:
    """What is not imported.

    Args:
        where: its path or key in the source.
    """

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class Utterance:
    """A message as an export has it."""

    id: str
    at: datetime | None
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation, ready for the journal.

    Args:
        source: names it in the source, such as `chatgpt:6f0d…`.
    """

    session: str
    source: str
    title: str
    messages: tuple[Message, ...]


@dataclass(slots=True)
class Plan:
    """What an export holds.

    Args:
        files: by a key that names each in the source and stays the same from one export to the next.
        conversations: by session.
    """

    files: dict[str, Create] = field(default_factory=dict)
    conversations: dict[str, Conversation] = field(default_factory=dict)
    left: list[Left] = field(default_factory=list)
    _taken: dict[str, str] = field(default_factory=dict)

    def leave(self, where: str, reason: str) -> None:
        """Report what is not imported."""
        self.left.append(Left(where, reason))

    def is_taken(self, path: str) -> bool:
        """Whether a file of the plan has this path, or one that looks like it."""
        return collision_key(path) in self._taken

    def free_path(self, key: str, path: str, id: str) -> str:
        """A path for a file, with something of its id when another file of the plan has the one that was wanted."""
        if key in self.files or not self.is_taken(path):
            return path
        stem = path.removesuffix(".md")
        short = f"{stem}-{slug(id)[:8]}.md"
        return f"{stem}-{sha256(key.encode(errors='surrogatepass')).hexdigest()[:16]}.md" if self.is_taken(short) else short

    def add(self, key: str, path: str, data: bytes) -> None:
        """Take in a file, or report why no memory may have it."""
        change = Create(path, data)
        try:
            check_change(change)
            if is_memory_path(path):
                parse(path, data)
        except (InvalidMemoryFile, InvalidPath) as error:
            self.leave(key, str(error))
            return
        if key in self.files:
            self.leave(key, "it stands twice in the source; the first one counts")
        elif self.is_taken(path):
            self.leave(key, f"it would be taken for {self._taken[collision_key(path)]}, which comes too")
        else:
            self._taken[collision_key(path)] = path
            self.files[key] = change

    def converse(self, kind: str, id: str, title: str, said: Iterable[Utterance]) -> None:
        """Take in a conversation, and report those of its messages that no journal can hold.

        Args:
            kind: whose it is; with the id it names the session, as in `chatgpt-6f0d…`.
        """
        source, session = f"{kind}:{id}", f"{kind}-{id}"
        if session in self.conversations:
            self.leave(source, "it stands twice in the source; the first one counts")
            return
        messages: dict[str, Message] = {}
        for each in said:
            where = f"{source}#{each.id}"
            if each.at is None:
                self.leave(where, "nothing says when it was said")
                continue
            try:
                message = new_message({"role": each.role, "content": each.text}, each.id, each.at)
            except InvalidArguments as error:
                self.leave(where, str(error))
                continue
            if messages.setdefault(message.id, message) is not message:
                self.leave(where, "another message of the conversation has its id")
        if not messages:
            self.leave(source, "no message in it can be imported")
            return
        try:
            check(file_of(session, next(iter(messages.values())).at))
        except InvalidPath as error:
            self.leave(source, str(error))
            return
        self.conversations[session] = Conversation(session, source, title, tuple(messages.values()))
