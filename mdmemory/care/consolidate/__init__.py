"""Consolidation: what to do with files that say much the same, proposed by a model and decided by a person. Floor 4.

report = await consolidate(memory.folder, model)

What it proposes waits in `mdmemory.folder.proposals`, where a person decides.
"""

from __future__ import annotations

from mdmemory.care.consolidate.clusters import Cluster
from mdmemory.care.consolidate.running import Report, consolidate, prompt_of

__all__ = [
    "Cluster",
    "Report",
    "consolidate",
    "prompt_of",
]
