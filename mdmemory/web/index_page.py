"""The index as agents see it, and what it leaves out, with the reason. Floor 6."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from mdmemory.files.index import Updated, pointers
from mdmemory.folder.any_folder import Folder
from mdmemory.folder.known import INDEX
from mdmemory.render import estimate_tokens
from mdmemory.web.site import site_of


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file to which the index has no line, and why not."""

    path: str
    name: str
    why: str


@dataclass(frozen=True, slots=True)
class IndexLine:
    """A line as agents see it.

    Args:
        path: of the file that it points to; empty for a line of prose.
    """

    number: int
    text: str
    path: str


async def show_index(request: Request) -> Response:
    """What stands in an agent's prompt."""
    site = site_of(request)
    await site.look()
    shown = await site.folder.prompt_index()
    targets = {pointer.line: pointer.target for pointer in reversed(pointers(shown.text, site.folder.files.keys()))}
    lines = [IndexLine(number, text, targets.get(number, "")) for number, text in enumerate(shown.text.splitlines(), 1)]
    return site.page(
        "index",
        request,
        title="Index",
        lines=lines,
        shown=shown,
        limits=site.folder.limits,
        tokens=estimate_tokens(shown.text),
        left_out=list(_left_out(site.folder, shown)),
        problem=site.folder.index_problem or "",
        can_write=site.can_write(INDEX),
        has_file=await site.folder.index_file() is not None,
    )


def _left_out(folder: Folder, shown: Updated) -> Iterator[LeftOut]:
    there = {pointer.target for pointer in pointers(shown.text, folder.files.keys())}
    limits, hidden = folder.limits, folder.outdated
    room = f"{limits.max_lines:,} lines" if shown.lines + 1 >= limits.max_lines else f"{limits.max_bytes:,} bytes"
    for path, listed in sorted(folder.listed.items(), key=lambda item: -item[1].mtime_ns):
        if path in hidden:
            yield LeftOut(path, listed.name, "it has expired, or another file supersedes it")
        elif path not in there:
            yield LeftOut(path, listed.name, f"newer and pinned files fill the {room}")
