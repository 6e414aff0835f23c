"""What is longer than the screen goes through a pager, as with git. Floor 8."""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout

import click


@contextmanager
def paged() -> Iterator[None]:
    """Show what is printed in a pager (PAGER, else less) when it has more lines than the terminal; piped, nothing changes."""
    if not sys.stdout.isatty():
        yield
        return
    held = _Held()
    with redirect_stdout(held):
        yield
    text = held.getvalue()
    if text.count("\n") < shutil.get_terminal_size().lines:
        click.echo(text, nl=False)
    else:
        click.echo_via_pager(text)


class _Held(io.StringIO):
    """What is kept back, made for the terminal all the same."""

    encoding = sys.stdout.encoding if sys.stdout is not None else "utf-8"

    def isatty(self) -> bool:
        return True
