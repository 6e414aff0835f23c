"""`mdmemory doctor`. Floor 7."""

from __future__ import annotations

import click

from mdmemory.cli.terminal import folder_option, json_option, plain, print_json, require_folder, run


@click.command()
@folder_option
@click.option("--fix", is_flag=True, help="Repair what can be repaired safely: the index. People's lines stay as they are.")
@json_option
@run
async def doctor(folder: str, fix: bool, as_json: bool) -> int:
    """Look for what is wrong: index, broken files, links, sync conflicts. Exit code 1 when something is."""
    from dataclasses import asdict

    from mdmemory.care.doctor import examine, repair
    from mdmemory.memory import open_memory

    require_folder(folder)
    async with open_memory(folder) as memory:
        repaired = await repair(memory.folder) if fix else []
        findings = await examine(memory.folder)
    if as_json:
        print_json({"findings": [asdict(finding) for finding in findings], "repaired": repaired})
        return 1 if findings else 0
    for line in repaired:
        click.echo(f"{click.style('repaired', fg='green')}  {plain(line)}")
    for finding in findings:
        place = finding.path if finding.line is None else f"{finding.path}:{finding.line}"
        click.echo(f"{click.style(finding.code, fg='yellow')}  {plain(place)}  {plain(finding.message)}")
    if not findings:
        click.echo("Nothing is wrong.")
    elif any(finding.fixable for finding in findings):
        click.echo(click.style("`mdmemory doctor --fix` repairs the index lines among these.", dim=True), err=True)
    return 1 if findings else 0
