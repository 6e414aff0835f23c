"""The demo: the loop of `mdmemory chat` with a scripted model, in two processes on one folder. Floor 7.

What the model says is scripted; everything else is real: the tools, the files, the index, the hint, the second process.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click

from mdmemory.cli.chat_loop import Message, ScriptedChat, assistant, calling
from mdmemory.cli.conversation import converse
from mdmemory.memory import open_memory
from mdmemory.models import ScriptedModel

HOME = """---
name: Where the user lives
description: home city, time zone, local recommendations, travel from home
type: user
---

Lives in Hangzhou, China (UTC+8).
"""
ANSWERS = """---
name: How to answer
description: language, length and tone of answers
type: feedback
---

Answer in Chinese, concisely.

**Why:** the user reads answers on the phone between meetings.

**How to apply:** every answer, unless the user asks for detail or writes that another language is needed.
"""
FIRST = "Remember: I live in Hangzhou and prefer concise Chinese answers. I read them on my phone between meetings."
SECOND = "Where should I go for a walk this evening?"
Script = list[Message | Callable[[list[Message]], Message]]


def play_in_processes(folder: str) -> int:
    """Run both acts, each in a process of its own; returns the exit code of the first that failed."""
    click.echo("The model in this demo is scripted; its tools, the files, the index and the hints are real.")
    for act, title in ((1, "First process: the agent is told something."), (2, "Second process, new conversation: it knows.")):
        click.echo(click.style(f"\n{title}", bold=True))
        code = subprocess.run([sys.executable, "-m", "mdmemory", "demo", folder, "--act", str(act)], check=False).returncode
        if code:
            return code
    click.echo(click.style(f"\nWhat is left in {folder}", bold=True))
    for path in sorted(Path(folder).rglob("*.md")):
        click.echo(f"  {path.relative_to(folder)}")
    click.echo(f"\nRead it, change it in your editor, then: mdmemory ls -f {folder}")
    return 0


def play(folder: str, act: int) -> int:
    """One act, in this process."""
    return asyncio.run(_play(folder, act))


async def _play(folder: str, act: int) -> int:
    if act == 1:
        script: Script = [
            calling("Write", file_path="user/home.md", content=HOME),
            calling("Write", file_path="feedback/answers.md", content=ANSWERS),
            assistant("记住了：您住在杭州，回答用简洁的中文。"),
        ]
        async with open_memory(folder) as memory:
            return await converse(memory.session("demo-1"), ScriptedChat(script), [FIRST])
    picks = {
        "files": [
            {"path": "user/home.md", "reason": "a walk starts from home"},
            {"path": "feedback/answers.md", "reason": "how to word the answer"},
        ]
    }
    async with open_memory(folder, model=ScriptedModel([picks])) as memory:
        return await converse(memory.session("demo-2"), ScriptedChat([_recommend]), [SECOND])


def _recommend(messages: list[Message]) -> Message:
    """The scripted model's answer, from what the hint says and nothing else."""
    hint = str(messages[-1]["content"])
    city = re.search(r"Lives in (\w+)", hint)
    if city is None or "in Chinese" not in hint:
        return assistant("I don't know where you live.")
    place = {"Hangzhou": "去西湖边走走：断桥到白堤，日落最美。"}.get(city[1], f"在{city[1]}的公园走走。")
    return assistant(place)
