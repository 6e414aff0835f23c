"""Who may write what: the rights of a mount, then a policy that says allow, ask or deny for each change. Floor 3."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal

from mdmemory.errors import MdmemoryError, PermissionDenied
from mdmemory.files.changes import Append, Change, Create, Replace

logger = logging.getLogger("mdmemory")
Decision = Literal["allow", "ask", "deny"]
Right = Literal["read", "append", "write"]
"""What may be done in a mount; `write` includes `append`: new files, and text at the end of files."""
Policy = Callable[[Change, str], Decision | Awaitable[Decision]]
"""Takes a change and its author (such as `agent:session-1`)."""
Confirm = Callable[[Change, str], bool | Awaitable[bool]]
"""Asks a person about a change whose policy says `ask`; only True is consent."""


@dataclass(frozen=True, slots=True)
class Place:
    """A mount and what may be done there, as an agent is told."""

    prefix: str
    about: str
    can_read: bool
    can_append: bool
    can_write: bool


def allow_all(change: Change, author: str) -> Decision:
    """The default: every change may be made."""
    return "allow"


def read_only(change: Change, author: str) -> Decision:
    """A policy under which nothing is written."""
    return "deny"


def nobody(change: Change, author: str) -> bool:
    """In place of the person in a dry run, which asks nobody: what a person may allow counts as allowed."""
    return True


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


def check_rights(change: Change, access: AbstractSet[Right], mount: str) -> Change:
    """The change as the rights of its mount allow it: where text may only be added, a Replace that does only that is an Append.

    Args:
        mount: how the mount is called in the message.

    Raises:
        PermissionDenied: nothing is to be written.
    """
    if not access & {"append", "write"}:
        raise PermissionDenied(f"{mount} can only be read here, so {change.path} stays as it is. Nothing was written.")
    if isinstance(change, (Create, Append)) or {"read", "write"} <= access:
        return change
    if "read" not in access:
        raise PermissionDenied(
            f"What is in {mount} can't be read here, and so not be changed: only new files, and text at the end of files, can be "
            "added there. Nothing was written."
        )
    if isinstance(change, Replace) and change.base_data is not None and change.data.startswith(change.base_data):
        return Append(change.path, change.data[len(change.base_data) :])
    raise PermissionDenied(
        f"In {mount} what is there stays as it is: only new files, and text at the end of files, can be added there. "
        "Nothing was written."
    )


def check_reading(path: str, access: AbstractSet[Right], mount: str) -> None:
    """Refuse to read where only writing is allowed.

    Raises:
        PermissionDenied
    """
    if "read" not in access:
        raise PermissionDenied(f"{path} can't be read: in {mount} files can be added here, and nothing can be read.")
