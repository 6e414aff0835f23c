"""`--config CLIENT`: what to tell a program that is to use the memory. Floor 8."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import click

from mdmemory.cli.terminal import print_json

Snippet = Callable[[str, str], tuple[str, str]]
"""Our program and the folder, as others must name them, to where a snippet goes and what it says."""


def print_config(client: str, clients: Sequence[str], snippet: Snippet, folder: str, *, as_json: bool) -> None:
    """Print a client's snippet, or for `list` the names of all clients; where it goes is said on standard error, for pipes.

    Raises:
        InvalidArguments: `snippet` does not know the client.
    """
    import os
    import shutil

    if client == "list":
        if as_json:
            print_json(clients)
        else:
            click.echo("\n".join(clients))
        return
    place = folder if "://" in folder else os.path.abspath(os.path.expanduser(folder))
    where, text = snippet(shutil.which("mdmemory") or "mdmemory", place)
    if as_json:
        print_json({"client": client, "where": where, "text": text})
    else:
        click.echo(f"For {where}:", err=True)
        click.echo(text)
