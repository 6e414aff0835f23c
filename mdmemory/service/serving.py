"""How a service serves: where the memories lie, under which names, in which bounds. Floor 7."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mdmemory.address import Address
from mdmemory.errors import ConfigError
from mdmemory.service.users import Limits, check_template
from mdmemory.settings import Settings

MIN_SECRET_CHARS: Final = 32


@dataclass(frozen=True, slots=True)
class Serving:
    """How a service serves.

    Args:
        location: with `{user}` in the place of the user's name, such as `/srv/memories/{user}`.
        settings: of every memory; the location in them counts for nothing. A mount's location may hold `{user}`, too.
        hosts: names under which it answers, on whatever port.
        limits: of each user.
        secret: seals the browsers' cookies; the same in all workers, on all hosts and over restarts, and at least 32 characters.
        metrics_token: what must be shown for /metrics; None for nothing.
        most_idle: how many memories stay open in a worker while nobody uses them.
        idle_s: how long they do.
        session_s: after which a browser must sign in again.
        end_s: what running requests get to end, and then the memories to close.
        counts: the SQLite file in which workers count together; `:memory:` for a worker alone.

    Raises:
        ConfigError: something of it can't be used.
    """

    location: str
    secret: str
    settings: Settings = field(default_factory=Settings)
    hosts: tuple[str, ...] = Address().hosts
    limits: Limits = field(default_factory=Limits)
    metrics_token: str | None = None
    most_idle: int = 200
    idle_s: float = 300.0
    session_s: int = 12 * 3600
    end_s: int = 20
    counts: str = ":memory:"

    def __post_init__(self) -> None:
        check_template(self.location)
        if len(self.secret) < MIN_SECRET_CHARS:
            raise ConfigError(f"The secret must have {MIN_SECRET_CHARS} characters at least: make a random one.")
        for prefix, mount in self.settings.mounts.items():
            if not isinstance(mount.location, (str, os.PathLike)):
                raise ConfigError(f"The mount {prefix} must say its location as text: each user's memory opens it anew.")
        bounds: Mapping[str, float] = {"idle_s": self.idle_s, "session_s": self.session_s, "end_s": self.end_s}
        if self.most_idle < 0 or not all(bound > 0 for bound in bounds.values()):
            raise ConfigError(f"most_idle may not be negative, and {', '.join(bounds)} must be more than 0")
