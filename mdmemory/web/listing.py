"""The list of all memory files, with filters and search. Floor 6.

No file is read for it: what it shows is known from the last look at the folder.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from mdmemory.errors import InvalidArguments
from mdmemory.folder.any_folder import Folder
from mdmemory.recall.filters import Filters
from mdmemory.recall.ranking import Match
from mdmemory.web.overview import PLAIN, Overview, Row
from mdmemory.web.site import number_of, site_of

PER_PAGE: Final = 50
AGES_S: Final = 600  # as long as "today" and the like may stand
MAX_FOUND: Final = 50


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the address asks for."""

    q: str = ""
    type: str = ""
    tag: str = ""
    folder: str = ""
    page: int = 1

    @classmethod
    def of(cls, request: Request) -> Wanted:
        """Read it; what is no number is the first page."""
        given = request.query_params
        texts = {name: given.get(name, "")[:1_000].strip() for name in ("q", "type", "tag", "folder")}
        return cls(**texts, page=number_of(request, "page"))

    def url(self, **other: str | int) -> str:
        """The address of the same list, but for what is given."""
        asked: dict[str, Any] = {"q": self.q, "type": self.type, "tag": self.tag, "folder": self.folder, **other}
        query = urlencode({name: value for name, value in asked.items() if value and (name, value) != ("page", 1)})
        return f"/?{query}" if query else "/"


async def show_list(request: Request) -> Response:
    """The first page: all files, or those that a search finds."""
    site, wanted = site_of(request), Wanted.of(request)
    await site.look()
    folder = site.folder
    shown = (request.url.query, site.seen, folder.away, tuple(folder.skipped.items()), int(time.time() / AGES_S))
    if site.kept_list is None or site.kept_list[0] != shown:
        site.kept_list = shown, await _list(request, wanted)
    return site.kept_list[1]


async def _list(request: Request, wanted: Wanted) -> Response:
    site = site_of(request)
    overview = site.overview()
    problem = ""
    every: Sequence[Row] = ()
    try:
        every = await _found(site.folder, overview, wanted) if wanted.q else overview.rows
    except InvalidArguments as error:
        problem = str(error)
    rows = [row for row in every if _is_wanted(row, wanted)][: MAX_FOUND if wanted.q else None]
    count, first = len(rows), (wanted.page - 1) * PER_PAGE
    return site.page(
        "list",
        request,
        title="Memories",
        wanted=wanted,
        overview=overview,
        rows=rows[first : first + PER_PAGE],
        count=count,
        first=first,
        is_last=first + PER_PAGE >= count,
        problem=problem or site.folder.away or "",
        skipped=site.folder.skipped,
    )


def _is_wanted(row: Row, wanted: Wanted) -> bool:
    return (
        (not wanted.type or (row.type or PLAIN) == wanted.type)
        and (not wanted.tag or wanted.tag.casefold() in (tag.casefold() for tag in row.tags))
        and (not wanted.folder or row.path.startswith(f"{wanted.folder.rstrip('/')}/"))
    )


async def _found(folder: Folder, overview: Overview, wanted: Wanted) -> list[Row]:
    filters: Filters = {}
    if wanted.type and wanted.type != PLAIN:
        filters["type"] = wanted.type
    if wanted.tag:
        filters["tags"] = wanted.tag
    matches = await folder.search(wanted.q, limit=MAX_FOUND if not wanted.folder else 10 * MAX_FOUND, **filters)
    return [_matched(overview.by_path[match.path], match) for match in matches if match.path in overview.by_path]


def _matched(row: Row, match: Match) -> Row:
    terms, lines, decay = (match.explain.get(name) for name in ("terms", "lines", "decay"))
    why = [f"shares {', '.join(list(terms)[:6])}"] if isinstance(terms, Mapping) and terms else []
    if isinstance(match.explain.get("similar"), float):
        why.append(f"near in meaning {match.explain['similar']:.2f}")
    if isinstance(lines, tuple):
        why.append(f"line {lines[0]}" if lines[0] == lines[1] else f"lines {lines[0]}–{lines[1]}")
    if isinstance(decay, float) and decay < 0.995:
        why.append(f"age × {decay:.2f}")
    return replace(row, score=match.score, why=" · ".join(why))
