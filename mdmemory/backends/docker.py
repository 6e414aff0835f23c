"""A folder on a volume, inside a hardened Docker container. Floor 1; needs `pip install mdmemory[docker]`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import parse_qsl, unquote, urlsplit

from mdmemory.backends.docker_container import ROOT, Limits, find, settings_of
from mdmemory.backends.docker_engine import Engine
from mdmemory.backends.docker_stream import exchange
from mdmemory.backends.shell import Completed, LostConnection, ShellBackend
from mdmemory.errors import ConfigError

if TYPE_CHECKING:
    from docker import DockerClient

_NOT_STARTED = (126, 127, 128)
_KILLED = 137
OnClose = Literal["keep", "stop", "remove"]


class DockerBackend(ShellBackend):
    """A memory on a Docker volume, behind a container without network, rights or a writable root.

    The container is made at the first use, or found again by its name and started; a folder in one that others made is used as
    it is, and that one is left as it is unless `on_close` says otherwise.

    Args:
        image: has sh, and the tools of busybox or Debian; None to use a container that is there.
        volume: where the memory is; made when it is not there, and never removed.
        container: its name; `mdmemory-VOLUME` when not given.
        root: the folder inside the container.
        limits: for a container made here.
        on_close: what becomes of the container: `keep` lets it run for the next, `stop` lets it be started again.
    """

    def __init__(
        self,
        image: str | None = None,
        *,
        volume: str | None = None,
        container: str | None = None,
        root: str = ROOT,
        limits: Limits | None = None,
        on_close: OnClose | None = None,
    ) -> None:
        if (image is None) != (volume is None) or not (volume or container):
            raise ConfigError("A Docker memory needs an image and a volume, or the name of a container that is there.")
        if on_close not in (None, "keep", "stop", "remove"):
            raise ConfigError(f"on_close is keep, stop or remove, not {on_close}.")
        name = container or f"mdmemory-{volume}"
        settings = settings_of(image, volume, root, limits or Limits()) if image and volume else None
        shell = DockerShell(name, settings, on_close or ("stop" if image else "keep"))
        super().__init__(shell, root)
        self.location = f"docker://{name}{root}"

    @classmethod
    def from_url(cls, url: str) -> Self:
        """The backend of `docker://IMAGE?volume=NAME`, or of `docker://?container=NAME`, with `root` and `on_close` where wanted.

        Raises:
            ConfigError: a part of the URL can't be used.
        """
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True))
        if odd := sorted(options.keys() - {"volume", "container", "root", "on_close"}):
            raise ConfigError(f"{odd[0]} is not known: a docker:// location may have volume, container, root and on_close.")
        return cls(unquote(parts.netloc + parts.path) or None, **options)  # type: ignore[arg-type]  # on_close is checked there


class DockerShell:
    """Runs commands in one container, made by these settings when it is not there.

    Args:
        settings: the arguments for the SDK's `containers.create`; None when it must be there.
    """

    def __init__(self, name: str, settings: dict[str, Any] | None, on_close: OnClose) -> None:
        self.name, self._settings, self._on_close = name, settings, on_close
        self._engine = Engine()
        self._starting = asyncio.Lock()
        self._id: str | None = None
        self._used: str | None = None

    async def run(self, argv: Sequence[str], stdin: bytes, *, timeout_s: float, max_output_bytes: int) -> Completed:
        """Run a command by `docker exec`, as `Shell.run`."""
        async with self._starting:
            container_id = self._id or await self._engine.call(lambda client: find(client, self.name, self._settings))
            self._id = self._used = container_id

        def execute(client: DockerClient) -> Completed:
            made = client.api.exec_create(container_id, list(argv), stdin=True)
            done = exchange(client.api, made["Id"], stdin, timeout_s, max_output_bytes)
            if done.code < 0 or done.code in _NOT_STARTED:
                raise LostConnection(f"the container {self.name} was ended, is full of processes, or has no sh. Try again.")
            return done

        done = None
        try:
            done = await self._engine.call(execute)
        finally:
            if done is None or done.code == _KILLED:
                self._id = None  # look for it anew
        return done

    async def close(self) -> None:
        """Keep, stop or remove the container if it was used; the volume stays."""
        container_id, self._id, self._used = self._used, None, None
        with suppress(LostConnection):  # one that is gone is let go of
            if container_id and self._on_close == "stop":
                await self._engine.call(lambda client: client.containers.get(container_id).stop(timeout=1))
            elif container_id and self._on_close == "remove":
                await self._engine.call(lambda client: client.containers.get(container_id).remove(force=True))
        self._engine.close()
