"""Two folders that are kept together, and what a sync of them is told as. Floor 4."""

from __future__ import annotations

from dataclasses import dataclass

from mdmemory.care.reconcile.fates import Step
from mdmemory.folder.any_folder import Folder


@dataclass(frozen=True, slots=True)
class Synced:
    """What a sync did, or would do.

    Args:
        steps: by path; files that both had alike are not told of.
        notes: what else people should know, each told once.
    """

    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()

    @property
    def needs_person(self) -> bool:
        """Whether something was left, or two texts were kept of which one should be."""
        return any(step.action in ("left", "conflict") for step in self.steps)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two folders that are kept together.

    Args:
        here: the people's folder, in which it is noted what both had.
        there: the other one.
        name: of the other folder, under which that is noted, and as the history here calls it.
        own_name: of this folder, as the history there calls it.
    """

    here: Folder
    there: Folder
    name: str
    own_name: str
