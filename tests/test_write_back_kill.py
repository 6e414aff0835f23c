"""A process that is killed between what an extraction writes and its mark in the journal, or while a person decides."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from command import environment
from conversations import memory, reply, said
from folders import on_disk
from test_history_kill import killed
from test_recovery import healed, places

from mdmemory import Config, ScriptedModel, open_memory
from mdmemory.agent.write_back import WriteBack
from mdmemory.files.history import TOMBSTONES, read_tombstones
from mdmemory.files.journal import MARK
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.proposals import accept, list_proposals, reject

pytestmark = pytest.mark.slow  # many processes, or the same again and again

__all__ = ["places"]
REVIEWED = Config(extract="propose", watch=False)
TEA = memory("Tea", "Drinks green tea.", path="user/tea.md")
CHILD = f"""
import asyncio, os, signal, sys
from mdmemory import Config, ScriptedModel, open_memory
from mdmemory.backends.local import LocalBackend

class Deadly(LocalBackend):
    async def commit(self, commit_id, ops):
        if any(b"## {MARK} " in getattr(op, "data", b"") for op in ops):
            os.kill(os.getpid(), signal.SIGKILL)
        return await super().commit(commit_id, ops)

async def main():
    model = ScriptedModel([{reply(TEA)!r}])
    async with open_memory(Deadly(sys.argv[1]), model=model, config=Config(extract_every=1)) as memory:
        turn = await memory.session("s", write_back="awaited").turn("I drink green tea.")
        await turn.finish("Noted.")
    print("alive")

asyncio.run(main())
"""


async def test_a_kill_before_the_mark_makes_no_fact_twice(tmp_path: Path) -> None:
    """M1: after kill -9 between file and mark, the next process draws only what came since, and the cursor stands at the end."""
    child = subprocess.run([sys.executable, "-c", CHILD, str(tmp_path)], env=environment(), capture_output=True, check=False)
    assert child.returncode == -signal.SIGKILL and (tmp_path / "user/tea.md").exists()
    before = (tmp_path / "user/tea.md").read_bytes()
    again = [memory("Green tea", "The user likes green tea.", 1), memory("Cat", "The cat is called Miso.", 3, path="user/cat.md")]
    model = ScriptedModel([{"files": []}, reply(*again)])
    async with open_memory(tmp_path, model=model, config=Config(extract_every=1)) as opened:
        session = opened.session("s", write_back="awaited")
        turn = await session.turn("My cat is called Miso.")
        await turn.take_hint(wait_s=5)
        await turn.finish("Cute.")
        assert [outcome.status for outcome in session.status.outcomes] == ["existing", "created"]
        roles = [message.role for message in await opened.folder.journals.messages("s")]
    assert roles == ["user", "assistant", "user", "assistant", MARK]
    assert (tmp_path / "user/tea.md").read_bytes() == before
    assert sorted(path.name for path in (tmp_path / "user").iterdir()) == ["cat.md", "tea.md"]


async def _draw(folder: MemoryFolder) -> list[str]:
    """Draw what is left of the conversation, which is tea as often as a model is asked; what became of it."""
    opened = MemoryFolder(folder.backend, config=REVIEWED)
    await opened.refresh()
    model = ScriptedModel([reply(TEA)])
    return [outcome.status for each in await WriteBack(opened, "s", model).run() for outcome in each.outcomes]


async def _talk(root: Path) -> None:
    """A conversation of which nothing was drawn yet."""
    folder = on_disk(root, config=REVIEWED)
    await folder.refresh()
    await folder.journals.append("s", said("I drink green tea.", "Noted."))


def test_killed_between_the_queue_and_the_cursor(places: Path) -> None:
    """M1, E6: after a kill at any step, the next extraction queues what is not queued yet, once, and the cursor is at the end."""
    seed, call, code, ends = places / "seed", 1, -signal.SIGKILL, set()
    asyncio.run(_talk(seed))
    while code == -signal.SIGKILL:
        root = places / str(call)
        code = killed(seed, root, call, _draw)
        asyncio.run(healed(root))
        found = asyncio.run(list_proposals(on_disk(root)))
        again = asyncio.run(_draw(on_disk(root)))
        ends.add((len(found), tuple(again)))
        (proposal,) = asyncio.run(list_proposals(on_disk(root)))
        assert proposal.entries == ("s#m1",) and not (root / "user").exists()
        assert asyncio.run(_draw(on_disk(root))) == []
        call += 3
    assert code == 0 and ends == {(0, ("created",)), (1, ("existing",)), (1, ())}


def test_killed_while_it_is_decided(places: Path) -> None:
    """D3, E6: after a kill at any step of a yes or a no, it is decided or still waits, and nothing is drawn from it again."""
    seed, ends = places / "seed", set()
    asyncio.run(_talk(seed))
    asyncio.run(_draw(on_disk(seed)))
    for decide in (accept, reject):

        async def work(folder: MemoryFolder, decide: Any = decide) -> None:
            await decide(folder, (await list_proposals(folder))[0])

        call, code = 1, -signal.SIGKILL
        while code == -signal.SIGKILL:
            root = places / f"{decide.__name__}{call}"
            code = killed(seed, root, call, work)
            asyncio.run(healed(root))
            waits = bool(asyncio.run(list_proposals(on_disk(root))))
            marks = (root / TOMBSTONES).read_bytes() if (root / TOMBSTONES).exists() else b""
            is_rejected, is_saved = read_tombstones(marks).sources == {"s#m1"}, (root / "user/tea.md").exists()
            assert waits or is_rejected or is_saved
            assert not (is_saved and (waits or is_rejected))
            ends.add((decide.__name__, waits))
            call += 3
        assert code == 0
    assert ends == {("accept", True), ("accept", False), ("reject", True), ("reject", False)}
