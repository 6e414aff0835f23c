"""`mdmemory pull` and `push`: a sandbox's memory and the folder people keep. Floor 8."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from mdmemory.cli.terminal import folder_option, json_option, opened, print_json, run


def _options(command: Any) -> Any:
    for option in (
        json_option,
        click.option("--force", is_flag=True, help="The source wins; many may go, or LOCATION was wiped."),
        click.option("-n", "--dry-run", is_flag=True, help="Only say what would be done."),
        folder_option,
        click.argument("location"),
    ):  # the last one is the first of the page
        command = option(command)
    return command


@click.command()
@_options
@run
async def pull(location: str, folder: str, dry_run: bool, force: bool, as_json: bool) -> int:
    """Bring a sandbox's changes into the folder.

    LOCATION is where the sandbox's memory is, such as docker://IMAGE?volume=NAME.
    """
    return await _sync(location, folder, push=False, dry_run=dry_run, force=force, as_json=as_json)


@click.command()
@_options
@run
async def push(location: str, folder: str, dry_run: bool, force: bool, as_json: bool) -> int:
    """Bring the folder's changes into a sandbox.

    LOCATION is where the sandbox's memory is, such as docker://IMAGE?volume=NAME.
    """
    return await _sync(location, folder, push=True, dry_run=dry_run, force=force, as_json=as_json)


async def _sync(location: str, folder: str, *, push: bool, dry_run: bool, force: bool, as_json: bool) -> int:
    """Returns 1 when something was left, as it needs a person."""
    from mdmemory.care.sync import sync
    from mdmemory.cli.reconcile_command import shown
    from mdmemory.cli.tables import print_table
    from mdmemory.memory import open_memory

    async with opened(folder) as mine, open_memory(location) as other:
        steps = await sync(mine.folder, other.folder, shown(location), push=push, dry_run=dry_run, force=force)
    if as_json:
        print_json([asdict(step) for step in steps])
    elif steps:
        print_table([(step.action, step.path, step.reason) for step in steps], ("WHAT", "FILE", "WHY"))
    else:
        click.echo(f"Nothing has changed in {folder if push else shown(location)}.")
    return int(any(step.action == "left" for step in steps))
