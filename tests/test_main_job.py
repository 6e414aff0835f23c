"""The main job, end to end: an agent keeps a memory over sessions and processes, and knows at the next one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from agent_calls import call

from mdmemory import ScriptedModel, open_memory
from mdmemory.cli.chat_loop import ScriptedChat, assistant, calling, run_turn

HOME = """---
name: Where the user lives
description: home city, time zone, local recommendations
type: user
---

Lives in Hangzhou.
"""
ANSWERS = """---
name: How to answer
description: language and length of answers
type: feedback
---

Answer concisely, in Chinese.

**Why:** the user asked for it.

**How to apply:** every answer.
"""
# A second agent, in a process of its own: prints its system prompt, a line, and the hint it gets for a question.
SECOND_AGENT = """
import asyncio, sys
from mdmemory import ScriptedModel, open_memory

async def main():
    picks = {"files": [{"path": "user/home.md", "reason": "names the city"}]}
    async with open_memory(sys.argv[1], model=ScriptedModel([picks])) as memory:
        async with memory.session().turn("Any plans for dinner?") as turn:
            print(await turn.system_prompt("BASE"), "=" * 20, await turn.take_hint(wait_s=5), sep="\\n")

asyncio.run(main())
"""


async def remember(folder: Path) -> str:
    """A conversation in which a scripted model saves what it is told; returns its reply."""
    script = [
        calling("Write", file_path="user/home.md", content=HOME),
        calling("Write", file_path="feedback/answers.md", content=ANSWERS),
        assistant("记住了。"),
    ]
    async with open_memory(folder) as memory:
        text = "remember I live in Hangzhou and prefer concise Chinese answers"
        return await run_turn(memory.session("first"), ScriptedChat(script), [], text, lambda text: None, lambda kind, text: None)


async def test_an_agent_leaves_typed_files_and_an_index(folder: Path) -> None:
    """AM1: told to remember, the agent leaves typed files and an index that a person can read."""
    assert await remember(folder) == "记住了。"
    files = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.md"))
    assert [path for path in files if not path.startswith("journal/")] == ["MEMORY.md", "feedback/answers.md", "user/home.md"]
    assert [path.rpartition("/")[2] for path in files if path.startswith("journal/")] == ["first.md"]
    assert (folder / "user/home.md").read_text() == HOME
    assert (folder / "MEMORY.md").read_text() == (
        "- [Where the user lives](user/home.md) — home city, time zone, local recommendations\n"
        "- [How to answer](feedback/answers.md) — language and length of answers\n"
    )


async def test_only_the_index_is_in_the_prompt(folder: Path) -> None:
    """AM2: the system prompt has the index's lines and no body; a body comes by Read or as a hint."""
    await remember(folder)
    async with open_memory(folder) as memory, memory.session().turn("Which city is my home?") as turn:
        system = await turn.system_prompt("You are a travel agent.")
        hint = await turn.take_hint()
        read = await call(turn.tools, "Read", file_path="user/home.md")
    assert system.startswith("You are a travel agent.") and "- [Where the user lives](user/home.md) — home city" in system
    assert "Lives in Hangzhou" not in system and "**Why:** the user asked" not in system
    assert "Lives in Hangzhou" in str(hint) and "Lives in Hangzhou" in read


async def test_a_second_agent_knows(folder: Path) -> None:
    """AM3: another process on the same folder has the index in its prompt and gets the body as a hint."""
    await remember(folder)
    done = subprocess.run([sys.executable, "-c", SECOND_AGENT, str(folder)], capture_output=True, text=True, check=True, timeout=60)
    system, hint = done.stdout.split("=" * 20)
    assert "- [Where the user lives](user/home.md)" in system and "Lives in Hangzhou" not in system
    assert "> Lives in Hangzhou." in hint and "names the city" in hint


async def test_the_prompt_stays_the_same_and_news_come_with_hints(folder: Path) -> None:
    """The system prompt is one text for the session; what others add comes as index lines with a hint, once; own saves do not."""
    await remember(folder)
    async with open_memory(folder) as memory:
        session = memory.session("long")
        turn = await session.turn("Hello")
        first = await turn.system_prompt()
        await call(turn.tools, "Write", file_path="own.md", content=HOME.replace("Where the user lives", "Own"))
        (folder / "other.md").write_text("---\nname: Other\ndescription: news from a person\ntype: project\n---\n\nText.\n")
        turn = await session.turn("Xylophone")
        hint = await turn.take_hint()
        assert await turn.system_prompt() == first
        again = await (await session.turn("Xylophone")).take_hint()
    assert hint is not None and "> - [Other](other.md) — news from a person" in str(hint) and "own.md" not in str(hint)
    assert again is None


async def test_what_is_deleted_leaves_the_prompt_at_the_next_turn(folder: Path) -> None:
    """D4: a file deleted outside is gone from prompt, search and hints at the next turn."""
    await remember(folder)
    async with open_memory(folder) as memory:
        session = memory.session("long")
        assert "user/home.md" in await (await session.turn("Hello")).system_prompt()
        (folder / "user/home.md").unlink()
        turn = await session.turn("Which city is my home?")
        assert "user/home.md" not in await turn.system_prompt()
        assert await turn.take_hint() is None
        assert [match.path for match in await memory.search("home city time zone")] == []


async def test_a_picked_file_that_goes_away_is_left_out(folder: Path) -> None:
    """D4: a file deleted between the choice and the hint is not shown."""
    await remember(folder)
    picks = {"files": [{"path": path, "reason": "r"} for path in ("user/home.md", "feedback/answers.md")]}
    async with open_memory(folder, model=ScriptedModel([picks])) as memory:
        turn = await memory.session().turn("Hello")
        (folder / "user/home.md").unlink()
        hint = await turn.take_hint(wait_s=5)
    assert hint is not None and [file.path for file in hint.files] == ["feedback/answers.md"]


async def test_forgetting_leaves_a_tombstone(folder: Path) -> None:
    """Deleting a memory removes its file and line, and leaves a tombstone that has its name only as a hash."""
    await remember(folder)
    async with open_memory(folder) as memory:
        await call(memory.tools, "Delete", file_path="user/home.md")
    assert not (folder / "user/home.md").exists() and "home.md" not in (folder / "MEMORY.md").read_text()
    tombstones = (folder / ".mdmemory/tombstones").read_text()
    assert '"path":"user/home.md"' in tombstones and "Where the user lives" not in tombstones


async def test_an_index_that_can_not_be_read_is_said(folder: Path) -> None:
    """I6: with a MEMORY.md that is not text the prompt has the files' lines, and the status says what is left out."""
    await remember(folder)
    (folder / "MEMORY.md").write_bytes("# Überschrift\n".encode("latin-1"))
    async with open_memory(folder) as memory, memory.session().turn("Hello") as turn:
        assert "(user/home.md)" in await turn.system_prompt()
    assert turn.status.degraded is not None and "not UTF-8" in turn.status.degraded
    assert (folder / "MEMORY.md").read_bytes() == "# Überschrift\n".encode("latin-1")
