"""A session: one conversation on a memory. It owns what outlasts a turn: what was shown and said, the prompt. Floor 4."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, get_args

from mdmemory.agent.hints import Hint
from mdmemory.agent.instructions import instructions
from mdmemory.agent.selector import Message
from mdmemory.agent.tools import Mode, Seen
from mdmemory.agent.turn import Turn
from mdmemory.agent.write_back import When, WriteBack, WriteBackStatus
from mdmemory.backends.paths import check
from mdmemory.backends.protocol import shielded
from mdmemory.errors import ConfigError, MdmemoryError, Unavailable
from mdmemory.files.index import render_line
from mdmemory.files.journal import Message as JournalMessage
from mdmemory.files.journal import file_of
from mdmemory.folder.any_folder import Folder
from mdmemory.models import Model

logger = logging.getLogger("mdmemory")
OnClose = Callable[["Session"], None]
QUERY_MESSAGES = 6  # the last messages that selection looks at
MAX_NEWS_LINES = 10
MAX_GIVEN = 100


class Session:
    """One conversation; made by `memory.session(id)`.

    Args:
        id: names the conversation in the history.
        model: chooses files for hints, which without it is left to lexical recall, and says what is to be remembered.
        on_close: is told when the session is closed.
        about: what its journal says of it besides its id, such as the user and the agent.
        mode: whether the agent is given hints, the tool Search, or both.
        write_back: whether memories are drawn from what was said: `off`, `awaited` by `turn.finish`, or in the `background`.

    Raises:
        InvalidPath: its journal can't be named after the id.
        ConfigError: there is no such mode or write-back.
    """

    def __init__(
        self,
        id: str,
        folder: Folder,
        model: Model | None = None,
        on_close: OnClose | None = None,
        about: Mapping[str, str] = {},
        mode: Mode = "both",
        write_back: When = "background",
    ) -> None:
        if mode not in get_args(Mode) or write_back not in get_args(When):
            raise ConfigError('mode is "auto", "agent" or "both"; write_back is "off", "awaited" or "background"')
        self.id = id
        self.folder = folder
        self.model = model
        self.mode: Mode = mode
        if self.is_journaled:
            check(file_of(id, datetime.now(UTC)))
        self.write_back = WriteBack(folder, id, model, write_back)
        self._on_close = on_close
        self.seen = Seen()
        self.shown: dict[str, str] = {}
        """The etag of each file that hints brought."""
        self.given: deque[str] = deque(maxlen=MAX_GIVEN)
        """The hints and prompts, which are no part of what was said."""
        self._about = about
        self._unwritten: list[JournalMessage] = []
        self._writing = asyncio.Lock()
        self._messages: deque[Message] = deque(maxlen=QUERY_MESSAGES)
        self._prompt: str | None = None
        self._prompt_paths: frozenset[str] = frozenset()
        self._news_mark = self._thaw_mark = 0
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def is_journaled(self) -> bool:
        """Whether what is said is kept; not in a folder opened as read-only."""
        return self.folder.config.journal and not self.folder.is_read_only

    def turn(self, text: str, id: str | None = None) -> TurnStart:
        """Begin a turn with the user's message: `turn = await session.turn(text)`, or `async with session.turn(text) as turn:`.

        Args:
            id: names the turn, such as `monday-1`; when a turn comes again, the journal keeps what it has under its id.
        """
        return TurnStart(Turn(self, text, id))

    async def messages(self, k: int | None = None) -> list[JournalMessage]:
        """The last messages of the conversation, tool calls and results included, to go on with: `[m.data for m in …]`.

        Args:
            k: how many at most (default `config.window_messages`); `config.window_tokens` holds too.

        Raises:
            Unavailable, UnsafeFile: the journal is there and can't be read.
        """
        config = self.folder.config
        await self.folder.refresh()
        window = await self.folder.journals.window([self.id], config.window_messages if k is None else k, config.window_tokens)
        return [said.message for said in window]

    async def write(self, messages: Sequence[JournalMessage] = ()) -> str | None:
        """Add messages to the journal, with those that could not be written before.

        Returns:
            What stood in the way: then they are kept for the next time. None when all is well.
        """
        self._unwritten += messages  # at once: who is cancelled while others write has lost nothing
        async with self._writing:
            return await shielded(self._write_all())

    async def _write_all(self) -> str | None:
        if not (batch := tuple(self._unwritten)):
            return None
        try:
            others = await self.folder.journals.append(self.id, batch, self._about)
        except MdmemoryError as error:
            logger.warning("%d messages are not in the journal yet: %s", len(batch), error)
            return f"the conversation is not in the journal yet, and is written as soon as that works: {error}"
        del self._unwritten[: len(batch)]
        return "; ".join(others) or None

    @property
    def status(self) -> WriteBackStatus:
        """What was drawn from the conversation, and what went wrong."""
        return self.write_back.status

    async def prompt(self) -> str:
        """Instructions and index; the same text until a file it names is forgotten.

        Raises:
            Unavailable: the folder was never looked at; it is not known to be empty.
        """
        if self._prompt is None:
            if not self.folder.scanned:
                raise Unavailable("the memory could not be looked at, so nothing is known of what is in it")
            text = await instructions(self.folder)
            self._prompt_paths = frozenset(self.folder.files)
            self._news_mark = self._thaw_mark = self.folder.change_mark
            self._prompt = text
            self.given.append(text)
        return self._prompt

    def thaw_if_forgotten(self) -> None:
        """Have the prompt rendered anew when a file it may name is gone: what was deleted must not go on speaking."""
        changed, self._thaw_mark = self.folder.changes_since(self._thaw_mark), self.folder.change_mark
        if any(path in self._prompt_paths and path not in self.folder.files for path in changed):
            self._prompt = None
            self._prompt_paths = frozenset()

    def index_news(self) -> str:
        """Index lines of files that others changed since the prompt was rendered, each change once."""
        if self._prompt is None:
            return ""
        unsaid = self.folder.outdated | self.seen.written
        changed = [path for path in self.folder.changes_since(self._news_mark) if path in self.folder.listed and path not in unsaid]
        lines = [line for path in changed if (line := render_line(path, self.folder.listed[path])) not in self._prompt]
        more = [f"… and {len(lines) - MAX_NEWS_LINES} more"] if len(lines) > MAX_NEWS_LINES else []
        return "\n".join([*lines[:MAX_NEWS_LINES], *more])

    def is_news(self, path: str) -> bool:
        """Whether a file was not shown yet, or has changed since."""
        known = self.folder.files.get(path)
        return known is None or path not in self.shown or self.shown[path] != known.etag

    def told(self, hint: Hint) -> None:
        """Note what a hint brought, so that it comes only once."""
        self.shown.update((file.path, file.etag) for file in hint.files)
        self._news_mark = self.folder.change_mark
        self.given.append(hint.text)

    def compacted(self) -> None:
        """Tell that the host shortened its context: files may be shown again, and the prompt is rendered anew."""
        self.shown.clear()
        self._prompt = None

    def remember(self, role: str, text: str) -> Sequence[Message]:
        """Add a message to the conversation, and return its last few."""
        self._messages.append(Message(role, text))
        return tuple(self._messages)

    @property
    def is_busy(self) -> bool:
        """Whether something runs for it, or waits to be written."""
        return bool(self._tasks or self._unwritten or self.write_back.is_running)

    def own(self, task: asyncio.Task[Any]) -> None:
        """Keep hold of a turn's task, so that `close` can end it."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End what is still running, after memories that are being drawn from what was said; closing twice is fine."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self.write()
        await self.write_back.drain()
        if self._on_close:
            self._on_close(self)


class TurnStart:
    """What `session.turn(text)` returns: awaited it gives the turn; with `async with` the turn also ends with the block."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    def __await__(self) -> Generator[Any, None, Turn]:
        return self._turn.start().__await__()

    async def __aenter__(self) -> Turn:
        return await self._turn.start()

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self._turn.cancel()
