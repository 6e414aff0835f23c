"""`mdmemory sync`: a folder of yours and another one, kept together. Floor 8."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

import click

from mdmemory.cli.terminal import INTERRUPTED, json_option, one_line, print_json, refuse_file, run

if TYPE_CHECKING:
    from mdmemory.care.reconcile import Pair, Step, Synced

_SECRET = ("password", "sslpassword", "passfile", "user")


@click.command()
@click.argument("folder", metavar="DIR")
@click.argument("location")
@click.option("-n", "--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--diff", "as_diff", is_flag=True, help="Show what changes as a diff; nothing is written.")
@click.option("--watch", is_flag=True, help="Go on until Ctrl-C, whenever something changes.")
@click.option("--max-deletions", type=click.IntRange(min=0), metavar="N", help="How many files may be deleted.")
@json_option
@run
async def sync(
    folder: str, location: str, dry_run: bool, as_diff: bool, watch: bool, max_deletions: int | None, as_json: bool
) -> int:
    """Keep a folder and another one together, both ways.

    DIR is yours, and LOCATION any other memory, such as postgres://HOST/DB?folder=NAME or a folder. What one side changed goes
    to the other, edits of different lines are merged, and of two edits of the same lines both are kept. More than ten
    deletions, or a fifth of the files, need --max-deletions.
    """
    from mdmemory.care.reconcile import Pair, reconcile
    from mdmemory.memory import open_memory

    if watch and (dry_run or as_diff):
        raise click.UsageError("--watch writes, so it can't be had with --dry-run or --diff.")
    for each in (folder, location):
        refuse_file(each)
    one, two = (f"{name_of(each)}/" for each in (folder, location))
    if one.startswith(two) or two.startswith(one):
        raise click.UsageError("DIR and LOCATION are the same folder, or one lies in the other.")
    async with open_memory(folder) as here, open_memory(location) as there:
        pair = Pair(here.folder, there.folder, name_of(location), _own_name(folder))
        if watch:
            return await _watch(pair, location, max_deletions, as_json=as_json)
        synced = await reconcile(pair, max_deletions=max_deletions, dry_run=dry_run, diff=as_diff)
    _print(synced, location, as_json=as_json, as_diff=as_diff)
    return int(synced.needs_person)


async def _watch(pair: Pair, location: str, max_deletions: int | None, *, as_json: bool) -> int:
    import asyncio

    from mdmemory.care.reconcile import Synced, keep_together

    def tell(news: Synced | str) -> None:
        if isinstance(news, Synced):
            for step in news.steps:
                if as_json:
                    print_json(_as_json(step), indent=None)
                else:
                    click.echo(one_line(f"{step.action} {step.side} {step.path} {step.reason}".rstrip()))
        for note in news.notes if isinstance(news, Synced) else (news,):
            click.echo(one_line(note), err=True)

    click.echo(f"Keeping the two together: {one_line(shown(location))}. Ctrl-C ends it.", err=True)
    try:
        await keep_together(pair, tell, max_deletions=max_deletions)
    except asyncio.CancelledError:  # Ctrl-C is how it ends
        return 0
    return INTERRUPTED


def _as_json(step: Step) -> dict[str, str]:
    found: dict[str, str] = asdict(step)
    return found if step.diff else {key: value for key, value in found.items() if key != "diff"}


def _print(synced: Synced, location: str, *, as_json: bool, as_diff: bool) -> None:
    from mdmemory.cli.tables import print_diff, print_note, print_table

    if as_json:
        return print_json({"steps": [_as_json(step) for step in synced.steps], "notes": synced.notes})
    if synced.steps:
        print_table([(step.action, step.side, step.path, step.reason) for step in synced.steps], ("WHAT", "WHERE", "FILE", "WHY"))
    else:
        click.echo(f"Nothing has changed here or in {one_line(shown(location))}.")
    for note in synced.notes:
        print_note(note)
    for step in synced.steps if as_diff else ():
        print_diff(step.diff)
    return None


def _own_name(location: str) -> str:
    """What the other side's history, which others read, calls this folder: its name and its host, and no path."""
    import socket

    return name_of(location) if "://" in location else f"{Path(name_of(location)).name} on {socket.gethostname()}"


def shown(location: str) -> str:
    """A location as people are told of it: a URL without who logs in, a path as it was typed."""
    return name_of(location) if "://" in location else location


def name_of(location: str) -> str:
    """A location by one spelling, and without who logs in to it: an absolute path, or a URL."""
    if "://" not in location:
        return Path(os.path.expanduser(location)).resolve().as_uri()
    url = urlsplit(location)
    if url.scheme == "file" and url.netloc in ("", "localhost"):
        return name_of(unquote(url.path))
    host = url.netloc.rpartition("@")[2]
    options = [(key, value) for key, value in sorted(parse_qsl(url.query)) if key not in _SECRET]
    scheme, query = url.scheme.replace("postgresql", "postgres"), urlencode(options, safe="/")
    return f"{scheme}://{host}{url.path}{f'?{query}' if query else ''}"  # not `urlunsplit`, which drops // before no host
