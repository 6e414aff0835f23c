"""Keeping two folders together until it is ended. Floor 4."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from mdmemory.care.reconcile.pair import Pair, Synced
from mdmemory.care.reconcile.running import reconcile
from mdmemory.errors import BackendError, PermissionDenied
from mdmemory.folder.any_folder import Folder

EVERY_S: Final = 0.5  # between two questions whether something has changed, which cost nothing
POLL_S: Final = 10.0  # between two looks at a folder of which nobody tells what changes
TO_BEGIN: Final = 2  # looks, of which the second begins to have changes told
PAUSE_S: Final = 5.0  # after a look that failed


async def keep_together(
    pair: Pair, tell: Callable[[Synced | str], object], *, max_deletions: int | None = None, poll_s: float = POLL_S
) -> None:
    """Sync now, and whenever something changes on either side, until cancelled.

    Args:
        tell: is told what each sync did, where it did something, and once what stands in the way, as text.
        poll_s: how often a side is looked at that can't tell of changes, such as a sandbox.
    """
    trouble = ""
    looked, looks = 0.0, 0
    told: set[object] = set()
    while True:
        is_due = looks < TO_BEGIN or time.monotonic() >= looked + poll_s
        if trouble or any(news if (news := has_news(folder)) is not None else is_due for folder in (pair.here, pair.there)):
            looked, looks = time.monotonic(), looks + 1
            try:
                synced = await reconcile(pair, max_deletions=max_deletions)
            except (BackendError, PermissionDenied) as error:
                if str(error) != trouble:
                    tell(str(error))
                trouble = str(error)
                await asyncio.sleep(PAUSE_S)
                continue
            trouble = ""
            left = {step for step in synced.steps if step.action == "left"}
            new = tuple(step for step in synced.steps if step not in told)
            told = set(left)
            if new or synced.notes:
                tell(Synced(new, synced.notes))
        await asyncio.sleep(EVERY_S)


def has_news(folder: Folder) -> bool | None:
    """Whether a folder may have changed since the last look; None when nobody tells."""
    watcher = getattr(folder, "watcher", None)
    if watcher is not None and watcher.is_watching:
        return bool(watcher.has_news)
    news: bool | None = getattr(getattr(folder, "backend", None), "has_news", None)
    return news
