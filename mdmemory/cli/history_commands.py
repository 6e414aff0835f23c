"""`mdmemory log`, `diff`, `blame`, `undo`, `restore` and `purge`: what happened, and how to take it back. Floor 8."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from mdmemory.cli.completing import complete_path
from mdmemory.cli.paging import paged
from mdmemory.cli.tables import cell_width, print_diff, print_note, print_table
from mdmemory.cli.terminal import (
    asking,
    command_on,
    failure,
    folder_option,
    harmless,
    inside,
    json_option,
    one_line,
    opened,
    print_json,
    require_folder,
    run,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mdmemory.care.history import Event
    from mdmemory.folder.purge import Purged
    from mdmemory.folder.settle import Applied

MAX_NAMED = 2  # files that a line of the log names

point = click.option("--at", metavar="POINT", help="After an event, or at a time such as 2026-11-30 or 2h ago.")
dry_run_option = click.option("-n", "--dry-run", is_flag=True, help="Show as a diff what would be written, and write nothing.")


@click.command()
@click.argument("file", required=False, shell_complete=complete_path)
@folder_option
@click.option("-n", "--limit", default=20, show_default=True, type=click.IntRange(1), metavar="N", help="At most N events.")
@click.option("--session", metavar="ID", help="Only what this conversation's agent did.")
@click.option("--author", metavar="NAME", help="Only by this author, such as person, agent, doctor or outside.")
@click.option("--since", metavar="WHEN", help="A day, a time, or how long ago: 2026-11-30, 2026-11-30T12:00, 90m, 2h, 3d, 1w.")
@click.option("--until", metavar="WHEN", help="As --since.")
@json_option
@run
async def log(file: str | None, folder: str, as_json: bool, **wanted: Any) -> None:
    """Show what happened, the latest first.

    FILE is a memory file, followed through its renames, or a folder. EVENT is what `diff`, `show --at` and `undo` take. Times
    are UTC. What people changed in their editors is there from the next save on, as by `outside`.
    """
    from mdmemory.care import history

    require_folder(folder)
    async with opened(folder) as memory:
        found = await history.events(memory.folder, path=None if file is None else inside(file, folder), **wanted)
    if as_json:
        print_json([_as_json(event) for event in found])
    elif found:
        rows = [(event.short_id, f"{event.at:%Y-%m-%d %H:%M}", event.author, _what(event), event.reason) for event in found]
        with paged():
            print_table(rows, ("EVENT", "WHEN", "WHO", "WHAT", "WHY"))
    else:
        click.echo("Nothing of that kind happened, or it is no longer kept.")


def _what(event: Event) -> str:
    """What an event did, in a few words."""
    told = []
    for each in event.files[:MAX_NAMED]:
        told.append(f"{each.kind} {f'{each.moved_from} to ' if each.moved_from else ''}{each.path}")
    more = len(event.files) - MAX_NAMED
    return ", ".join(told) + (f" and {more} more" if more > 0 else "")


def _as_json(event: Event) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(event), "at": event.at.isoformat(), "session": event.session}


@click.command()
@click.argument("what", required=False, shell_complete=complete_path)
@click.argument("file", required=False, shell_complete=complete_path)
@folder_option
@click.option("--to", metavar="POINT", help="Compare what was after the event with another event, a time, or now.")
@json_option
@run
async def diff(what: str | None, file: str | None, folder: str, to: str | None, as_json: bool) -> None:
    """Show what an event changed, or what is different since.

    WHAT is an event, as `log` has it, or a file: then its last change is shown. Without it, that is the last event. FILE
    narrows an event down to one file.
    """
    from mdmemory.care import history

    require_folder(folder)
    async with opened(folder) as memory:
        await memory.folder.refresh()
        event: Event | str | None = what if what is None or _is_id(what) else None
        path = inside(what, folder) if what is not None and event is None else None
        if what is None:
            event = next(iter(await history.events(memory.folder, limit=1)), None)
            if event is None:
                raise failure("Nothing has happened yet.")
        found = await history.diff(memory.folder, event, to, path=inside(file, folder) if file else path)
    if as_json:
        print_json([{"path": each.path, "moved_from": each.moved_from, "diff": each.text} for each in found])
    with paged():
        for each in () if as_json else found:
            print_diff(each.text)
    if not (as_json or found):
        print_note("Nothing differs.")


def _is_id(text: str) -> bool:
    import re

    return re.fullmatch("[0-9a-f]{4,}(-outside)?", text) is not None


@click.command()
@click.argument("file", shell_complete=complete_path)
@folder_option
@json_option
@run
async def blame(file: str, folder: str, as_json: bool) -> None:
    """Show where each line of a file comes from.

    That is an event and its day, with the agent and its session, or the person. What is older than the history has no event;
    what was changed by hand and not noted yet is by `outside`.
    """
    from mdmemory.care import history

    require_folder(folder)
    async with opened(folder) as memory:
        await memory.folder.refresh()
        lines = await history.blame(memory.folder, inside(file, folder))
    if as_json:
        keys = [("text", line.text) for line in lines]
        print_json([{**dict([key]), **_origin(line.event)} for key, line in zip(keys, lines, strict=True)])
        return
    rows = [(line.event.short_id, line.event.author, f"{line.event.at:%Y-%m-%d}") if line.event else ("", "", "") for line in lines]
    widths = [max((cell_width(one_line(row[column])) for row in rows), default=0) for column in range(3)]
    with paged():
        for number, (row, line) in enumerate(zip(rows, lines, strict=True), 1):
            cells = [one_line(cell) + " " * (width - cell_width(one_line(cell))) for cell, width in zip(row, widths, strict=True)]
            text = harmless(line.text) if sys.stdout.isatty() else line.text
            click.echo(f"{'  '.join(cells)}  {number:>{len(str(len(lines)))}}  {text}".rstrip())


def _origin(event: Event | None) -> dict[str, Any]:
    if event is None:
        return {"event": None, "author": None, "session": None, "at": None}
    return {"event": event.id or None, "author": event.author, "session": event.session, "at": event.at.isoformat()}


@click.command()
@click.argument("event", required=False)
@folder_option
@click.option("--session", metavar="ID", help="All that this conversation's agent did.")
@click.option("--since", metavar="WHEN", help="Everything since a day, a time, or so long ago: 2026-11-30, 2h, 3d.")
@click.option("-p", "--path", "paths", metavar="PATH", multiple=True, help="Only this file or folder; may be given again.")
@dry_run_option
@json_option
@run
async def undo(event: str | None, folder: str, dry_run: bool, as_json: bool, **wanted: Any) -> None:
    """Take back an event, a session, or everything since a time.

    EVENT is as `log` has it; without anything, it is the last one. Where nothing came after, the bytes are exactly those of
    before; later changes of other lines stay; where the same lines were changed since, nothing is written, and the events in
    the way are named. An undo is an event itself: undo it to have all as it was.
    """
    from mdmemory.care import history

    require_folder(folder)
    async with opened(folder) as memory:
        what: Event | str | None = event
        if event is None and not (wanted["session"] or wanted["since"]):
            what = next(iter(await history.events(memory.folder, limit=1)), None)
            if what is None:
                raise failure("Nothing has happened yet.")
        applied = await history.undo(memory.folder, what, dry_run=dry_run, **wanted)
    _print_applied(applied, folder, dry_run=dry_run, as_json=as_json, nothing="It was undone before; nothing was written.")


@click.command()
@click.argument("file", shell_complete=complete_path)
@folder_option
@point
@dry_run_option
@json_option
@run
async def restore(file: str, folder: str, at: str | None, dry_run: bool, as_json: bool) -> None:
    """Bring a file back as it was; a deleted one needs no --at."""
    from mdmemory.care import history

    require_folder(folder)
    async with opened(folder) as memory:
        applied = await history.restore(memory.folder, inside(file, folder), at, dry_run=dry_run)
    _print_applied(applied, folder, dry_run=dry_run, as_json=as_json, nothing="It is like that already; nothing was written.")


def _print_applied(applied: Applied, folder: str, *, dry_run: bool, as_json: bool, nothing: str) -> None:
    from mdmemory.care.history import unified

    diffs = {item.path: unified(item.path, item.before, item.after) for item in applied.files if item.moved_from is None}
    if as_json:
        print_json({"event": applied.commit_id, "diff": diffs})
        return
    for text in diffs.values():
        print_diff(text)
    if applied.commit_id is not None:
        short = applied.commit_id[:8]
        click.echo(f"Done, as event {short}: `{command_on(f'undo {short}', folder)}` takes that back.")
    elif not (dry_run and diffs):
        click.echo(nothing)
    for warning in applied.warnings:
        print_note(warning)


@click.command()
@click.argument("files", nargs=-1, shell_complete=complete_path)
@folder_option
@click.option("--text", metavar="TEXT", help="Take out this exact text, wherever it stands, in place of files.")
@click.option("--journal", is_flag=True, help="Take it out of conversations, too.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask.")
@json_option
@run
async def purge(files: tuple[str, ...], folder: str, text: str | None, journal: bool, yes: bool, as_json: bool) -> int:
    """Forget for good: no undo brings it back.

    FILES, or folders, go with all their versions and earlier names; they may be deleted already. A text becomes `(purged)` in
    every file and version. Then the folder, its history and the cache are looked through for what is left; the exit code is 1
    when something is, and what can't be reached from here is named.
    """
    from mdmemory.folder.purge import purge as forget_for_good

    require_folder(folder)
    typed = sys.stdin.isatty() and not as_json
    about = ", ".join(files) if text is None else repr(text)
    if not yes and not typed:
        raise failure(f"Nobody is there to ask whether to purge {about}, which can't be undone. Say --yes.")
    if not yes:
        with asking():
            click.confirm(f"Purge {one_line(about)}? This can't be undone", abort=True)
    async with opened(folder) as memory:
        paths = [inside(file, folder) for file in files]
        purged = await forget_for_good(memory.folder, paths, text=text, journal=journal)
    if as_json:
        from dataclasses import asdict

        print_json(asdict(purged))
    else:
        _print_purged(purged, folder, journal=journal)
    return int(bool(purged.left))


def _print_purged(purged: Purged, folder: str, *, journal: bool) -> None:
    counts = [
        (len(purged.files), "file"),
        (purged.contents, "earlier version"),
        (purged.commits, "event"),
        (purged.messages, "message"),
    ]
    told = [f"{count} {name}{'s' * (count != 1)}" for count, name in counts if count]
    click.echo(f"Purged {_listed(told)}." if told else "The folder and its history know nothing of it.")
    if purged.left:
        click.echo("\nIt is still here:")
        print_table([(left.where, left.what) for left in purged.left], ("WHERE", "WHAT"))
    for far in purged.beyond:
        print_note(f"not reached: {far}")
    if not journal and any("journal/" in left.where for left in purged.left):
        print_note("say --journal to take it out of conversations")


def _listed(told: Sequence[str]) -> str:
    return " and ".join([", ".join(told[:-1]), told[-1]] if len(told) > 1 else told)
