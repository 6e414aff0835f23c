"""The demo: the loop of `mdmemory chat` with a scripted model, in two processes on one folder. Floor 8.

What the model says is scripted; everything else is real: the tools, the files, the index, the hint, the second process.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click

from mdmemory.backends.protocol import LOG, TAIL_BYTES
from mdmemory.cli.chat_loop import Message, ScriptedChat, assistant, calling
from mdmemory.cli.conversation import JsonScreen, PlainScreen, converse
from mdmemory.cli.terminal import CalledWrongly, command_on, failure, print_json
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
FILES = {"user/home.md": HOME, "feedback/answers.md": ANSWERS}
FIRST = "Remember: I live in Hangzhou and prefer concise Chinese answers. I read them on my phone between meetings."
SECOND = "Where should I go for a walk this evening?"
SESSIONS = {1: "demo-1", 2: "demo-2"}
SCRIPTED = "The model in this demo is scripted; its tools, the files, the index and the hints are real."


def play_in_processes(folder: str, as_json: bool) -> int:
    """Run both acts, each in a process of its own; returns the exit code of the first that failed.

    Raises:
        ClickException: the folder holds something else than a demo's memory.
    """
    _refuse_foreign(folder)
    place = Path(folder).expanduser()
    _tell(SCRIPTED, as_json)
    if all((place / path).exists() for path in FILES):
        _tell("\nThe first process is left out: the folder has its files, as you may have changed them.", as_json)
    elif code := _play_in_process(folder, 1, "First process: the agent is told something.", as_json):
        return code
    if code := _play_in_process(folder, 2, "Second process, new conversation: it knows.", as_json):
        return code
    left = sorted(path.relative_to(place).as_posix() for path in place.rglob("*.md"))
    if as_json:
        print_json({"session": None, "role": "demo", "text": f"What is left in {folder}", "files": left}, indent=None)
        return 0
    click.echo(click.style(f"\nWhat is left in {folder}", bold=True))
    click.echo("".join(f"  {path}\n" for path in left))
    click.echo(f"Read it, change a file in your editor, and run it again. Or: {command_on('ls', folder)}")
    return 0


def play(folder: str, act: int, as_json: bool) -> int:
    """One act, in this process."""
    session = SESSIONS[act]
    screen = JsonScreen(session) if as_json else PlainScreen()
    if act == 1:
        missing = [path for path in FILES if not (Path(folder).expanduser() / path).exists()]
        calls = [calling("Write", file_path=path, content=FILES[path]) for path in missing]
        converse(
            folder,
            session,
            ScriptedChat([*calls, assistant("记住了：您住在杭州，回答用简洁的中文。")]),
            screen,
            [FIRST],
            journal=False,
        )
        return 0
    picks = {
        "files": [
            {"path": "user/home.md", "reason": "a walk starts from home"},
            {"path": "feedback/answers.md", "reason": "how to word the answer"},
        ]
    }
    converse(folder, session, ScriptedChat([_recommend]), screen, [SECOND], ScriptedModel([picks]), journal=False)
    return 0


def _play_in_process(folder: str, act: int, title: str, as_json: bool) -> int:
    if not as_json:
        click.echo(click.style(f"\n{title}", bold=True))
    options = ["--act", str(act), *(["--json"] if as_json else [])]
    return subprocess.run([sys.executable, "-m", "mdmemory", "demo", *options, "--", folder], check=False).returncode


def _refuse_foreign(folder: str) -> None:
    """A demo writes only where nothing is, or where a demo wrote before."""
    if "://" in folder:
        raise CalledWrongly("The demo needs a folder on this machine: two processes must reach it.")
    place = Path(folder).expanduser()
    try:
        if not place.exists() or not any(place.iterdir()):
            return
        with open(place / LOG, "rb") as log:
            is_demo = f'"author":"agent:{SESSIONS[1]}"'.encode() in log.read(TAIL_BYTES)
    except FileNotFoundError:
        is_demo = False
    except OSError as error:
        raise failure(f"The demo can't look into {folder}: {error.strerror}.") from None
    if not is_demo:
        raise failure(f"{folder} holds something that is not from a demo, so nothing was done. Name another: mdmemory demo FOLDER")


def _tell(text: str, as_json: bool) -> None:
    if as_json:
        print_json({"session": None, "role": "demo", "text": text.strip()}, indent=None)
    else:
        click.echo(text)


def _recommend(messages: list[Message]) -> Message:
    """The scripted model's answer, from what the hint says and nothing else."""
    hint = str(messages[-1]["content"])
    found = re.search(r"Lives in ([^\n,.(]+)", hint)
    if found is None:
        return assistant("I don't know where you live.")
    place = found[1].strip()
    if "in Chinese" not in hint:
        return assistant(f"Try a park in {place}.")
    return assistant({"Hangzhou": "去西湖边走走：断桥到白堤，日落最美。"}.get(place, f"在{place}的公园走走。"))
