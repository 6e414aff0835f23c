"""`mdmemory stats`. Floor 8."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import click

from mdmemory.cli.tables import print_table
from mdmemory.cli.terminal import folder_option, json_option, opened, print_json, require_folder, run

if TYPE_CHECKING:
    from mdmemory.memory import Memory


@click.command()
@folder_option
@json_option
@run
async def stats(folder: str, as_json: bool) -> None:
    """Count what is there, and what it costs in a prompt.

    Tokens are estimated. What has expired or is superseded is kept and no longer shown to agents.
    """
    require_folder(folder)
    async with opened(folder) as memory:
        await memory.folder.refresh()
        found = await _counted(memory)
    if as_json:
        print_json(found)
        return
    by_type = ", ".join(f"{count:,} {kind}" for kind, count in found["types"].items())
    journal, history = found["journal"], found["history"]
    rows = [
        ("memory files", f"{found['files']:,}", by_type),
        ("their size", _size(found["bytes"]), f"about {found['tokens']:,} tokens"),
        ("pinned, tagged", f"{found['pinned']:,}, {found['tagged']:,}", ""),
        ("not shown", f"{found['outdated']:,}", "expired or superseded"),
        ("can't be read", f"{found['broken']:,}", "`mdmemory doctor` says why" if found["broken"] else ""),
        ("index", f"{found['index']['lines']:,} lines", f"about {found['index']['tokens']:,} tokens in every prompt"),
        ("conversations", f"{journal['sessions']:,}", f"{_size(journal['bytes'])}, word for word"),
        ("history", f"{history['events']:,} events", f"since {history['since']}" if history["since"] else ""),
    ]
    print_table(rows, ("WHAT", "HOW MUCH", ""))


async def _counted(memory: Memory) -> dict[str, Any]:
    from mdmemory.backends.protocol import File
    from mdmemory.care import history
    from mdmemory.folder.any_folder import parts_of
    from mdmemory.folder.reading import read_all
    from mdmemory.render import estimate_tokens

    folder = memory.folder
    headers = [known.header for known in folder.files.values() if known.header is not None]
    tokens = 0
    async for some in read_all(folder, folder.files):
        tokens += sum(estimate_tokens(file.data.decode("utf-8", "replace")) for file in some.values() if isinstance(file, File))
    shown = (await folder.prompt_index()).text
    events = await history.events(folder)
    journals = [entry for part in parts_of(folder).values() for entry in part.catalog.journals.values()]
    kinds = Counter(header.type or "plain" for header in headers)
    return {
        "files": len(folder.files),
        "types": dict(kinds.most_common()),
        "bytes": sum(known.size for known in folder.files.values()),
        "tokens": tokens,
        "pinned": sum(header.pinned for header in headers),
        "tagged": sum(bool(header.tags) for header in headers),
        "outdated": len(folder.outdated),
        "broken": sum(known.problem is not None for known in folder.files.values()),
        "index": {"lines": len(shown.splitlines()), "tokens": estimate_tokens(shown)},
        "journal": {"sessions": len(journals), "bytes": sum(entry.size for entry in journals)},
        "history": {"events": len(events), "since": f"{events[-1].at:%Y-%m-%d}" if events else None},
    }


def _size(count: int) -> str:
    """Bytes as people say them."""
    for factor, unit in ((10**6, "MB"), (10**3, "KB")):
        if count >= factor:
            return f"{count / factor:,.1f} {unit}"
    return f"{count:,} bytes"
