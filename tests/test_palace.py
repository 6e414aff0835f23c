"""The places of a memory palace: folders, types, journal entries and summaries, and the filters on them."""

from __future__ import annotations

import re
from pathlib import Path

from folders import memory as memory_file
from test_timeline import put

from mdmemory import Memory

FILES = {
    "orders/deploy/when.md": memory_file("When", "deploy of orders", "project", "Tuesdays.", tags=["deploy"]),
    "orders/deploy/how.md": memory_file("How", "deploy of orders", "feedback", "Ask first."),
    "orders/tests.md": memory_file("Tests", "before a deploy", "project", "All of them."),
    "billing/when.md": memory_file("When", "deploy of billing", "project", "By hand.", tags=["deploy"]),
}


async def found(memory: Memory, **filters: str) -> set[str]:
    """The files that a search for one word finds."""
    return {match.path for match in await memory.search("deploy", **filters)}


async def test_wing_room_and_hall_are_folder_subfolder_and_type(memory: Memory, folder: Path) -> None:
    """V2, V4: each narrows a search by itself and together, and a tag goes across."""
    put(folder, FILES)
    orders = {path for path in FILES if path.startswith("orders/")}
    assert await found(memory) == FILES.keys()
    assert await found(memory, path="orders") == orders
    assert await found(memory, path="orders/deploy") == {"orders/deploy/when.md", "orders/deploy/how.md"}
    assert await found(memory, type="feedback") == {"orders/deploy/how.md"}
    assert await found(memory, path="orders", type="project") == orders - {"orders/deploy/how.md"}
    assert await found(memory, tags="deploy") == {"orders/deploy/when.md", "billing/when.md"}


async def test_a_summary_points_at_the_words(memory: Memory, folder: Path) -> None:
    """V2, V4: a drawer is an entry of the journal, found by session; a closet is a file whose link and source lead to it."""
    for session, said in (("monday", "Deploys are on Tuesdays."), ("friday", "Deploys are never on Fridays.")):
        await (await memory.session(session).turn(said)).finish("Noted.")
    context = await memory.context("deploys", sessions="monday", k=0)
    (drawer,) = [said for said in context.recalled if said.message.role == "user"]
    assert (drawer.session, drawer.message.text) == ("monday", "Deploys are on Tuesdays.") and drawer.score
    (place,) = (path.relative_to(folder).as_posix() for path in folder.glob("journal/*/*/monday.md"))
    closet = memory_file("Deploys", "days of a deploy", "project", f"[Said](../{place})", source=f"monday#{drawer.message.id}")
    put(folder, {"orders/closet.md": closet})
    assert await found(memory, path="orders") == {"orders/closet.md"}
    session, _, entry = re.search(rb"source: \"?(\w+)(#)(\w+)", closet).groups()  # type: ignore[union-attr]  # it was just made
    messages = {message.id: message.text for message in await memory.session(session.decode()).messages()}
    assert messages[entry.decode()] == "Deploys are on Tuesdays."
