"""The paths of memory files, for a shell that completes them. Floor 8."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from mdmemory.cli.terminal import DEFAULT_FOLDER

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

MAX_LISTED = 5_000  # names that are looked at for one press of the key


def complete_path(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The memory files of the folder on this machine whose paths, or names, begin so."""
    from click.shell_completion import CompletionItem

    folder = os.path.expanduser(context.params.get("folder") or os.environ.get("MDMEMORY_FOLDER") or DEFAULT_FOLDER)
    found, seen = list[CompletionItem](), 0
    for place, folders, files in os.walk(folder):
        hidden = ("journal",) if place == folder else ()
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in hidden)
        seen += len(files)
        for name in sorted(files):
            path = os.path.relpath(os.path.join(place, name), folder).replace(os.sep, "/")
            if name.casefold().endswith(".md") and not name.startswith(".") and (path.startswith(begun) or name.startswith(begun)):
                found.append(CompletionItem(path))
        if seen > MAX_LISTED:
            break
    return found
