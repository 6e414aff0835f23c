"""Who is served, in which bounds, and where each one's memory lies. Floor 7."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Final

from mdmemory.errors import ConfigError, InvalidArguments

USER: Final = "{user}"
MAX_NAME_CHARS: Final = 64
_NAME: Final = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one user may take.

    Args:
        per_minute: requests; a quarter of them may come all at once.
        at_once: requests that are being answered, over all workers.
        streams: open pages that are told what changes, and MCP clients that listen.
        body_bytes: what a request may send.
        results: files that a search over MCP may bring.
        answer_tokens: estimated tokens that a recall over MCP may take.
    """

    per_minute: int = 600
    at_once: int = 8
    streams: int = 20
    body_bytes: int = 16 * 1024 * 1024
    results: int = 50
    answer_tokens: int = 20_000

    def __post_init__(self) -> None:
        for each in fields(self):
            if getattr(self, each.name) < 1:
                raise ConfigError(f"the limit {each.name} must be at least 1")


@dataclass(frozen=True, slots=True)
class User:
    """Who a token stands for.

    Args:
        name: lower-case letters and digits, with single `.`, `_` or `-` between them; at most 64. It takes the place of `{user}`.
        read_only: whether they may only look.
        expires: when the token runs out, with a time zone; None for never.
        limits: None for those of the service.

    Raises:
        InvalidArguments: a name that could lead elsewhere, or be taken for another.
    """

    name: str
    read_only: bool = False
    expires: datetime | None = None
    limits: Limits | None = None

    def __post_init__(self) -> None:
        check_name(self.name)


Authenticate = Callable[[str], Awaitable[User | None]]
"""Says whose a token is; None for nobody's. It is asked at every request, and every few seconds while a stream is open."""


def check_name(name: str) -> None:
    """Refuse what is no user's name.

    Raises:
        InvalidArguments
    """
    if len(name) > MAX_NAME_CHARS or not _NAME.fullmatch(name):
        raise InvalidArguments(
            f"{name!r:.80} can't name a user: take lower-case letters a-z and digits, with single . _ or - between them, "
            f"{MAX_NAME_CHARS} at most."
        )


def check_template(template: str) -> None:
    """Refuse a location that would not keep users apart.

    Raises:
        ConfigError
    """
    if template.count(USER) != 1:
        raise ConfigError(f"The location must hold {USER} once, in the place of the user's name, such as /srv/memories/{USER}.")
    if template.startswith("memory://"):
        raise ConfigError("A memory:// location is gone when it is closed, and a service closes what is not used.")


def location_of(template: str, name: str) -> str:
    """The location with a checked name in the place of `{user}`."""
    return template.replace(USER, name)
