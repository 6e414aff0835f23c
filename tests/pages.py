"""Pages of the documentation, and what becomes of their blocks when somebody tries them."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from command import write
from transcript import hide_dates, read, replay
from transcript import write as as_text

BLOCK = re.compile(r"^```(?P<kind>\w*)(?: (?P<path>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A fenced block. A `text` block holds what the `python` block before it prints; one with a path is that file."""

    kind: str
    path: str | None
    text: str


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page in their order."""
    for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
        yield Block(found["kind"], found["path"], found["text"])


def printed(code: str, names: dict[str, Any]) -> str:
    """What a block of Python prints; what it defines is there for the next."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "<block>", "exec"), names)
    return hide_dates(output.getvalue())


def try_page(page: Path, folder: Path) -> None:
    """From top to bottom, files are as shown, Python prints what follows it, and commands what stands below them.

    Args:
        folder: the current one.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    last = ""
    for block in blocks(page):
        if block.path is not None:
            write(folder / block.path, block.text)
        elif block.kind == "python":
            last = printed(block.text, names)
        elif block.kind == "text":
            assert last == hide_dates(block.text)
        elif block.kind == "console":
            steps = list(read(block.text))
            assert steps and as_text(replay(steps, folder)) == as_text(steps)
