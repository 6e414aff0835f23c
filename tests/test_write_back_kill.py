"""A process that is killed between the files of an extraction and its mark in the journal."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from command import environment
from conversations import memory, reply

from mdmemory import Config, ScriptedModel, open_memory
from mdmemory.files.journal import MARK

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
