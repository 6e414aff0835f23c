"""open_memory and Memory: the front door. Floor 5."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Unpack
from urllib.parse import unquote, urlsplit

from mdmemory.agent.context import Context, Order, Wanted, make_context
from mdmemory.agent.session import Session
from mdmemory.agent.tools import Mode, Toolset
from mdmemory.agent.wake_up import make_wake_up
from mdmemory.agent.write_back import When
from mdmemory.backends.protocol import Backend
from mdmemory.config import Config
from mdmemory.errors import ConfigError
from mdmemory.files.facts import Fact
from mdmemory.folder.facts import Event, Facts
from mdmemory.folder.journals import JournalFilters
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.permissions import Confirm, Policy, allow_all
from mdmemory.models import Model, model_from_string
from mdmemory.recall.cache import Cache, open_cache
from mdmemory.recall.filters import Filters
from mdmemory.recall.ranking import Match

logger = logging.getLogger("mdmemory")


class Memory:
    """An open memory; made by `open_memory`.

    Args:
        folder: its files, index and history.
    """

    def __init__(self, folder: MemoryFolder, model: Model | None = None) -> None:
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
        mode: Mode = "both",
        write_back: When = "background",
    ) -> Session:
        """The conversation with this id, begun now if it is new or was closed; without an id, a new one.

        Args:
            user, agent: who takes part, as its journal then says.
            mode: hints (`auto`), the tool Search (`agent`) or both.
            write_back: whether the model draws memories from what was said: `off`, `awaited` by `turn.finish`, or in the
                `background`; see docs/conversations.md. Without a model nothing is drawn.

        Raises:
            InvalidPath: its journal can't be named after the id.
        """
        key = id or uuid.uuid4().hex[:12]
        if key not in self._sessions:
            about = {name: value for name, value in (("user", user), ("agent", agent)) if value}
            self._sessions[key] = Session(key, self.folder, self.model, self._let_go, about, mode, write_back)
        return self._sessions[key]

    def _let_go(self, session: Session) -> None:
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]

    async def search(self, query: str, *, limit: int = 10, **filters: Unpack[Filters]) -> list[Match]:
        """Memory files that share words with the query, best first.

        Args:
            filters: `type`, `path`, `tags`, `after`, `before`, `as_of`, `where`; see `mdmemory.recall.filters.Filters`.

        Raises:
            InvalidArguments: a filter that there is not.
            Unavailable: the folder can't be looked at.
        """
        await self.folder.refresh()
        return await self.folder.search(query, limit=limit, **filters)

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

    async def close(self) -> None:
        """End every session and close the backend."""
        for session in list(self._sessions.values()):
            await session.close()
        await self.folder.close()


@asynccontextmanager
async def open_memory(
    location: str | os.PathLike[str] | Backend,
    *,
    model: Model | str | None = None,
    config: Config | None = None,
    policy: Policy = allow_all,
    confirm: Confirm | None = None,
) -> AsyncIterator[Memory]:
    """Open a memory: `async with open_memory("~/memory") as memory:`.

    Args:
        location: a folder's path, a `file://`, `memory://`, `docker://` or `e2b://` URL, or a backend.
        model: chooses the files for hints, and says what of a conversation is to be remembered: a callable, or a string such as
            `openai:gpt-x`; None leaves hints to lexical recall, and remembering to the agent.
        policy: says which changes are allowed, asked about or denied; `read_only` denies all.
        confirm: asks a person about a change whose policy says `ask`.

    Raises:
        ConfigError: the location or the model can't be used.
    """
    backend = _backend(location)
    chosen = model_from_string(model) if isinstance(model, str) else model
    config = config or Config()
    memory = Memory(MemoryFolder(backend, config, policy, confirm, _cache(backend, config)), chosen)
    try:
        await memory.folder.recover()
        yield memory
    finally:
        await memory.close()
        if isinstance(model, str) and (close := getattr(chosen, "close", None)):
            await close()


def _cache(backend: Backend, config: Config) -> Cache | None:
    location = getattr(backend, "location", None)
    if config.cache is False or not isinstance(location, str):
        return None
    return open_cache(location, config.languages, None if config.cache is True else Path(config.cache).expanduser())


def _backend(location: str | os.PathLike[str] | Backend) -> Backend:
    if not isinstance(location, (str, os.PathLike)):
        return location
    text = os.fspath(location)
    url = urlsplit(text) if "://" in text else None
    if (
        not text
        or "\0" in text
        or (url is not None and url.scheme == "file" and (url.netloc not in ("", "localhost") or not url.path))
    ):
        raise ConfigError(f"{text!r} does not name a folder. Give a path, or a URL with three slashes such as file:///srv/memory.")
    match url.scheme if url is not None else "file":
        case "file":
            from mdmemory.backends.local import LocalBackend

            return LocalBackend(Path(unquote(url.path) if url else text).expanduser())
        case "memory":
            from mdmemory.backends.memory import MemoryBackend

            return MemoryBackend()
        case "docker":
            from mdmemory.backends.docker import DockerBackend

            return DockerBackend.from_url(text)
        case "e2b":
            from mdmemory.backends.e2b import E2BBackend

            return E2BBackend.from_url(text)
        case scheme:
            known = "a folder's path, a file://, memory://, docker:// or e2b:// URL, or a backend"
            raise ConfigError(f"There is no backend for {scheme}:// locations. Give {known}.")
