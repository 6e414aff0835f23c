"""`mdmemory edit`. Floor 8."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import click

from mdmemory.cli.completing import complete_path
from mdmemory.cli.tables import print_note
from mdmemory.cli.terminal import (
    command_on,
    failure,
    folder_option,
    inside,
    json_option,
    one_line,
    opened,
    print_json,
    require_folder,
    run,
    wants_to_edit_again,
)

if TYPE_CHECKING:
    from mdmemory.folder.any_folder import Folder
    from mdmemory.folder.settle import Applied


@click.command()
@click.argument("name", nargs=-1, required=True, shell_complete=complete_path)
@folder_option
@json_option
@run
async def edit(name: tuple[str, ...], folder: str, as_json: bool) -> None:
    """Open a memory file in your editor, and check what comes back.

    NAME is its path as `ls` has it, its name, or MEMORY.md. The editor is that of VISUAL or EDITOR. What is saved while you write
    is merged with your edit, line by line; what can't be read as a memory file is shown to you again. It works in sandboxes too.
    """
    require_folder(folder)
    async with opened(folder) as memory:
        await memory.folder.refresh()
        path = _path_of(memory.folder, " ".join(name), folder)
        place = Path(tempfile.mkdtemp(prefix="mdmemory-"))
        draft = place / re.sub(r"[^\w.-]", "-", PurePosixPath(path).name)  # older clicks hand it to a shell
        applied = await _edited(memory.folder, path, draft)
        shutil.rmtree(place)
    if as_json:
        print_json({"path": path, "changed": applied is not None})
    elif applied is None:
        click.echo("Nothing was changed.")
    else:
        click.echo(f"Saved {one_line(path)}.")
        for warning in applied.warnings:
            print_note(warning)


def _path_of(folder: Folder, name: str, place: str) -> str:
    from mdmemory.folder.entities import Entities
    from mdmemory.folder.known import INDEX
    from mdmemory.folder.search import filed

    path = inside(name, place)
    if path == INDEX or path in folder.files:
        return path
    found = Entities(filed(folder.files, folder.catalog.mount_of), folder.outdated, {}).resolve(name)
    if found is None:
        raise failure(f"There is no {name!r}: `{command_on('ls', place)}` lists what there is, and `mdmemory remember` makes more.")
    return found


async def _edited(folder: Folder, path: str, draft: Path) -> Applied | None:
    """Let a person edit a copy until it can be saved; None when nothing was changed. On a failure the copy stays where it is."""
    from mdmemory.backends.protocol import File, etag_of
    from mdmemory.errors import BackendError, Conflict, InvalidMemoryFile, PermissionDenied
    from mdmemory.files.changes import Create, Replace
    from mdmemory.files.memory_file import parse
    from mdmemory.folder.known import INDEX

    found = (await folder.read_many([path]))[path]
    before = found.data if isinstance(found, File) else b""
    draft.write_bytes(before)
    while True:
        click.edit(filename=os.fspath(draft))
        after = draft.read_bytes()
        if after == before:
            return None
        try:
            warnings = () if path == INDEX else parse(path, after).warnings
            change = Replace(path, after, etag_of(before), before) if isinstance(found, File) else Create(path, after)
            applied = await folder.apply([change], "person", "edit")
        except (InvalidMemoryFile, Conflict, PermissionDenied, BackendError) as error:
            if wants_to_edit_again(error):
                continue
            raise failure(f"{one_line(str(error))} Nothing was saved; your text is in {draft}.") from error
        for warning in warnings:
            print_note(warning)
        return applied
