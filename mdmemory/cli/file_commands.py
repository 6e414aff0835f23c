"""`mdmemory init`, `ls`, `show` and `search`. Floor 8."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from mdmemory.cli.completing import complete_path
from mdmemory.cli.paging import paged
from mdmemory.cli.tables import print_note, print_table
from mdmemory.cli.terminal import (
    DEFAULT_FOLDER,
    command_on,
    failure,
    folder_option,
    harmless,
    inside,
    json_option,
    opened,
    print_json,
    refuse_file,
    require_folder,
    run,
)

if TYPE_CHECKING:
    from mdmemory.folder.known import Known
    from mdmemory.recall.ranking import Match

INDEX_START = "# Memory\n\n"


@click.command()
@click.argument("folder", required=False, envvar="MDMEMORY_FOLDER", default=DEFAULT_FOLDER)
@json_option
@run
async def init(folder: str, as_json: bool) -> None:
    """Make a memory folder; what is there stays as it is.

    FOLDER is ./memory by default. Markdown files that are in it already become memory files: the index lists them.
    """
    from mdmemory.care.doctor import repair
    from mdmemory.files.changes import Create
    from mdmemory.folder.known import INDEX
    from mdmemory.memory import open_memory

    refuse_file(folder)
    async with open_memory(folder) as memory:
        await memory.folder.refresh()
        is_new = await memory.folder.index_file() is None
        if is_new:
            await memory.folder.apply([Create(INDEX, INDEX_START.encode())], "person", "init")
            await repair(memory.folder)
        count = len(memory.folder.files)
    if as_json:
        print_json({"folder": folder, "created": is_new, "files": count})
    elif not is_new:
        click.echo(f"{folder} is a memory already; nothing was changed.")
    else:
        found = f", and listed the {_files(count)} in it in {INDEX}" if count else ""
        click.echo(f"Made {folder}{found}.")
        click.echo(f"Give it to an agent with mdmemory.open_memory({folder!r}), or talk to one: {command_on('chat', folder)}")


@click.command()
@folder_option
@click.option("-t", "--type", "kind", metavar="TYPE", help="Only files of this type.")
@json_option
@run
async def ls(folder: str, kind: str | None, as_json: bool) -> None:
    """List the memory files, the newest first.

    Files that can't be read are listed too, with the reason; what was skipped, such as links, is named below the table.
    """
    from mdmemory.render import age

    require_folder(folder)
    async with opened(folder) as memory:
        await memory.folder.refresh()
        known = sorted(memory.folder.files.items(), key=lambda item: (-item[1].mtime_ns, item[0]))
        skipped = memory.folder.skipped
    files = [(path, file) for path, file in known if kind is None or (file.header is not None and file.header.type == kind)]
    if as_json:
        print_json({"files": [_as_json(path, file) for path, file in files], "skipped": dict(skipped)})
        return
    now_ns = time.time_ns()
    rows = []
    for path, file in files:
        changed = age((now_ns - file.mtime_ns) / 86_400e9)
        rows.append((path, (file.header.type if file.header else None) or "-", changed, _about(file)))
    if rows:
        with paged():
            print_table(rows, ("FILE", "TYPE", "CHANGED", "ABOUT"))
    else:
        click.echo("No memory files yet." if kind is None else f"No memory files of type {kind}.")
    for path, reason in skipped.items():
        print_note(f"skipped {path}: {reason}")


def _about(file: Known) -> str:
    if file.header is not None:
        return f"{file.header.name} — {file.header.description}".removesuffix(" — ")
    assert file.problem is not None
    where = "" if file.problem.line is None else f"line {file.problem.line}: "
    return f"cannot be read: {where}{file.problem.reason}"


def _files(count: int) -> str:
    return "1 memory file" if count == 1 else f"{count:,} memory files"


def _as_json(path: str, file: Known) -> dict[str, Any]:
    from mdmemory.render import moment

    common = {"path": path, "size": file.size, "modified": moment(file.mtime_ns).isoformat(timespec="seconds")}
    if file.header is None:
        return {**common, "problem": str(file.problem)}
    header = file.header
    fields = {"name": header.name, "description": header.description, "type": header.type}
    return {**common, **fields, "pinned": header.pinned, "tags": header.tags, "warnings": file.warnings}


@click.command()
@click.argument("path", shell_complete=complete_path)
@folder_option
@click.option("--at", metavar="POINT", help="As it was after an event, or at a time such as 2026-11-30 or 2h ago.")
@json_option
@run
async def show(path: str, folder: str, at: str | None, as_json: bool) -> None:
    """Print one memory file, or MEMORY.md, as it is or as it was.

    PATH is inside the folder, as `ls` has it. Piped, the bytes are those on disk; on a terminal, characters that could steer
    it are left out.
    """
    from mdmemory.care import history
    from mdmemory.errors import NotThere
    from mdmemory.files.memory_file import decode

    require_folder(folder)
    path = inside(path, folder)
    async with opened(folder) as memory:
        try:
            data = await history.show(memory.folder, path, at)
        except NotThere as error:
            if at is not None:
                raise failure(str(error)) from None
            raise failure(f"There is no {path} in {folder}. `{command_on('ls', folder)}` lists what is there.") from None
    if as_json:
        print_json(_shown(path, data))
    elif sys.stdout.isatty():
        with paged():
            click.echo(harmless(decode(path, data)).rstrip("\n"))
    else:
        click.echo(data, nl=False)


def _shown(path: str, data: bytes) -> dict[str, Any]:
    from mdmemory.errors import InvalidMemoryFile
    from mdmemory.files.memory_file import parse
    from mdmemory.folder.known import is_memory_path

    if not is_memory_path(path):
        return {"path": path, "body": data.decode("utf-8", "replace")}
    try:
        file = parse(path, data)
    except InvalidMemoryFile as error:
        return {"path": path, "problem": str(error), "body": data.decode("utf-8", "replace")}
    header = file.header
    return {"path": path, "name": header.name, "description": header.description, "type": header.type, "body": file.body}


@click.command()
@click.argument("query", nargs=-1, required=True)
@folder_option
@click.option("-n", "--limit", default=10, show_default=True, type=click.IntRange(1), metavar="N", help="At most N files.")
@click.option("--min-score", type=click.FloatRange(0, 1), metavar="X", help="Only files with this score or more.")
@click.option("--explain", is_flag=True, help="Say why each file was found.")
@click.option("-t", "--type", metavar="TYPE", multiple=True, help="Only files of this type; may be given again.")
@click.option("-p", "--path", metavar="PATH", multiple=True, help="Only this folder, file or pattern; may be given again.")
@click.option("--mount", metavar="NAME", multiple=True, help="Only this mount, or . for the home; may be given again.")
@click.option("--stage", metavar="NAME", help="As in this stage of the work: mounts may be silent in some.")
@click.option("--tag", "tags", metavar="TAG", multiple=True, help="Only files with this tag; given again, with all of them.")
@click.option("--as-of", metavar="DAY", help="What was valid on that day, such as 2024-05-17.")
@json_option
@run
async def search(query: tuple[str, ...], folder: str, limit: int, explain: bool, as_json: bool, **filters: Any) -> None:
    """Find memory files by words, in any language.

    SCORE is the share of the query's weight that a file covers, less with age: 1.00 is all of it, rare words weigh more.
    """
    from dataclasses import asdict

    require_folder(folder)
    async with opened(folder) as memory:
        given: Any = {name: value for name, value in filters.items() if value}
        matches = await memory.search(" ".join(query), limit=limit, **given)
        known = memory.folder.files
    if as_json:
        print_json([asdict(match) for match in matches])
    elif not matches:
        click.echo("No memory file shares a word with the query.")
    else:
        reasons = [[_reason(match)] if explain else [] for match in matches]
        found = zip(matches, reasons, strict=True)
        rows = [(f"{match.score:.2f}", match.path, *reason, _about(known[match.path])) for match, reason in found]
        print_table(rows, ("SCORE", "FILE", *(["WHY"] if explain else []), "ABOUT"))


def _reason(match: Match) -> str:
    factors: Any = match.explain
    return f"{', '.join(factors['terms'])} ({factors['coverage']:.0%} of the query, age x{factors['decay']:.2f})"
