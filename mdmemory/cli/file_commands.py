"""`mdmemory init`, `ls`, `show` and `search`. Floor 7."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from mdmemory.cli.terminal import folder_option, json_option, plain, print_json, print_table, require_folder, run

INDEX_START = "# Memory\n\n"


@click.command()
@click.argument("folder", required=False, envvar="MDMEMORY_FOLDER", default="memory")
@json_option
@run
async def init(folder: str, as_json: bool) -> None:
    """Make a memory folder (./memory by default); an existing one stays as it is."""
    from mdmemory.files.changes import Create
    from mdmemory.folder.catalog import INDEX
    from mdmemory.memory import open_memory

    async with open_memory(folder) as memory:
        await memory.folder.refresh()
        is_new = await memory.folder.index_file() is None
        if is_new:
            await memory.folder.apply([Create(INDEX, INDEX_START.encode())], "person", "init")
    if as_json:
        print_json({"folder": folder, "created": is_new})
        return
    if not is_new:
        click.echo(f"{folder} is a memory already; nothing was changed.")
        return
    click.echo(
        f"Made {folder}. Give it to an agent with mdmemory.open_memory({folder!r}), or talk to one: mdmemory chat -f {folder}"
    )


@click.command()
@folder_option
@click.option("-t", "--type", "kind", metavar="TYPE", help="Only files of this type.")
@json_option
@run
async def ls(folder: str, kind: str | None, as_json: bool) -> None:
    """List the memory files, the newest first, and what can't be read with the reason."""
    from mdmemory.memory import open_memory
    from mdmemory.render import age

    require_folder(folder)
    async with open_memory(folder) as memory:
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
        header = file.header
        about = f"cannot be read: {file.problem}" if header is None else f"{header.name} — {header.description}".removesuffix(" — ")
        rows.append((path, (header.type if header else None) or "-", changed, about))
    if rows:
        print_table(rows, ("FILE", "TYPE", "CHANGED", "ABOUT"))
    else:
        click.echo("No memory files yet." if kind is None else f"No memory files of type {kind}.")
    for path, reason in skipped.items():
        click.echo(click.style(f"skipped {plain(path)}: {reason}", dim=True), err=True)


def _as_json(path: str, file: Any) -> dict[str, Any]:
    from mdmemory.render import moment

    header = file.header
    common = {"path": path, "size": file.size, "modified": moment(file.mtime_ns).isoformat(timespec="seconds")}
    if header is None:
        return {**common, "problem": str(file.problem)}
    return {
        **common,
        "name": header.name,
        "description": header.description,
        "type": header.type,
        "pinned": header.pinned,
        "tags": header.tags,
        "warnings": file.warnings,
    }


@click.command()
@click.argument("path")
@folder_option
@json_option
@run
async def show(path: str, folder: str, as_json: bool) -> None:
    """Print one memory file, or MEMORY.md, as it is on disk."""
    from mdmemory.files.memory_file import decode, parse
    from mdmemory.memory import open_memory

    require_folder(folder)
    async with open_memory(folder) as memory:
        data = await memory.folder.read(path)
    if as_json:
        file = parse(path, data)
        header = file.header
        print_json({"path": path, "name": header.name, "description": header.description, "type": header.type, "body": file.body})
    elif sys.stdout.isatty():
        click.echo("".join(char for char in decode(path, data) if char in "\n\t" or char.isprintable()).rstrip("\n"))
    else:
        click.echo(data, nl=False)


@click.command()
@click.argument("query", nargs=-1, required=True)
@folder_option
@click.option("-n", "--limit", default=10, show_default=True, type=click.IntRange(1), help="At most this many files.")
@click.option("--explain", is_flag=True, help="Say why each file was found.")
@json_option
@run
async def search(query: tuple[str, ...], folder: str, limit: int, explain: bool, as_json: bool) -> None:
    """Find memory files by words, in any language."""
    from dataclasses import asdict

    from mdmemory.memory import open_memory

    require_folder(folder)
    async with open_memory(folder) as memory:
        matches = await memory.search(" ".join(query), limit=limit)
    if as_json:
        print_json([asdict(match) for match in matches])
        return
    if not matches:
        click.echo("No memory file shares a word with the query.")
        return
    rows = [[f"{match.score:.2f}", match.path, f"{match.name} — {match.description}".removesuffix(" — ")] for match in matches]
    headings = ["SCORE", "FILE", "ABOUT"]
    if explain:
        headings.insert(2, "WHY")
        for row, match in zip(rows, matches, strict=True):
            terms = ", ".join(str(term) for term in _terms(match.explain))
            row.insert(2, f"covers {match.explain['coverage']}, decay {match.explain['decay']}: {terms}")
    print_table(rows, headings)


def _terms(explain: Any) -> list[str]:
    return list(explain["terms"])
