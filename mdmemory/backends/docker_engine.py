"""The Docker SDK, which is synchronous and serves one thread at a time, for many calls at once; and its errors as ours. Floor 1."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from mdmemory.backends.shell import LostConnection
from mdmemory.errors import ConfigError, Unavailable

if TYPE_CHECKING:
    from docker import DockerClient

T = TypeVar("T")


class Engine:
    """The engine that the environment names, by as many clients as there are calls at a time."""

    def __init__(self) -> None:
        self._idle: list[DockerClient] = []

    async def call(self, work: Callable[[DockerClient], T]) -> T:
        """Run `work` in a thread, with a client that nobody else has meanwhile.

        Raises:
            LostConnection: no answer, or the container is not there or not running.
            Unavailable: the engine refused it.
            ConfigError: the SDK is not installed.
        """
        return await asyncio.to_thread(self._call, work)

    def close(self) -> None:
        """Close the clients that are not in use."""
        while self._idle:
            self._idle.pop().close()

    def _call(self, work: Callable[[DockerClient], T]) -> T:
        try:
            import docker
            from docker.errors import APIError, DockerException
            from requests import RequestException
        except ModuleNotFoundError as error:
            raise ConfigError("A Docker memory needs the docker package: pip install 'mdmemory[docker]'") from error
        try:
            client = self._idle.pop() if self._idle else docker.from_env()
            result = work(client)
        except APIError as error:
            raise _refusal(error.status_code, str(error.explanation)) from error
        except (DockerException, RequestException, OSError) as error:
            raise LostConnection("the Docker engine does not answer. Check that it runs and that DOCKER_HOST names it.") from error
        self._idle.append(client)
        return result


def _refusal(status: int | None, said: str) -> Unavailable:
    if status == 404 and "No such image" in said:
        return Unavailable(f"{said.rstrip('.')} on this Docker engine. Get it first: docker pull IMAGE")
    if status == 404 or "is not running" in said:  # 409, or what containerd says when the container dies under an exec
        return LostConnection("the memory's container is not running any more. Try again.")
    if status == 409 and "paused" in said:
        return Unavailable("the memory's container is paused. Run docker unpause on it, then try again.")
    reason = said if said and "/" not in said else f"status {status}; its own log says more"
    return Unavailable(f"the Docker engine refused it: {reason}")
