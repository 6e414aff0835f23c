"""What every command shares: the folder option, JSON, tables, and errors without a traceback. Floor 7."""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

import click

from mdmemory.errors import MdmemoryError

Command = TypeVar("Command", bound=Callable[..., Any])

folder_option = click.option(
    "-f", "--folder", envvar="MDMEMORY_FOLDER", default="memory", show_default=True, metavar="DIR", help="The memory's folder."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def run(command: Callable[..., Coroutine[Any, Any, int | None]]) -> Callable[..., None]:
    """Make a click callback of an async command: its integer is the exit code, our errors are one line on stderr."""

    @functools.wraps(command)
    def callback(*args: Any, **kwargs: Any) -> None:
        import asyncio

        try:
            code = asyncio.run(command(*args, **kwargs))
        except MdmemoryError as error:
            raise click.ClickException(str(error)) from error
        except KeyboardInterrupt:
            raise click.Abort from None
        sys.exit(code or 0)

    return callback


def require_folder(folder: str) -> None:
    """Stop with a plain message when there is no such folder.

    Raises:
        ClickException
    """
    if "://" not in folder and not os.path.isdir(os.path.expanduser(folder)):
        raise click.ClickException(
            f"There is no folder {folder!r}. Make one with `mdmemory init -f {folder}`, or name another with --folder."
        )


def print_json(value: Any) -> None:
    """Print a value as JSON that keeps every script readable."""
    click.echo(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def print_table(rows: Sequence[Sequence[str]], headings: Sequence[str]) -> None:
    """Print columns; on a terminal the last one is cut at its edge, piped nothing is."""
    cells = [[plain(cell) for cell in row] for row in rows]
    widths = [max(cell_width(row[column]) for row in [headings, *cells]) for column in range(len(headings))]
    room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for number, row in enumerate([headings, *cells]):
        padded = [cell + " " * (width - cell_width(cell)) for cell, width in zip(row[:-1], widths[:-1], strict=True)]
        line = cut("  ".join([*padded, row[-1]]).rstrip(), room)
        click.echo(click.style(line, dim=True) if number == 0 else line)


def cut(text: str, room: int | None) -> str:
    """The text, ended with … where it would take more than `room` columns."""
    if room is None or cell_width(text) <= room:
        return text
    while cell_width(text) > room - 1:
        text = text[:-1]
    return f"{text}…"


def plain(text: str) -> str:
    """One line that can't steer a terminal."""
    return "".join(char if char.isprintable() else " " for char in " ".join(text.split()))


def cell_width(text: str) -> int:
    """Columns that a text takes in a terminal: East Asian wide characters take two, combining marks none."""
    return sum(0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
