"""`mdmemory watch`. Floor 8."""

from __future__ import annotations

import click

from mdmemory.cli.terminal import folder_option, json_option, one_line, opened, print_json, require_folder, run

EVERY_S = 0.5
COLOURS = {"created": "green", "changed": "yellow", "deleted": "red"}


@click.command()
@folder_option
@json_option
@run
async def watch(folder: str, as_json: bool) -> int:
    """Show what changes in the folder, live, until Ctrl-C.

    A line a change: what happened, the file, its name. With --json each line is an object.
    """
    import asyncio

    require_folder(folder)
    try:
        async with opened(folder) as memory:
            await memory.folder.refresh()
            click.echo(f"Watching {one_line(folder)}. Ctrl-C ends it.", err=True)
            while True:
                names = {path: known.header.name if known.header else "" for path, known in memory.folder.files.items()}
                await asyncio.sleep(EVERY_S)
                for path in sorted(await memory.folder.refresh()):
                    known = memory.folder.files.get(path)
                    change = "deleted" if known is None else "changed" if path in names else "created"
                    name = known.header.name if known and known.header else names.get(path, "")
                    if as_json:
                        print_json({"change": change, "path": path, "name": name}, indent=None)
                    else:
                        click.echo(f"{click.style(change, fg=COLOURS[change])}  {one_line(path)}  {one_line(name)}".rstrip())
    except asyncio.CancelledError:  # Ctrl-C is how it ends
        return 0
