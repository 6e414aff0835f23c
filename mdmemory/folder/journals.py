"""The journals of a folder: what was said is added at their ends, and read from there on. Floor 3.

One commit adds messages, whatever the size of the file. What others added is known from the look at the folder, and only the bytes
behind what was parsed are read. Nothing is ever moved: the window of the last messages is a view.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from itertools import dropwhile, groupby
from typing import TypedDict, Unpack

from mdmemory.backends.paths import check
from mdmemory.backends.protocol import (
    ABSENT,
    Append,
    Backend,
    File,
    FileProblem,
    Op,
    Put,
    problem_error,
)
from mdmemory.errors import BackendError, InvalidArguments, Unavailable
from mdmemory.files.journal import MARK, Message, end_mark, entry_bytes, file_of, is_own_id, opening, session_of
from mdmemory.folder.catalog import Catalog
from mdmemory.folder.journal_file import ParsedJournal
from mdmemory.folder.journal_index import JournalIndex
from mdmemory.recall.filters import first_day
from mdmemory.render import estimate_tokens

logger = logging.getLogger("mdmemory")
MESSAGE_TOKENS = 12  # what a message takes besides its text


class JournalFilters(TypedDict, total=False):
    """What a search in conversations may be narrowed by.

    Args:
        sessions: only these; one as text, or several.
        after, before: days such as `2026-11-30` (included), months or years; UTC.
    """

    sessions: str | Collection[str]
    after: str | date
    before: str | date


@dataclass(frozen=True, slots=True)
class Said:
    """A message, and where it was said.

    Args:
        score: 0 to 1, compared with the best that a search found; None where nothing was searched.
    """

    session: str
    message: Message
    score: float | None = None


class Journals:
    """Every conversation of a folder, as of its last `refresh`.

    Args:
        catalog: tells which journals there are, and which have changed.
        languages: whose endings search ignores.
    """

    def __init__(self, backend: Backend, catalog: Catalog, languages: tuple[str, ...]) -> None:
        self._backend, self._catalog = backend, catalog
        self._parsed: dict[str, ParsedJournal] = {}
        self._own: dict[str, dict[str, Message]] = {}
        """By file, what was added here and not read since."""
        self._index = JournalIndex(languages)
        self._lock = asyncio.Lock()

    @property
    def sessions(self) -> list[str]:
        """The ids of all sessions, the one that changed last first."""
        return list(self._files())

    async def append(self, session: str, messages: Sequence[Message], about: Mapping[str, str] = {}) -> tuple[str, ...]:
        """Add messages in one commit; what is there already is left out.

        Args:
            about: more fields for the frontmatter of a new file, such as the user and the agent.

        Returns:
            What was not written, because another message has its id.

        Raises:
            InvalidPath: no file can be named after the session.
            Unavailable, UnsafeFile: nothing is known to be written; doing it again is safe.
        """
        if not self._catalog.scanned:
            raise Unavailable("the folder has not been looked at, so it is not known which conversations it holds")
        paths = self._files_of(session)
        known = {id: message for path in paths for id, message in self._own.get(path, {}).items()}
        if not all(is_own_id(message.id) for message in messages):
            known = {message.id: message for message in await self.messages(session)}
        new: dict[str, Message] = {}
        for message in messages:
            if message.id not in known:
                new[message.id] = known[message.id] = message
        if new:
            first = next(iter(new.values()))
            path = paths[-1] if paths else check(file_of(session, first.at))
            ops: list[Op] = [] if paths else [Put(path, opening(session, first, about), ABSENT, required=False)]
            await self._backend.commit(uuid.uuid4().hex, [*ops, *_appends(path, new.values())])
            if not paths:
                self._catalog.told([path])
                self._own.pop(path, None)  # of a file that was deleted
            self._own.setdefault(path, {}).update(new)
        others = [message.id for message in messages if known[message.id].data != message.data]
        return tuple(f"session {session} has another message {id}, which stays as it is" for id in others)

    async def messages(self, session: str) -> list[Message]:
        """All of a conversation, in order.

        Raises:
            Unavailable, UnsafeFile: it is there and can't be read.
        """
        return await self._messages(self._files_of(session))

    async def window(self, sessions: Sequence[str], k: int, max_tokens: int | None = None) -> list[Said]:
        """The last messages of these conversations, oldest first.

        Args:
            k: how many at most; answers of tools whose calls are further back are left out.
            max_tokens: how many estimated tokens they may take.

        Raises:
            Unavailable, UnsafeFile: a conversation is there and can't be read.
        """
        files = self._files()
        await self._read([path for session in sessions for path in files.get(session, ())])  # in one round trip
        said = [Said(session, message) for session in sessions for message in (await self._said(files.get(session, ())))[-k:]]
        if len(sessions) > 1:
            said.sort(key=lambda each: each.message.at)
        last = said[-k:] if k > 0 else []
        if max_tokens is not None:
            last = fitting(reversed(last), max_tokens)[::-1]
        return list(dropwhile(lambda each: _is_tool_answer(each.message), last))

    async def search(
        self, query: str, *, limit: int = 5, leave_out: Iterable[Said] = (), **filters: Unpack[JournalFilters]
    ) -> list[Said]:
        """Messages that share words with the query, best first; short ones have words of those beside them.

        Args:
            leave_out: messages that are known anyway.

        Raises:
            InvalidArguments: a date that is none.
        """
        is_allowed, sessions, files = _test(filters), self.chosen(filters), self._files()
        with suppress(BackendError):  # of which more below
            await self._read([path for session in sessions for path in files[session]])  # in one round trip
        for session in sessions:
            try:
                self._index.take(session, await self._said(files[session]))
            except BackendError as error:
                logger.warning("a conversation is left out of the search: %s", error)
        known = {(said.session, said.message.id) for said in leave_out}
        allowed = set(sessions)

        def is_wanted(session: str, message: Message) -> bool:
            return session in allowed and (session, message.id) not in known and is_allowed(message)

        return [Said(*found) for found in self._index.rank(query, limit, is_wanted)]

    def chosen(self, filters: JournalFilters) -> list[str]:
        """The sessions that filters allow.

        Raises:
            InvalidArguments: an unknown filter.
        """
        if unknown := set(filters) - set(JournalFilters.__annotations__):
            raise InvalidArguments(
                f"unknown filter {', '.join(sorted(unknown))}; there are {', '.join(JournalFilters.__annotations__)}"
            )
        chosen = filters.get("sessions")
        chosen = [chosen] if isinstance(chosen, str) else chosen
        return [session for session in self.sessions if chosen is None or session in chosen]

    def _files_of(self, session: str) -> list[str]:
        """The files of a session, oldest first: it has several when two processes began it in two months."""
        name = file_of(session, datetime.min).rpartition("/")[2]
        return sorted(path for path in self._catalog.journals if path.endswith(f"/{name}"))

    def _files(self) -> dict[str, list[str]]:
        """The files of every session, oldest first; the session that changed last is the first."""
        there, found = self._catalog.journals, defaultdict[str, list[str]](list)
        for path in sorted(there, key=lambda path: (-there[path].mtime_ns, path)):
            if (session := session_of(path)) is not None:
                found[session].append(path)
        return {session: sorted(paths) for session, paths in found.items()}

    async def _said(self, paths: Sequence[str]) -> list[Message]:
        """The messages without the marks of how far memories were drawn from them."""
        return [message for message in await self._messages(paths) if message.role != MARK]

    async def _messages(self, paths: Sequence[str]) -> list[Message]:
        await self._read(paths)
        found: dict[str, Message] = {}
        for path in paths:
            parsed = self._parsed[path].messages.values() if path in self._parsed else ()
            for message in (*parsed, *self._own.get(path, {}).values()):
                found.setdefault(message.id, message)
        return list(found.values())

    async def _read(self, paths: Sequence[str]) -> None:
        """Read what is new in these files."""
        async with self._lock:
            looks = {path: self._catalog.journals[path] for path in paths if path in self._catalog.journals}
            left = [path for path, look in looks.items() if self._parsed.setdefault(path, ParsedJournal()).is_older_than(look)]
            while left:
                found = await self._backend.read({path: self._parsed[path].wanted for path in left})
                left = [path for path in left if self._take(path, found[path])]
            for path, look in looks.items():
                if path in self._parsed:
                    self._parsed[path].seen = look

    def _take(self, path: str, found: File | FileProblem) -> bool:
        """Take in what was read of a file, and return whether there is more."""
        if isinstance(found, FileProblem):
            if found.kind != "absent":
                raise problem_error(path, found)
            for known in (self._catalog.journals, self._parsed, self._own):
                known.pop(path, None)
            return False
        parsed = self._parsed[path]
        reported = len(parsed.torn)
        more = parsed.take(found)
        for what in list(parsed.torn)[reported:]:
            logger.warning("%s: %s; it is passed over", path, what)
        left = {id: message for id, message in self._own.pop(path, {}).items() if id not in parsed.messages}
        if left:
            self._own[path] = left
        return more


def fitting(said: Iterable[Said], max_tokens: int) -> list[Said]:
    """The first of these messages that fit into so many estimated tokens."""
    found = []
    for each in said:
        max_tokens -= MESSAGE_TOKENS + estimate_tokens(each.message.text)
        if max_tokens < 0:
            break
        found.append(each)
    return found


def _appends(path: str, messages: Iterable[Message]) -> Iterator[Append]:
    """Those whose ids nobody else can have go together: when the last of them is there, all are."""
    for own, group in groupby(messages, key=lambda message: is_own_id(message.id)):
        together = list(group)
        for part in [together] if own else [[message] for message in together]:
            yield Append(path, b"".join(map(entry_bytes, part)), end_mark(part[-1].id))


def _is_tool_answer(message: Message) -> bool:
    content = message.data.get("content")
    parts = content if isinstance(content, list) else []
    return message.role == "tool" or any(isinstance(part, dict) and part.get("type") == "tool_result" for part in parts)


def _test(filters: JournalFilters) -> Callable[[Message], bool]:
    after = first_day(filters["after"], "after") if "after" in filters else date.min
    before = first_day(filters["before"], "before", last=True) if "before" in filters else date.max
    return lambda message: after <= message.at.date() <= before
