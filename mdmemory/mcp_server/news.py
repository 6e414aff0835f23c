"""What changes in the folder, by whomever, told to the clients that are connected. Floor 6.

Two generations of the protocol: up to 2025, changes go to every session, and those of single files to who subscribed to them;
from 2026 on they go to who listens.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mdmemory.errors import InvalidArguments, MdmemoryError
from mdmemory.folder.any_folder import Folder, look, look_every_s
from mdmemory.folder.known import INDEX
from mdmemory.mcp_server.resources import SCHEME, uri_of
from mdmemory.mcp_server.tools import MAX_SESSIONS, session_of

logger = logging.getLogger("mdmemory")
Context = ServerRequestContext[Any, Any]
SEND_S: Final = 5.0  # how long one client may hold up the news
MAX_URIS: Final = 1_000


@dataclass(slots=True)
class Peer:
    """A connected client, and the URIs that it subscribed to."""

    session: ServerSession
    uris: set[str] = field(default_factory=set)


class News:
    """Looks at the folder while the server runs, and tells what changed."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus, max_subscriptions=MAX_SESSIONS)
        self._peers: OrderedDict[str, Peer] = OrderedDict()
        self._stirred = asyncio.Event()
        self._mark, self._index = 0, ""
        self._named: dict[str, tuple[str, str]] = {}

    def meet(self, ctx: Context) -> None:
        """Take note of a client that is to be told what changes."""
        session = None if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS else session_of(ctx)
        if session is None:
            return
        if session not in self._peers:
            self._peers[session] = Peer(ctx.session)
        self._peers.move_to_end(session)
        if len(self._peers) > MAX_SESSIONS:
            self._peers.popitem(last=False)

    async def subscribe(self, ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Tell this client when a resource changes."""
        uris = self._peers[session_of(ctx) or ""].uris
        if not params.uri.startswith(SCHEME) or len(uris) >= MAX_URIS:
            raise InvalidArguments(f"only resources that begin with {SCHEME} can be subscribed to, {MAX_URIS} at most")
        uris.add(params.uri)
        return types.EmptyResult()

    async def unsubscribe(self, ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Tell it no more."""
        self._peers[session_of(ctx) or ""].uris.discard(params.uri)
        return types.EmptyResult()

    @asynccontextmanager
    async def told(self) -> AsyncIterator[None]:
        """Look and tell for as long as the context lasts."""
        with suppress(MdmemoryError):
            await self.folder.refresh()
        await self._learn()
        task = asyncio.create_task(self._watch(), name="mdmemory news")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _watch(self) -> None:
        pause = look_every_s(self.folder)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stirred.wait()
            try:
                if not self._stirred.is_set():
                    await look(self.folder)
                self._stirred.clear()
                await self._tell()
            except MdmemoryError as error:
                logger.warning("the memory could not be looked at for changes: %s", error)
            except Exception:  # the edge of a background task: clients must go on hearing of later changes
                logger.exception("telling what changed in the memory failed")

    def stir(self) -> None:
        """Have what a client has just changed told at once."""
        self._stirred.set()

    async def _tell(self) -> None:
        """Tell what changed since the last time, as of the folder's last `refresh`."""
        changed, index, named = set(self.folder.changes_since(self._mark)), self._index, self._named
        await self._learn()
        if changed or index != self._index:
            changed.add(INDEX)
        uris = [uri_of(path) for path in sorted(changed)]
        is_other_list = named != self._named
        for uri in uris:
            await self._bus.publish(ResourceUpdated(uri=uri))
        if is_other_list:
            await self._bus.publish(ResourcesListChanged())
        for key, peer in list(self._peers.items()):
            try:
                async with asyncio.timeout(SEND_S):
                    await _send(peer, uris, is_other_list)
            except (TimeoutError, anyio.ClosedResourceError, anyio.BrokenResourceError):  # it has gone, or does not listen
                self._peers.pop(key, None)

    async def _learn(self) -> None:
        mark = self.folder.change_mark
        if mark != self._mark or not self._named:
            self._named = {path: (listed.name, listed.description) for path, listed in self.folder.listed.items()}
        self._mark, self._index = mark, await self.folder.index_file() or ""


async def _send(peer: Peer, uris: Sequence[str], is_other_list: bool) -> None:
    for uri in uris:
        if uri in peer.uris:
            await peer.session.send_resource_updated(uri)
    if is_other_list:
        await peer.session.send_resource_list_changed()
