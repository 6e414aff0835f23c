"""`mdmemory import`. Floor 8."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mdmemory.cli.tables import print_note, print_table, progress
from mdmemory.cli.terminal import folder_option, json_option, opened, print_json, refuse_file, run

if TYPE_CHECKING:
    from mdmemory.care.importing import Imported

LONG = 50  # conversations: to write more takes a second
KINDS = ("claude-code", "markdown", "basic-memory", "mem0", "chatgpt", "claude")


@click.command("import")
@click.argument("kind", type=click.Choice(KINDS), metavar="KIND")
@click.argument("source")
@folder_option
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be done.")
@json_option
@run
async def import_(kind: str, source: str, folder: str, dry_run: bool, as_json: bool) -> int:
    """Bring in what another memory or app has kept.

    KIND is claude-code or markdown (a folder of Markdown files), basic-memory (its folder), mem0 (the JSON of get_all), chatgpt or
    claude (their data exports, into the journal). SOURCE is a file, a folder, or a zip archive as it was downloaded. What was
    changed here since the last import is not overwritten. The exit code is 1 when something needs a person.
    """
    from dataclasses import asdict

    from mdmemory.care.importers.kinds import plan_import
    from mdmemory.care.importing import import_plan

    refuse_file(folder)
    plan = plan_import(kind, source)
    async with opened(folder) as memory:
        with progress("Conversations", LONG) as tell:
            imported = await import_plan(memory.folder, kind, plan, dry_run=dry_run, progress=tell)
    if as_json:
        print_json({"dry_run": dry_run, **asdict(imported)})
    else:
        _print(imported)
    return int(any(step.action == "conflict" for step in imported.steps))


def _print(imported: Imported) -> None:
    steps = [(step.action, step.path, step.reason) for step in imported.steps if step.action != "same"]
    heard = [(f"{each.new} new", each.session, each.title) for each in imported.conversations if each.new]
    left: dict[str, list[str]] = {}
    for each in imported.left:
        left.setdefault(each.reason, []).append(each.where)
    tables = (
        (steps, ("WHAT", "FILE", "WHY")),
        (heard, ("MESSAGES", "SESSION", "TITLE")),
        ([(f"{len(places)}", places[0], reason) for reason, places in left.items()], ("NOT IMPORTED", "SUCH AS", "WHY")),
    )
    shown = [(rows, headings) for rows, headings in tables if rows]
    for number, (rows, headings) in enumerate(shown):
        if number:
            click.echo()
        print_table(rows, headings, whole=True)
    if not (steps or heard):
        click.echo(f"{chr(10) if shown else ''}Nothing is new.")
    same = sum(step.action == "same" for step in imported.steps)
    known = sum(each.known for each in imported.conversations)
    if same or known:
        print_note(f"Here already: files {same:,}, messages {known:,}.")
