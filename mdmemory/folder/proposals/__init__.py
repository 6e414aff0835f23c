"""Proposals: changes that wait for a person, who accepts, edits or rejects each. Floor 3.

for proposal in await list_proposals(memory.folder): ...
await accept(memory.folder, proposal)
"""

from __future__ import annotations

from mdmemory.folder.proposals.losses import Losses, LostLine
from mdmemory.folder.proposals.proposal import Kind, Proposal
from mdmemory.folder.proposals.queue import find_proposal, list_proposals
from mdmemory.folder.proposals.reviewing import accept, edit, reject

__all__ = [
    "Kind",
    "Losses",
    "LostLine",
    "Proposal",
    "accept",
    "edit",
    "find_proposal",
    "list_proposals",
    "reject",
]
