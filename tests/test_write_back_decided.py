"""What waits of conversations while people decide, edit files, and other sessions draw from theirs."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conversations import HOME, REVIEWED, TALK, TEA, drawn, memory, reply, reviewed, said
from folders import memory as note
from test_write_back import memories, say

from mdmemory import ScriptedModel, open_memory
from mdmemory.agent.extractor import extract, pending
from mdmemory.backends.local import LocalBackend
from mdmemory.care.consolidate import consolidate
from mdmemory.errors import Conflict
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.proposals import accept, edit, list_proposals, reject


async def test_what_changed_since_is_not_overwritten(tmp_path: Path) -> None:
    """D2, E5: after an edit the proposal is out of date: not accepted, not joined, not swept away by a run of consolidation."""
    folder, talk = reviewed(tmp_path, {"user/pet.md": note("Pet", "the cat", body="A cat.")}), list(TALK)
    await drawn(folder, talk, reply(memory("Pet", "A cat called Miso.", action="update", path="user/pet.md")))
    (tmp_path / "user/pet.md").write_bytes(note("Pet", "the cat", body="Two cats."))
    (stale,) = await list_proposals(folder)
    assert stale.stale == "user/pet.md has changed since"
    with pytest.raises(Conflict, match="save by hand what of it still holds"):
        await accept(folder, stale, force=True)
    await consolidate(folder, ScriptedModel([]))
    talk += said("One is called Bao.", first=3)
    await drawn(folder, talk, reply(memory("Pet", "Two cats, one called Bao.", action="update", path="user/pet.md")))
    old, new = await list_proposals(folder)
    assert old.id == stale.id and old.is_stale and (new.is_stale, new.entries) == (False, ("s1#m3",))


async def test_decided_while_the_model_thinks(tmp_path: Path) -> None:
    """D3, E5: what is accepted, rejected or edited before the model answers is not undone by its answer, nor said anew."""
    folder, talk = reviewed(tmp_path), list(TALK)
    await drawn(folder, talk, reply(HOME, TEA))
    talk += said("The house has a garden, and tea is best at 80 degrees.", first=3)

    async def model(messages: Any, *, schema: Any = None) -> Any:
        other = reviewed(tmp_path)
        home, tea = await list_proposals(other)
        await reject(other, home)
        await edit(other, tea, {"user/tea.md": (tea.texts["user/tea.md"][1] or "") + "\nA person's line.\n"})
        garden = memory("Home", "Lives in Hangzhou, with a garden.", action="update", path="user/home.md")
        return reply(garden, memory("Tea", "Drinks green tea at 80 degrees.", action="update", path="user/tea.md"))

    result = await extract(folder, model, "s1", talk)
    assert result is not None and [outcome.status for outcome in result.outcomes] == ["created", "updated"]
    tea, home = await list_proposals(folder)
    text = tea.texts["user/tea.md"][1] or ""
    assert "A person's line." in text and text.endswith("Drinks green tea at 80 degrees.\n") and tea.is_edited
    assert home.entries == ("s1#m3",)


async def test_decided_at_the_very_moment(tmp_path: Path) -> None:
    """E5: a decision between the last look and the write is a conflict; nothing is queued, and the next try takes it all."""

    class Quick(LocalBackend):
        async def commit(self, commit_id: str, ops: Any) -> Any:
            if decide:
                await reject(reviewed(tmp_path), decide.pop())
            return await super().commit(commit_id, ops)

    decide: list[str] = []
    folder, talk = MemoryFolder(Quick(tmp_path), config=REVIEWED), list(TALK)
    await drawn(folder, talk, reply(HOME))
    (home,) = await list_proposals(folder)
    talk += said("With a garden.", first=3)
    decide.append(home.id)
    update = memory("Home", "Lives in Hangzhou, with a garden.", action="update", path="user/home.md")
    with pytest.raises(Conflict, match="decided or changed at this moment"):
        await extract(folder, ScriptedModel([reply(update)]), "s1", talk)
    assert await list_proposals(folder) == [] and [message.id for message in pending(talk)] == ["m3"]
    assert [outcome.status for outcome in (await drawn(folder, talk, reply(update))).outcomes] == ["created"]


async def test_what_is_too_large_to_wait(tmp_path: Path) -> None:
    """M1: a file that is too large for the queue is left alone, which is said; it holds up nothing else."""
    folder, talk = reviewed(tmp_path, {"user/big.md": note("Big", "green tea", body="green tea\n" * 200_000)}), list(TALK)
    update = memory("Big", "Drinks green tea in Hangzhou.", action="update", path="user/big.md")
    big, tea = (await drawn(folder, talk, reply(update, TEA))).outcomes
    assert (big.status, tea.status) == ("dropped", "created") and "too large to wait" in big.reason
    assert [each.title for each in await list_proposals(folder)] == ["add user/tea.md"] and pending(talk) == []


async def test_two_sessions_at_once(tmp_path: Path) -> None:
    """A7: what two conversations bring at the same time waits, all of it."""

    async def draw(messages: Any, *, schema: Any = None) -> Any:
        if "long-term memory" not in (text := messages[0]["content"]):
            return {"files": []}
        await asyncio.sleep(0.05)
        name = next(name for name in ("Ann", "Bob", "Cem") if f"I am {name}" in text)
        return reply(memory(name, f"{name} was here.", path=f"user/{name.lower()}.md"))

    config = replace(REVIEWED, extract_every=1)
    async with open_memory(tmp_path, model=draw, config=config) as opened:
        await asyncio.gather(*(say(opened.session(name), f"I am {name}.") for name in ("Ann", "Bob", "Cem")))
    async with open_memory(tmp_path, config=config) as opened:
        found = {each.origin: each.title for each in await list_proposals(opened.folder)}
    assert found == {f"conversation {name}": f"add user/{name.lower()}.md" for name in ("Ann", "Bob", "Cem")}
    assert memories(tmp_path) == []
