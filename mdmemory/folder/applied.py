"""What an `apply` comes to. Floor 3."""

from __future__ import annotations

from dataclasses import dataclass

from mdmemory.files import index
from mdmemory.folder.settle import Settled


@dataclass(frozen=True, slots=True)
class Applied:
    """What an `apply` did, or would do.

    Args:
        commit_id: None for a dry run, or when nothing had to be written.
        files: each file's bytes before and after; of the index, with our lines brought up to date; of an append, what was added.
        index: the index's figures after it; None when the index could not be kept, as `warnings` says, or was not concerned.
        warnings: what the one who proposed the change should know.
    """

    commit_id: str | None
    files: tuple[Settled, ...]
    index: index.Updated | None
    warnings: tuple[str, ...] = ()
