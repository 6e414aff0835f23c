"""open_memory and Memory: the front door. Floor 5."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Unpack

from mdmemory.agent.context import Context, Order, Wanted, make_context
from mdmemory.agent.session import Session
from mdmemory.agent.tools import Mode, Toolset
from mdmemory.agent.wake_up import make_wake_up
from mdmemory.agent.write_back import When
from mdmemory.config import Config
from mdmemory.errors import ConfigError, InvalidPath
from mdmemory.files.changes import Delete
from mdmemory.files.facts import Fact
from mdmemory.folder.any_folder import Folder, in_stage
from mdmemory.folder.facts import Event, Facts
from mdmemory.folder.journals import JournalFilters
from mdmemory.folder.mounts import Mount
from mdmemory.folder.opening import Location, open_folder
from mdmemory.folder.permissions import Confirm, Policy, allow_all
from mdmemory.models import Model, model_from_string
from mdmemory.recall.filters import Filters
from mdmemory.recall.ranking import Match
from mdmemory.settings import Settings, read_settings

if TYPE_CHECKING:
    from mdmemory.care.consolidate import Report

logger = logging.getLogger("mdmemory")
WIDE = 50  # matches looked at for those above a score: the order is by more than that


class Memory:
    """An open memory; made by `open_memory`.

    Args:
        folder: its files, index and history.
    """

    def __init__(self, folder: Folder, model: Model | None = None, mode: Mode = "both", write_back: When = "background") -> None:
        self._mode, self._write_back = mode, write_back
        self.folder = folder
        self.model = model
        self._facts = Facts(folder)
        self._sessions: dict[str, Session] = {}

    @cached_property
    def tools(self) -> Toolset:
        """Read, Write, Edit, Delete, Search and Add outside of any session."""
        return Toolset(self.folder, "agent:")

    def session(
        self,
        id: str | None = None,
        *,
        user: str | None = None,
        agent: str | None = None,
        stage: str | None = None,
        mode: Mode | None = None,
        write_back: When | None = None,
    ) -> Session:
        """The conversation with this id, begun now if it is new or was closed; without an id, a new one.

        Args:
            user, agent: who takes part, as its journal then says.
            stage: of the work: mounts that are silent in it give no hints and stand in no index.
            mode: hints (`auto`), the tool Search (`agent`) or both; None for what the configuration file says, else both.
            write_back: whether the model draws memories from what was said: `off`, `awaited` by `turn.finish`, or in the
                `background`, which is the default; see docs/conversations.md. Without a model nothing is drawn.

        Raises:
            InvalidPath: its journal can't be named after the id.
            InvalidArguments: there is no such stage.
        """
        key = id or uuid.uuid4().hex[:12]
        if key not in self._sessions:
            about = {name: value for name, value in (("user", user), ("agent", agent)) if value}
            chosen, when = mode or self._mode, write_back or self._write_back
            self._sessions[key] = Session(key, in_stage(self.folder, stage), self.model, self._let_go, about, chosen, when)
        return self._sessions[key]

    def _let_go(self, session: Session) -> None:
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]

    async def search(
        self, query: str, *, limit: int = 10, min_score: float = 0.0, stage: str | None = None, **filters: Unpack[Filters]
    ) -> list[Match]:
        """Memory files that share words with the query, best first.

        Args:
            min_score: only files that cover at least this share (0-1) of the query.
            stage: of the work: mounts that are silent in it are not searched.
            filters: `type`, `path`, `mount`, `tags`, `after`, `before`, `as_of`, `where`; see `mdmemory.recall.filters.Filters`.

        Raises:
            InvalidArguments: a filter, a mount or a stage that there is not.
            Unavailable: the folder can't be looked at.
        """
        folder = in_stage(self.folder, stage)
        await folder.refresh()
        matches = await folder.search(query, limit=max(limit, WIDE) if min_score else limit, **filters)
        return [match for match in matches if match.score >= min_score][: max(0, limit)]

    async def clear(self, path: str, *, author: str = "person", reason: str = "clear") -> int:
        """Delete every memory file of a scope: all below a folder, or in a mount. What they said stays in the history.

        Args:
            path: such as `users/alice` or the prefix of a mount; `.` is everything in a memory without mounts.

        Returns:
            How many there were.

        Raises:
            Conflict, InvalidPath, PermissionDenied, Unavailable, UnsafeFile: nothing was deleted.
        """
        await self.folder.refresh()
        below = f"{path.removeprefix('./').rstrip('/')}/"
        if below == "./" and self.folder.places:
            raise InvalidPath("Several folders are mounted here, so . would be everybody's: name the folder or the mount to clear.")
        paths = [each for each in self.folder.files if below == "./" or each.startswith(below)]
        if paths:
            await self.folder.apply([Delete(each) for each in paths], author, reason)
        return len(paths)

    async def context(
        self,
        query: str | None = None,
        *,
        session: str | None = None,
        k: int | None = None,
        top_k: int = 5,
        max_tokens: int | None = None,
        order: Order = "time",
        **filters: Unpack[JournalFilters],
    ) -> Context:
        """The last messages of conversations, and older ones that share words with the query: `str(context)` is for the model.

        Args:
            query: what to look for among older messages; None leaves them out.
            session: the conversation whose last messages are the window; None takes all that `filters` allow.
            k: messages in the window (default `config.window_messages`).
            top_k: older messages at most.
            max_tokens: what all of it may take, estimated (default `config.window_tokens`).
            order: of the older messages: `time`, `score`, or a model that chooses and orders them.
            filters: `sessions`, `after`, `before`; see `mdmemory.folder.journals.JournalFilters`.

        Raises:
            InvalidArguments: a filter or an order that there is not.
            Unavailable, UnsafeFile: the folder can't be looked at, or a conversation can't be read.
        """
        await self.folder.refresh()
        return await make_context(self.folder, Wanted(query, session, k, top_k, max_tokens, order), filters)

    async def facts(
        self,
        subject: str | None = None,
        predicate: str | None = None,
        object: str | None = None,
        *,
        as_of: str | date | None = None,
    ) -> list[Fact]:
        """What lines such as `- works at:: [[Acme]] (2024-01 → 2025-03)` say; see docs/facts.md.

        Args:
            subject, object: a file's path, name or alias; an object may also be any text.
            as_of: the day on which it must hold, such as `2024-05-17`, or the first of a month or a year; today by default.

        Raises:
            InvalidArguments: a name that could mean several files, or no day.
            Unavailable: the folder can't be looked at.
        """
        await self.folder.refresh()
        return await self._facts.find(subject, predicate, object, as_of)

    async def timeline(self, entity: str, *, as_of: str | date | None = None) -> list[Event]:
        """Facts about an entity, its versions and the files that speak of it, in the order of time.

        Args:
            entity: a file's path, name or alias, or a name that only links, tags and facts use.
            as_of: a day; only what held then.

        Raises:
            InvalidArguments: a name that could mean several files, or no day.
            Unavailable: the folder can't be looked at.
        """
        await self.folder.refresh()
        return await self._facts.timeline(entity, as_of)

    async def wake_up(self, tokens: int = 600) -> str:
        """What to know before the first message: who the user is and what helps most, as text for the model.

        Args:
            tokens: what it may take, estimated.

        Raises:
            Unavailable: the folder can't be looked at.
        """
        await self.folder.refresh()
        return await make_wake_up(self.folder, tokens)

    async def consolidate(self, *, limit: int = 20) -> Report:
        """Have the model propose what becomes of files that say much the same; see docs/consolidation.md.

        Args:
            limit: how many groups of files it is asked about.

        Returns:
            What was found, and what waits for a person now; without a model, nothing is proposed.

        Raises:
            PermissionDenied, ModelUnavailable, InvalidArguments, Unavailable: what was proposed until then waits.
        """
        from mdmemory.care.consolidate import consolidate  # which few programs need

        return await consolidate(self.folder, self.model, limit=limit)

    @property
    def is_busy(self) -> bool:
        """Whether a session still chooses, writes or draws memories from what was said."""
        return any(session.is_busy for session in self._sessions.values())

    async def close(self) -> None:
        """End every session and close the backend."""
        for session in list(self._sessions.values()):
            await session.close()
        await self.folder.close()


@asynccontextmanager
async def open_memory(
    location: Location | None = None,
    *,
    mounts: Mapping[str, Mount] | None = None,
    model: Model | str | None = None,
    config: Config | str | os.PathLike[str] | None = None,
    policy: Policy = allow_all,
    confirm: Confirm | None = None,
) -> AsyncIterator[Memory]:
    """Open a memory: `async with open_memory("~/memory") as memory:`.

    Args:
        location: a folder's path, a `file://`, `memory://`, `docker://`, `e2b://` or `postgres://` URL, or a backend.
        mounts: other folders by the prefix under which they are seen, such as `{"team/": Mount("/srv/team")}`.
        model: chooses the files for hints, and says what of a conversation is to be remembered: a callable, or a string such as
            `openai:gpt-x`; None leaves hints to lexical recall, and remembering to the agent.
        config: settings, or the path of a YAML file with them: see docs/configuration.md. What else is given here goes before it.
        policy: says which changes are allowed, asked about or denied; `read_only` denies all.
        confirm: asks a person about a change whose policy says `ask`.

    Raises:
        ConfigError: a location, the model or the file can't be used.
    """
    settings = Settings(config=config or Config()) if config is None or isinstance(config, Config) else read_settings(config)
    place, model = settings.location if location is None else location, settings.model if model is None else model
    if place is None:
        raise ConfigError("Which folder? Give a location, or a configuration file that names one.")
    chosen = model_from_string(model) if isinstance(model, str) else model
    folder = open_folder(place, {**settings.mounts, **(mounts or {})}, settings.config, policy, confirm)
    memory = Memory(folder, chosen, settings.mode, settings.write_back)
    try:
        await memory.folder.recover()
        yield memory
    finally:
        await memory.close()
        if isinstance(model, str) and (close := getattr(chosen, "close", None)):
            await close()
