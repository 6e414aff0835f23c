"""Sessions in a terminal, written down: each `$ command` is run by a real shell, and what follows must be what it prints."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from command import environment

_DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")
_EVENT = re.compile(r"^[0-9a-f]{8}(?=  |-outside  )|(?<=event )[0-9a-f]{8}\b|(?<=undo )[0-9a-f]{8}\b", re.MULTILINE)
_MINUTE = re.compile(r"(?<=DATE )\d\d:\d\d(?=  )")
_MDMEMORY = f'mdmemory() {{ "{sys.executable}" -m mdmemory "$@"; }}\n'


class Step(NamedTuple):
    """A command, which may have several lines, and what it prints on both its outputs."""

    command: str
    output: str


def read(text: str) -> Iterator[Step]:
    """The steps of a session.

    A command stands behind `$ ` and goes on in lines that begin with `> `. If it fails, `exit code N` ends its output. Dates are
    written as DATE, or as any date; ids of events, and the minutes behind dates, are any, too.
    """
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.split("\n")
        length = next((n for n, line in enumerate(lines[1:], 1) if line != ">" and not line.startswith("> ")), len(lines))
        yield Step("\n".join([lines[0], *(line[2:] for line in lines[1:length])]), _clean("\n".join(lines[length:])))


def replay(steps: Sequence[Step], folder: Path) -> list[Step]:
    """The same commands with what they really print in this folder."""
    return [Step(step.command, _run(step.command, folder)) for step in steps]


def write(steps: Sequence[Step]) -> str:
    """The session as text."""
    return "\n".join(f"$ {_continued(step.command)}\n{step.output}" for step in steps)


def is_to_be_renewed() -> bool:
    """Whether transcripts are to be written anew instead of compared: `UPDATE_TRANSCRIPTS=1 scripts/test -k transcript`."""
    return bool(os.environ.get("UPDATE_TRANSCRIPTS"))


def _continued(command: str) -> str:
    first, *more = command.split("\n")
    return "\n".join([first, *(f"> {line}".rstrip() for line in more)])


def _run(command: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-c", _MDMEMORY + command],
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    return _clean(done.stdout + (f"\nexit code {done.returncode}" if done.returncode else ""))


def hide_dates(text: str) -> str:
    """The text with every date as DATE, and every event's id and minute as if they were the same."""
    return _MINUTE.sub("12:00", _EVENT.sub("00000000", _DATE.sub("DATE", text)))


def _clean(output: str) -> str:
    output = hide_dates(output.replace("\n\nexit code", "\nexit code")).strip("\n")
    return f"{output}\n" if output else ""
