"""Conversations, word for word, and search in them. Floor 6."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from mdmemory.files.journal import MARK, Message
from mdmemory.folder.journals import Journals, Said
from mdmemory.web.site import number_of, site_of

PER_PAGE = 20
MAX_MESSAGES = 200  # of a conversation on one page: the last ones, unless an earlier page is asked for


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation in the list."""

    session: str
    begins: str
    count: int
    last: datetime | None


@dataclass(frozen=True, slots=True)
class Entry:
    """A message on the page.

    Args:
        more: what it has besides its text, as JSON; empty for most.
    """

    session: str
    id: str
    role: str
    at: datetime
    text: str
    more: str = ""


async def show_journal(request: Request) -> Response:
    """All conversations, the latest first, or the messages that a search finds."""
    site, query = site_of(request), request.query_params.get("q", "")[:1_000].strip()
    await site.look()
    journals = site.folder.journals
    found = [_entry(said) for said in await journals.search(query, limit=PER_PAGE)] if query else []
    page = number_of(request, "page")
    sessions = journals.sessions
    first = (page - 1) * PER_PAGE
    talks = [] if query else [await _talk(journals, session) for session in sessions[first : first + PER_PAGE]]
    return site.page(
        "journal",
        request,
        title="Journal",
        q=query,
        found=found,
        talks=talks,
        count=len(sessions),
        page=page,
        is_last=first + PER_PAGE >= len(sessions),
        is_kept=site.folder.config.journal,
    )


async def show_session(request: Request) -> Response:
    """One conversation."""
    site, session = site_of(request), str(request.path_params["session"])
    await site.look()
    if session not in site.folder.journals.sessions:
        raise HTTPException(404, f"There is no conversation {session!r:.100} in the journal.")
    messages = [message for message in await site.folder.journals.messages(session) if message.role != MARK]
    is_whole = "all" in request.query_params or len(messages) <= MAX_MESSAGES
    shown = messages if is_whole else messages[-MAX_MESSAGES:]
    return site.page(
        "session",
        request,
        title=f"Conversation {session}",
        session=session,
        entries=[_entry(Said(session, message)) for message in shown],
        earlier=len(messages) - len(shown),
    )


async def _talk(journals: Journals, session: str) -> Talk:
    messages = [message for message in await journals.messages(session) if message.role != MARK]
    begins = next((message.text for message in messages if message.role == "user" and message.text.strip()), "")
    return Talk(session, " ".join(begins.split())[:200], len(messages), messages[-1].at if messages else None)


def _entry(said: Said) -> Entry:
    message = said.message
    return Entry(said.session, message.id, message.role, message.at, message.text, _more(message))


def _more(message: Message) -> str:
    rest = {
        key: value for key, value in message.data.items() if key != "role" and not (key == "content" and isinstance(value, str))
    }
    return json.dumps(rest, ensure_ascii=False, indent=2) if rest else ""
