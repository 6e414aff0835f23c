"""Who may write what: a policy says allow, ask or deny for each change before it is applied. Floor 3."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Literal

from mdmemory.errors import MdmemoryError, PermissionDenied
from mdmemory.files.changes import Change

logger = logging.getLogger("mdmemory")
Decision = Literal["allow", "ask", "deny"]
Policy = Callable[[Change, str], Decision | Awaitable[Decision]]
"""Takes a change and its author (such as `agent:session-1`)."""
Confirm = Callable[[Change, str], bool | Awaitable[bool]]
"""Asks a person about a change whose policy says `ask`; only True is consent."""


def allow_all(change: Change, author: str) -> Decision:
    """The default: every change may be made."""
    return "allow"


def read_only(change: Change, author: str) -> Decision:
    """A policy under which nothing is written."""
    return "deny"


async def permit(changes: Sequence[Change], author: str, policy: Policy, confirm: Confirm | None) -> None:
    """Ask the policy, and where it says so a person, about every change before any is made.

    Raises:
        PermissionDenied: one was refused; none is made.
    """
    for change in changes:
        verdict = await _answer(policy, change, author)
        what = f"{type(change).__name__} {change.path}"
        if verdict == "allow":
            continue
        if verdict != "ask":
            raise PermissionDenied(f"{what} is not allowed here. Nothing was written; go on without it or tell the user.")
        if confirm is None:
            raise PermissionDenied(f"{what} needs a person's consent, and there is nobody to ask here. Nothing was written.")
        if await _answer(confirm, change, author) is not True:
            raise PermissionDenied(f"{what} was refused by the user. Nothing was written; don't try it again.")


async def _answer(ask: Policy | Confirm, change: Change, author: str) -> object:
    try:
        answer = ask(change, author)
        return await answer if inspect.isawaitable(answer) else answer
    except MdmemoryError:
        raise
    except Exception as error:  # a user's function: when it fails, consent was not given, and the reply goes on
        logger.warning("the policy or confirm function failed", exc_info=True)
        raise PermissionDenied("Whether this is allowed could not be found out. Nothing was written.") from error
