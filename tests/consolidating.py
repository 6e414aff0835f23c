"""Files that say much the same, and what a scripted model makes of them, for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from folders import memory, on_disk, visible

from mdmemory import ScriptedModel
from mdmemory.care.consolidate import Report, consolidate
from mdmemory.folder.any_folder import Folder
from mdmemory.folder.proposals import Proposal, list_proposals

TEA = {
    "user/drinks.md": memory("Drinks", "which drinks the user likes", body="Prefers green tea to coffee."),
    "user/morning.md": memory("Morning", "the user's mornings", body="Every morning the user drinks green tea."),
    "user/tea-again.md": memory("Green tea", "what the user drinks", body="The user likes green tea in the morning."),
    "user/tea-from.md": memory("Tea", "how the user drinks tea", body="Green tea is drunk with honey from Yunnan, at 80 degrees."),
    "user/tea.md": memory("Tea", "drinks green tea", body="Drinks green tea, never coffee."),
}
"""One thing, told five times; one telling has details that the others lack."""
OTHERS = {
    "user/home.md": memory("Home", "where the user lives", body="Lives in Hangzhou with two cats."),
    "project/launch.md": memory("Launch", "the date", type="project", body="We ship on the first of December, after the freeze."),
}
WHOLE = "Prefers green tea to coffee, which is never drunk: every morning, with honey from Yunnan, at 80 degrees."
LACKING = "Drinks green tea every morning, never coffee."


def made(path: str, body: str, name: str = "Tea", description: str = "how the user drinks tea; likes, coffee") -> dict[str, str]:
    """A file as a model wants it."""
    return {"path": path, "name": name, "description": description, "body": body}


def wish(kind: str, sources: Sequence[str], *files: Mapping[str, str], reason: str = "they tell one thing") -> dict[str, Any]:
    """One thing that a model proposes."""
    return {"kind": kind, "sources": list(sources), "files": list(files), "reason": reason}


def reply(*wishes: Any) -> dict[str, Any]:
    """A model's whole reply."""
    return {"proposals": list(wishes)}


MERGE = wish("merge", list(TEA), made("user/tea.md", WHOLE))
LOSSY = wish("merge", list(TEA), made("user/tea.md", LACKING))


async def proposed(folder: Folder, *replies: Any) -> Report:
    """A run, with one reply a cluster."""
    return await consolidate(folder, ScriptedModel(list(replies)))


async def waiting(folder: Folder, *wishes: Any) -> Proposal:
    """The only proposal that waits after a run with these wishes."""
    report = await proposed(folder, reply(*wishes))
    (found,) = await list_proposals(folder)
    assert report.problems == () and report.proposals[0].id == found.id
    return found


def files_of(root: Path) -> dict[str, bytes]:
    """Every file but the index."""
    return {path: data for path, data in visible(root).items() if path != "MEMORY.md"}


def tea(root: Path, **settings: Any) -> Any:
    """A folder with five tellings of one thing, and others."""
    return on_disk(root, {**TEA, **OTHERS}, **settings)
