"""What was said in conversations, found by its words. Floor 3, no input or output.

A session is indexed in pieces of some messages each, so that what is added costs its own piece only.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property

from mdmemory.files.journal import Message
from mdmemory.recall.entries import Document
from mdmemory.recall.ranking import LexicalIndex

MESSAGES_A_PIECE = 50
MAX_CHARS = 20_000  # of one message; who pastes a book finds its beginning
Piece = tuple[str, int]


class JournalIndex:
    """The messages of every session that was searched.

    Args:
        languages: whose endings search ignores.
    """

    def __init__(self, languages: tuple[str, ...]) -> None:
        self._languages = languages
        self._pieces: dict[Piece, Sequence[Message]] = {}
        self._lines: dict[Piece, list[int]] = {}

    @cached_property
    def _recall(self) -> LexicalIndex:
        """Made when a conversation is first searched: its tables take longer than a look at a folder."""
        return LexicalIndex(self._languages)

    def take(self, session: str, messages: Sequence[Message]) -> None:
        """Bring a session up to date; pieces that are as they were cost nothing."""
        parts = [messages[start : start + MESSAGES_A_PIECE] for start in range(0, len(messages), MESSAGES_A_PIECE)]
        for number, part in enumerate(parts):
            if self._pieces.get((session, number)) != part:
                self._put((session, number), part)
        number = len(parts)
        while self._pieces.pop((session, number), None):
            self._recall.remove(_key((session, number)))
            number += 1

    def rank(self, query: str, limit: int, is_wanted: Callable[[str, Message], bool]) -> list[tuple[str, Message, float]]:
        """The wanted messages that share words with the query, best first, each once.

        Args:
            is_wanted: tells of a session's id and a message whether it may be found.

        Returns:
            The session, the message and its score, 0 to 1 compared with the best passage.
        """
        by_key = {_key(piece): piece for piece, said in self._pieces.items() if any(is_wanted(piece[0], each) for each in said)}
        passages = 4 * limit
        while limit > 0:
            ranked = self._recall.rank_passages(query, limit=passages, allowed=by_key.keys())
            found: dict[tuple[str, str], tuple[str, Message, float]] = {}
            for passage in ranked:
                piece = by_key[passage.path]
                message = self._pieces[piece][bisect_right(self._lines[piece], passage.line) - 1]
                if is_wanted(piece[0], message):
                    found.setdefault((piece[0], message.id), (piece[0], message, passage.score))
            if len(found) >= limit or len(ranked) < passages:
                return list(found.values())[:limit]
            passages *= 8
        return []

    def _put(self, piece: Piece, messages: Sequence[Message]) -> None:
        lines: list[str] = []
        starts: list[int] = []
        for message in messages:
            starts.append(len(lines) + 1)
            lines += [f"## {message.role}", *message.text[:MAX_CHARS].split("\n"), ""]
        day = messages[0].at.date()
        self._recall.put(_key(piece), Document("\n".join(lines), day=day), int(messages[-1].at.timestamp() * 1e9))
        self._pieces[piece], self._lines[piece] = messages, starts


def _key(piece: Piece) -> str:
    return f"{piece[0]}#{piece[1]}"
