"""`mdmemory doctor`. Floor 8."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from mdmemory.cli.tables import print_note, print_table, progress
from mdmemory.cli.terminal import (
    command_on,
    folder_option,
    harmless,
    json_option,
    one_line,
    opened,
    print_json,
    require_folder,
    run,
)

if TYPE_CHECKING:
    from mdmemory.care.doctor import Finding
    from mdmemory.folder.any_folder import Folder

LONG = 500  # files: to look at more takes a second
COLOURS = {"error": "red", "warning": "yellow", "info": "blue"}


@click.command()
@folder_option
@click.option("--fix", "mend", is_flag=True, help="Mend what can be mended without loss; `mdmemory undo` takes it back.")
@click.option("--diff", "preview", is_flag=True, help="Show what --fix would change.")
@click.option("-c", "--code", "codes", metavar="CODE", multiple=True, help="Only this kind of finding; may be given again.")
@click.option("--explain", metavar="CODE", help="Say why a kind of finding matters and what to do.")
@json_option
@run
async def doctor(folder: str, mend: bool, preview: bool, codes: tuple[str, ...], explain: str | None, as_json: bool) -> int:
    """Find what is wrong, and with --fix mend what can be mended.

    Looks at files that can't be read or used, at the index, at copies, duplicates and dates, and for secrets and for text that
    reads like orders to a model. The exit code is 1 when an error or a warning is left; an info is for you to know.
    """
    from mdmemory.care.doctor import KINDS, fix, worst

    for code in (*codes, *([explain] if explain else ())):
        if code not in KINDS:
            raise click.UsageError(f"There is no finding {code!r}. There are {', '.join(KINDS)}.")
    if explain:
        _explain(explain, as_json)
        return 0
    require_folder(folder)
    async with opened(folder) as memory:
        findings = await _examined(memory.folder, codes)
        mended = await fix(memory.folder, findings) if mend else []
        if mended:
            findings = await _examined(memory.folder, codes)
        changes = await _diff(memory.folder, findings) if preview else ""
    exit_code = int(worst(findings) in ("error", "warning"))
    if as_json:
        found = {"findings": [each.as_json() for each in findings], "repaired": [each.as_json() for each in mended]}
        print_json({**found, **({"diff": changes} if preview else {})})
    elif preview:
        click.echo(harmless(changes) if sys.stdout.isatty() else changes, nl=False)
    else:
        _print(findings, mended)
        if fixable := sum(finding.is_fixable for finding in findings):
            print_note(f"`{command_on('doctor --fix', folder)}` mends {fixable} of {len(findings)} findings, --diff shows how.")
    return exit_code


async def _examined(folder: Folder, codes: Sequence[str]) -> list[Finding]:
    from mdmemory.care.doctor import examine

    with progress("Files", LONG) as tell:
        findings = await examine(folder, tell)
    return [finding for finding in findings if not codes or finding.code in codes]


async def _diff(folder: Folder, findings: Sequence[Finding]) -> str:
    from mdmemory.care.doctor import fixes
    from mdmemory.care.history import unified

    changes = await fixes(folder, findings)
    applied = await folder.apply(changes, "doctor", "doctor --fix", dry_run=True) if changes else None
    return "".join(unified(item.path, item.before, item.after) for item in (applied.files if applied else ()))


def _print(findings: Sequence[Finding], mended: Sequence[Finding]) -> None:
    for finding in mended:
        click.echo(f"{click.style('mended', fg='green')}  {one_line(finding.place)}  {finding.code}: {one_line(finding.message)}")
    if mended:
        click.echo()
    if findings:
        rows = [(finding.place, finding.kind.level, finding.code, finding.message) for finding in findings]
        print_table(rows, ("WHERE", "LEVEL", "WHAT", "WHY"), whole=True)
    else:
        click.echo("Nothing else is wrong." if mended else "Nothing is wrong.")


def _explain(code: str, as_json: bool) -> None:
    from mdmemory.care.doctor import KINDS

    level, why, remedy, is_fixable = KINDS[code]
    if as_json:
        print_json({"code": code, "level": level, "why": why, "remedy": remedy, "fixable": is_fixable})
        return
    click.echo(f"{code}, {'an' if level[0] in 'aeiou' else 'a'} {click.style(level, fg=COLOURS[level])}\n")
    click.echo(f"{why} {remedy}{' `mdmemory doctor --fix` can do it.' if is_fixable else ''}")
