"""The last turns: which files were offered and chosen, why, and when they were given. Floor 6."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from mdmemory.agent.past_turns import last_turns, turns_file
from mdmemory.web.site import site_of


async def show_turns(request: Request) -> Response:
    """What the memory did for the last replies, in whatever process."""
    site = site_of(request)
    await site.look()
    is_noted = turns_file(site.folder) is not None
    turns = last_turns(site.folder)
    return site.page("turns", request, title="Turns", turns=turns, is_noted=is_noted, files=site.folder.files)
