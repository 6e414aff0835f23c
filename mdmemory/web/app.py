"""The web page of one memory as an ASGI application. Floor 6."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from mdmemory.errors import Conflict, InvalidPath, MdmemoryError, NotThere, PermissionDenied, Unavailable
from mdmemory.web import (
    changing,
    doctor_page,
    editing,
    history_pages,
    index_page,
    journal_pages,
    listing,
    reading,
    review_pages,
    turns_page,
)
from mdmemory.web.site import STATIC, Site, site_of, static_version

_STATUS = {NotThere: 404, InvalidPath: 404, PermissionDenied: 403, Conflict: 409, Unavailable: 503}
Handler = Callable[[Request], Awaitable[Response]]


def web_app(site: Site) -> Starlette:
    """The pages, to be put behind a `Guard`."""
    pages: tuple[tuple[str, Handler, Handler | None], ...] = (
        ("/", listing.show_list, None),
        ("/new", changing.show_new, changing.take_new),
        ("/file/{path:path}", reading.show_file, None),
        ("/edit/{path:path}", editing.show_form, editing.take_form),
        ("/move/{path:path}", changing.show_move, changing.take_move),
        ("/index", index_page.show_index, None),
        ("/journal", journal_pages.show_journal, None),
        ("/journal/{session:path}", journal_pages.show_session, None),
        ("/history", history_pages.show_history, history_pages.take_session_back),
        ("/history/{id}", history_pages.show_event, history_pages.take_event_back),
        ("/review", review_pages.show_queue, None),
        ("/review/{id}", review_pages.show_proposal, review_pages.take_decision),
        ("/turns", turns_page.show_turns, None),
        ("/doctor", doctor_page.show_findings, doctor_page.take_fix),
        ("/changes", tell_changes, None),
        ("/static/{version}/{name}", send_static, None),
    )
    routes = [Route(path, show) for path, show, _ in pages]
    routes += [Route(path, take, methods=["POST"]) for path, _, take in pages if take]
    app = Starlette(routes=routes, exception_handlers={MdmemoryError: _explain, HTTPException: _explain})
    app.state.site = site
    return app


async def tell_changes(request: Request) -> Response:
    """What changes in the folder, for as long as the page is open."""
    news = site_of(request).news
    if news.is_full:
        raise HTTPException(503, "Too many pages are open.")
    return StreamingResponse(news.stream(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def send_static(request: Request) -> Response:
    """A style or a script; under the name of its version it never changes."""
    file = STATIC / str(request.path_params["name"])
    if file.parent != STATIC or not file.is_file() or request.path_params["version"] != static_version():
        raise HTTPException(404, "There is no such file.")
    return FileResponse(file, headers={"Cache-Control": "private, max-age=31536000, immutable"})


async def _explain(request: Request, error: Exception) -> Response:
    """Say what went wrong, on a page."""
    if isinstance(error, HTTPException):
        status, text = error.status_code, error.detail
    else:
        status, text = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 400), str(error)
    return site_of(request).page("error", request, status, title="That did not work", text=text, typed={})
