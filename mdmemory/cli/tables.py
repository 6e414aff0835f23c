"""Tables and notes that fit a terminal, in any script: wide characters take two columns, combining marks none. Floor 8."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, TextIO

import click

from mdmemory.cli.terminal import harmless, one_line

_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


def print_table(rows: Sequence[Sequence[str]], headings: Sequence[str], *, whole: bool = False) -> None:
    """Print columns. On a terminal the last one is cut at its edge, or wrapped when it must be `whole`; piped, it is left alone."""
    cells = [[one_line(cell) for cell in row] for row in rows]
    room = _terminal_width(sys.stdout)
    widths = [max(cell_width(row[column]) for row in [headings, *cells]) for column in range(len(headings) - 1)]
    if room is not None:
        widths = [min(width, room // 2) for width in widths]  # one long path must not push every line's last column out
    for number, row in enumerate([headings, *cells]):
        padded = [cell + " " * (width - cell_width(cell)) for cell, width in zip(row[:-1], widths, strict=True)]
        first = "  ".join([*padded, ""])
        if whole and room is not None:
            indent = sum(widths) + 2 * len(widths)
            line = first + f"\n{' ' * indent}".join(wrap(row[-1], room - indent))
        else:
            line = cut((first + row[-1]).rstrip(), room)
        click.echo(click.style(line, dim=True) if number == 0 else line)


def print_note(text: str) -> None:
    """Print what is said about the result, beside it."""
    room = _terminal_width(sys.stderr)
    lines = [one_line(text)] if room is None else wrap(one_line(text), room - 2)
    click.echo(click.style("\n  ".join(lines), dim=True), err=True)


def print_diff(text: str) -> None:
    """Print a difference as `diff -u` has it, added lines green and removed ones red."""
    for line in text.split("\n")[: -1 if text.endswith("\n") else None]:
        click.echo(click.style(harmless(line), fg=_COLOURS.get(line[:1])))


@contextmanager
def progress(label: str, least: int = 1) -> Iterator[Callable[[int, int], None]]:
    """What is told how many steps of some work are done, and how many there are, and on a terminal shows it.

    Args:
        least: steps from which on it is shown.
    """
    with ExitStack() as stack:
        bar: Any = None

        def tell(done: int, total: int) -> None:
            nonlocal bar
            if bar is None and total >= least and sys.stderr.isatty():
                bar = stack.enter_context(click.progressbar(length=total, label=label, file=sys.stderr))
            if bar is not None:
                bar.update(done - bar.pos)
            if done >= total:
                stack.close()

        yield tell


def wrap(text: str, room: int) -> list[str]:
    """Lines of at most `room` columns, broken at spaces; a longer word stays whole."""
    lines = [""]
    for word in text.split(" "):
        longer = f"{lines[-1]} {word}" if lines[-1] else word
        if lines[-1] and cell_width(longer) > room:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines


def cut(text: str, room: int | None) -> str:
    """The text, ended with … where it would take more than `room` columns."""
    if room is None or cell_width(text) <= room:
        return text
    used = 0
    for position, char in enumerate(text):
        used += cell_width(char)
        if used > room - 1:
            return f"{text[:position]}…"
    return text


def cell_width(text: str) -> int:
    """Columns that a text takes in a terminal."""
    return sum(map(_char_width, text))


def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _terminal_width(stream: TextIO) -> int | None:
    if not stream.isatty():
        return None
    from shutil import get_terminal_size

    return get_terminal_size().columns
