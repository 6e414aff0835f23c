"""Where a server of ours listens, for whom, and under which names it answers. Floor 1."""

from __future__ import annotations

import ipaddress
import os
import socket
from dataclasses import dataclass
from typing import Final

from mdmemory.errors import ConfigError

_LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens.

    Args:
        port: 0 for any that is free.
        token: what clients must show; None for none, which only the loopback may have.
        names: further names under which clients reach it, such as that of a proxy before it.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None
    names: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse to serve strangers.

        Raises:
            ConfigError: other machines could reach it without a token, or by a name that nobody knows.
        """
        if not _is_loopback(self.host) and not self.token:
            raise ConfigError(
                f"{self.host} is reached from other machines, so a token is needed: set MDMEMORY_TOKEN to a long random text. "
                "Without one only 127.0.0.1 is served."
            )
        if _is_wildcard(self.host) and not self.names:
            raise ConfigError(f"{self.host} is no name that clients use: say theirs with --allow-host, such as notes.example.org.")

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names that are answered, on whatever port; others are strangers' names that lead here by a trick."""
        own = () if _is_wildcard(self.host) else (self._shown_host,)
        return (*_LOOPBACK, *own, *self.names)

    def url(self, port: int) -> str:
        """What clients type, with the port that it got."""
        return f"http://{self._shown_host}:{port}"

    @property
    def _shown_host(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    def listen(self) -> socket.socket:
        """A socket that takes connections.

        Raises:
            ConfigError: it can't be listened on.
        """
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            return socket.create_server((self.host, self.port), family=family, backlog=128)
        except (OSError, OverflowError) as error:
            reason = os.strerror(error.errno or 0).lower() if isinstance(error, OSError) and error.errno else "no such address"
            raise ConfigError(f"{self.host}:{self.port} can't be listened on: {reason}. Choose another port.") from error


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_wildcard(host: str) -> bool:
    return host in ("", "0.0.0.0", "::")
