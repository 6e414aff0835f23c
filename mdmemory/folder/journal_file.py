"""What is known of one journal's file: parsed up to its last whole entry, and read from there on. Floor 3, no input or output."""

from __future__ import annotations

from dataclasses import dataclass, field

from mdmemory.backends.protocol import MAX_FILE_BYTES, Entry, File, Range
from mdmemory.files.journal import Message, parse

OVERLAP_BYTES = 64  # read again before what is new, to see that what was parsed still stands there


@dataclass(slots=True)
class ParsedJournal:
    """What is known of one file.

    Args:
        seen: the look at the folder after which it was read.
        end: where its last whole entry ends; `tail` are the bytes before that.
        rest: what follows, while only a part of the file has been read.
        state: the file's size and time when a part of it was last read.
    """

    seen: Entry | None = None
    end: int = 0
    tail: bytes = b""
    rest: bytes = b""
    state: tuple[int, int] = (0, 0)
    messages: dict[str, Message] = field(default_factory=dict)
    torn: dict[str, None] = field(default_factory=dict)

    def is_older_than(self, look: Entry) -> bool:
        """Whether the file may have changed since it was read; a look that is not sure of the version counts once."""
        return look is not self.seen and not (self.seen and look.version and look.version == self.seen.version)

    @property
    def wanted(self) -> Range:
        """The part to read next."""
        return Range(self.end - len(self.tail) + len(self.rest), MAX_FILE_BYTES)

    def take(self, file: File) -> bool:
        """Take in the part that was `wanted`, and return whether there is more."""
        start, data = self.wanted.start, self.rest + file.data
        state, self.state = self.state, (file.size, file.mtime_ns)
        is_changed = state[0] == file.size and state != self.state  # by a person: what is appended makes a file grow
        if is_changed or file.size < self.end or not data.startswith(self.tail):
            self.end, self.tail, self.rest = 0, b"", b""
            self.messages.clear()
            self.torn.clear()
            return True
        found = parse(data[len(self.tail) :])
        for message in found.messages:
            self.messages.setdefault(message.id, message)
        more = start + len(file.data) < file.size
        self.torn |= dict.fromkeys(found.torn[:-1] if more else found.torn)  # the last may be cut by where the part ends
        parsed = len(self.tail) + found.end
        self.end += found.end
        self.tail = data[max(0, parsed - OVERLAP_BYTES) : parsed]
        self.rest = data[parsed - len(self.tail) :] if more else b""
        return more
