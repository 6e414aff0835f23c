"""What long work tells of itself. Floor 4."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]
"""Is told how many steps are done, and how many there are."""


def unseen(done: int, total: int) -> None:
    """Nobody looks."""
