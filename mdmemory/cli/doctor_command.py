"""`mdmemory doctor`. Floor 7."""

from __future__ import annotations

import click

from mdmemory.cli.tables import print_note, print_table
from mdmemory.cli.terminal import command_on, folder_option, json_option, one_line, opened, print_json, require_folder, run


@click.command()
@folder_option
@click.option("--fix", is_flag=True, help="Repair the index: lines that are missing or lead nowhere. People's words stay.")
@json_option
@run
async def doctor(folder: str, fix: bool, as_json: bool) -> int:
    """Find what is wrong, and with --fix repair the index.

    Looks at the index, at files that can't be read, at links, at copies that sync programs left. The exit code is 1 when
    something is left to do.
    """
    from dataclasses import asdict

    from mdmemory.care.doctor import examine, repair

    require_folder(folder)
    async with opened(folder) as memory:
        repaired = await repair(memory.folder) if fix else []
        findings = await examine(memory.folder)
    if as_json:
        print_json({"findings": [asdict(finding) for finding in findings], "repaired": repaired})
        return 1 if findings else 0
    for line in repaired:
        click.echo(f"{click.style('repaired', fg='green')}  {one_line(line)}")
    if findings:
        if repaired:
            click.echo()
        places = [finding.path if finding.line is None else f"{finding.path}:{finding.line}" for finding in findings]
        rows = [(place, finding.code, finding.message) for place, finding in zip(places, findings, strict=True)]
        print_table(rows, ("WHERE", "WHAT", "WHY"), whole=True)
    else:
        click.echo("Nothing is wrong." if not repaired else "\nNothing else is wrong.")
    if fixable := sum(finding.fixable for finding in findings):
        print_note(f"`{command_on('doctor --fix', folder)}` repairs {fixable} of {len(findings)} findings.")
    return 1 if findings else 0
