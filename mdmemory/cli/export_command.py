"""`mdmemory export`. Floor 8."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mdmemory.cli.tables import print_note
from mdmemory.cli.terminal import failure, folder_option, json_option, opened, print_json, require_folder, run

if TYPE_CHECKING:
    from mdmemory.care.export import Form
    from mdmemory.folder.any_folder import Folder


@click.command()
@click.argument("out")
@folder_option
@click.option("--as", "form", type=click.Choice(("zip", "markdown", "json")), required=True, help="What it becomes.")
@click.option("--journal", is_flag=True, help="With the conversations.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@json_option
@run
async def export(out: str, folder: str, form: Form, journal: bool, force: bool, as_json: bool) -> None:
    """Take the memory away as one file.

    A zip archive has the files as they are, a Markdown document each under its path, JSON their headers and bodies. The history
    is in none of them. OUT is the file to write; - is the standard output.
    """
    from mdmemory.care.export import export as exported

    require_folder(folder)
    if out == "-" and as_json:
        raise failure("--json says what was written, and - is where the export itself goes. Name a file, or leave out --json.")
    async with opened(folder) as memory:
        if out != "-":
            _refuse(Path(out), memory.folder, force)
        done = await exported(memory.folder, form, journal=journal)
    if out == "-":
        sys.stdout.buffer.write(done.data)
    else:
        _write(Path(out), done.data)
    if as_json:
        print_json({"written": out, "bytes": len(done.data), "skipped": dict(done.skipped)})
        return
    for path, reason in done.skipped.items():
        print_note(f"skipped {path}: {reason}")
    if out != "-":
        click.echo(f"Wrote {out} ({len(done.data):,} bytes).")


def _refuse(out: Path, folder: Folder, force: bool) -> None:
    """Stop where the export would become a part of the memory, or replace something.

    Raises:
        ClickException
    """
    from mdmemory.folder.any_folder import parts_of

    place = out.resolve()
    for part in parts_of(folder).values():
        root = getattr(part.backend, "watchable_root", None)
        if root is not None and place.is_relative_to(root):
            raise failure(f"{str(out)!r} is inside the memory itself. Name a place outside of it.")
    if place.is_dir() or not place.parent.is_dir():
        raise failure(f"{str(out)!r} is a folder, or in one that is not there. Name a file.")
    if place.exists() and not force:
        raise failure(f"{str(out)!r} is there already. Nothing was written; --force writes over it.")


def _write(out: Path, data: bytes) -> None:
    """Write the file as a whole, or not at all."""
    place = out.resolve()
    part = place.with_name(f".{place.name}.part")
    try:
        part.write_bytes(data)
        os.replace(part, place)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise failure(f"{str(out)!r} can't be written: {error.strerror}.") from None
