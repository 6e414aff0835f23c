"""Consolidation: what to do with files that say much the same, proposed by a model and decided by a person. Floor 4.

report = await consolidate(memory.folder, model)
for proposal in await list_proposals(memory.folder): ...
await accept(memory.folder, proposal)
"""

from __future__ import annotations

from mdmemory.care.consolidate.clusters import Cluster
from mdmemory.care.consolidate.losses import Losses, LostLine
from mdmemory.care.consolidate.proposal import Kind, Proposal
from mdmemory.care.consolidate.queue import find_proposal, list_proposals
from mdmemory.care.consolidate.reviewing import accept, edit, reject
from mdmemory.care.consolidate.running import Report, consolidate

__all__ = [
    "Cluster",
    "Kind",
    "Losses",
    "LostLine",
    "Proposal",
    "Report",
    "accept",
    "consolidate",
    "edit",
    "find_proposal",
    "list_proposals",
    "reject",
]
