"""Which E2B sandbox holds a memory: found by its name, made when there is none, resumed when it is paused. Floor 1."""

from __future__ import annotations

import asyncio
import importlib
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from mdmemory.backends.e2b_errors import translated
from mdmemory.backends.shell import LostConnection
from mdmemory.errors import ConfigError

_LABEL: Final = "mdmemory"  # the sandbox's metadata has the memory's name under it
_SETTLE_S: Final = 1.0
_PARTS: Final = {"memory": "memory", "root": "root", "timeout": "timeout_s", "sandbox": "sandbox_id"}


def settings_of(url: str) -> dict[str, Any]:
    """What `e2b://TEMPLATE?memory=NAME` says, as arguments of `E2BBackend`.

    Raises:
        ConfigError: a part of the URL can't be used.
    """
    place = urlsplit(url)
    settings: dict[str, Any] = {"template": unquote(place.netloc + place.path).strip("/") or "base"}
    for name, value in parse_qsl(place.query):
        if name not in _PARTS:
            raise ConfigError(f"E2B locations have no {name!r}, but {', '.join(_PARTS)}. A key is in E2B_API_KEY.")
        if name == "timeout" and not value.isdecimal():
            raise ConfigError(f"The timeout of an E2B location is a whole number of seconds, not {value!r}.")
        settings[_PARTS[name]] = int(value) if name == "timeout" else value
    return settings


class MemorySandbox:
    """The sandbox of one memory, connected to when it is first asked for.

    Args:
        template: what it is made from when there is none.
        memory: the memory's name, one sandbox each.
        timeout_s: how long after a connection E2B pauses it.
        sandbox_id: take this one, whatever its metadata.
        options: of each request of the SDK, such as `api_key`.
    """

    def __init__(self, template: str, memory: str, timeout_s: int, sandbox_id: str, options: dict[str, Any]) -> None:
        if not memory and not sandbox_id:
            raise ConfigError(f"An E2B memory needs a name, by which its sandbox is found again: e2b://{template}?memory=NAME")
        self._template, self._metadata, self._timeout_s = template, {_LABEL: memory}, timeout_s
        self._id, self._options = sandbox_id, options
        self._connection: Any = None
        self._connecting = asyncio.Lock()

    async def connected(self) -> Any:
        """The SDK's sandbox, running when it was last heard of.

        Raises:
            ConfigError, Unavailable: it can't be had.
        """
        async with self._connecting:
            if self._connection is None:
                sdk = await _sdk()
                found = [self._id] if self._id else await self._found(sdk)
                if len(found) > 1:  # perhaps two processes have just made one each, and one is about to end its own
                    await asyncio.sleep(_SETTLE_S)
                    found = await self._found(sdk)
                if len(found) > 1:
                    raise ConfigError(f"Several sandboxes hold this memory: {', '.join(found)}. Choose one with sandbox=ID.")
                self._connection = await (self._connect(sdk, found[0]) if found else self._make(sdk))
            return self._connection

    def let_go(self, connection: Any = None) -> None:
        """Connect anew at the next call, if this connection, or any, is the one that is held."""
        if connection is None or connection is self._connection:
            self._connection = None

    async def pause(self) -> None:
        """Write to the disk what is on its way and pause it until the next call, if it was used."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            with suppress(LostConnection):  # it is paused already, as the next call says, or there is no network
                await translated(connection.commands.run("sync"), inside=True)
            await translated(connection.pause())

    async def kill(self) -> None:
        """End it, and all that is in it."""
        sdk, self._connection = await _sdk(), None
        for sandbox_id in [self._id] if self._id else await self._found(sdk):
            await translated(sdk.AsyncSandbox.kill(sandbox_id, **self._options))

    async def _connect(self, sdk: Any, sandbox_id: str) -> Any:
        return await translated(sdk.AsyncSandbox.connect(sandbox_id, timeout=self._timeout_s, **self._options))

    async def _make(self, sdk: Any) -> Any:
        made = await translated(
            sdk.AsyncSandbox.create(
                self._template,
                timeout=self._timeout_s,
                metadata=self._metadata,
                lifecycle={"on_timeout": {"action": "pause"}},
                allow_internet_access=False,
                **self._options,
            )
        )
        first = next(iter(await self._found(sdk)), made.sandbox_id)
        if first == made.sandbox_id:
            return made
        await translated(made.kill())  # another process made one at the same time; this one is empty
        return await self._connect(sdk, first)

    async def _found(self, sdk: Any) -> list[str]:
        """The ids of the memory's sandboxes, oldest first."""
        pages = sdk.AsyncSandbox.list(sdk.SandboxQuery(metadata=self._metadata), **self._options)
        found: list[Any] = []
        while pages.has_next:
            found += await translated(pages.next_items())
        return [sandbox.sandbox_id for sandbox in sorted(found, key=lambda sandbox: (sandbox.started_at, sandbox.sandbox_id))]


async def _sdk() -> Any:
    try:
        return await asyncio.to_thread(importlib.import_module, "e2b")  # takes a while the first time, in which the loop goes on
    except ImportError as error:
        raise ConfigError("Memories in E2B need its SDK: pip install 'mdmemory[e2b]'") from error
