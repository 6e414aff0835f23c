"""What happened to the memory, what each change was, and how to take it back. Floor 6."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from mdmemory.care import history
from mdmemory.errors import Conflict, MdmemoryError
from mdmemory.web.diffs import Diff, lines_of
from mdmemory.web.site import AUTHOR, link_to, number_of, see_other, site_of

PER_PAGE: Final = 50


async def show_history(request: Request) -> Response:
    """All changes, or those of one file or session, the latest first."""
    return await _history(request)


async def take_session_back(request: Request) -> Response:
    """Undo all that a session did."""
    site = site_of(request)
    session = (await site.form(request)).get("session", "")
    try:
        applied = await history.undo(site.folder, session=session, author=AUTHOR)
    except MdmemoryError as error:
        return await _history(request, 409 if isinstance(error, Conflict) else 422, str(error), session=session)
    return see_other("/history", "undone" if applied.files else "same")


async def _history(request: Request, status: int = 200, problem: str = "", session: str = "") -> Response:
    site = site_of(request)
    asked = {name: request.query_params.get(name, "")[:1_000] for name in ("path", "session")}
    asked["session"] = asked["session"] or session
    count = PER_PAGE * number_of(request, "pages")
    found = await history.events(site.folder, path=asked["path"] or None, session=asked["session"] or None, limit=count + 1)
    return site.page(
        "history",
        request,
        status,
        title="History",
        events=found[:count],
        more=f"/history?{urlencode({**asked, 'pages': count // PER_PAGE + 1})}" if len(found) > count else "",
        problem=problem,
        **asked,
    )


async def show_event(request: Request) -> Response:
    """One change, as differences."""
    return await _event(request)


async def take_event_back(request: Request) -> Response:
    """Undo one change."""
    site, id = site_of(request), str(request.path_params["id"])
    await site.form(request)
    try:
        applied = await history.undo(site.folder, id, author=AUTHOR)
    except MdmemoryError as error:
        return await _event(request, 409 if isinstance(error, Conflict) else 422, str(error))
    return see_other(link_to("history", id), "undone" if applied.files else "same")


async def _event(request: Request, status: int = 200, problem: str = "") -> Response:
    site = site_of(request)
    event = await history.find(site.folder, str(request.path_params["id"]))
    diffs = await history.diff(site.folder, event)
    shown = [Diff(diff.path, diff.moved_from, lines_of(diff.text)) for diff in diffs]
    return site.page("event", request, status, title=f"Change {event.short_id}", event=event, diffs=shown, problem=problem)
