"""What waits for a person: proposals, where each comes from, what it would lose, and the decision. Floor 6."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from mdmemory.errors import Conflict, MdmemoryError, NotThere
from mdmemory.folder.proposals import Proposal, accept, edit, find_proposal, list_proposals, reject
from mdmemory.web.diffs import Diff, lines_of
from mdmemory.web.forms import flat, retext
from mdmemory.web.site import link_to, see_other, site_of


async def show_queue(request: Request) -> Response:
    """Everything that waits, the oldest first."""
    site = site_of(request)
    proposals = await list_proposals(site.folder)
    await asyncio.to_thread(lambda: [each.guard for each in proposals])  # once; meanwhile other pages are served
    return site.page("review", request, title="Review", proposals=proposals)


async def show_proposal(request: Request) -> Response:
    """One proposal: what it says, what it loses, and what it changes."""
    site = site_of(request)
    return _page(request, await find_proposal(site.folder, str(request.path_params["id"])))


async def take_decision(request: Request) -> Response:
    """Accept or reject a proposal, or put one's own words in place of what it makes."""
    site, id = site_of(request), str(request.path_params["id"])
    form = await site.form(request)
    try:
        proposal = await find_proposal(site.folder, id)
    except NotThere as error:
        return _gone(request, error, form)
    try:
        if form.get("seen") != _seen(proposal):
            raise Conflict(proposal.title, None, reason="This proposal was edited meanwhile. Look at it again, and decide then.")
        if form.get("do") == "accept":
            await accept(site.folder, proposal, force="force" in form)
            return see_other("/review", "accepted")
        if form.get("do") == "reject":
            await reject(site.folder, proposal)
            return see_other("/review", "rejected")
        texts = {path: retext(text, form[f"text.{path}"]) for path, text in _made(proposal).items() if f"text.{path}" in form}
        await edit(site.folder, proposal, {path: text for path, text in texts.items() if text != _made(proposal)[path]})
    except NotThere as error:  # accepted, rejected or added to at this moment
        return _gone(request, error, form)
    except Conflict as conflict:
        return _page(request, await find_proposal(site.folder, id), 409, str(conflict), form)
    except MdmemoryError as error:  # what was typed must not be lost
        return _page(request, proposal, 422, str(error), form)
    return see_other(link_to("review", proposal.id), "edited")


def _gone(request: Request, error: NotThere, form: Mapping[str, str]) -> Response:
    """The page that says so, with what was typed."""
    typed = {name.removeprefix("text."): text for name, text in form.items() if name.startswith("text.")}
    return site_of(request).page("error", request, 404, title="That did not work", text=str(error), typed=typed)


def _page(request: Request, proposal: Proposal, status: int = 200, problem: str = "", typed: Mapping[str, str] = {}) -> Response:
    return site_of(request).page(
        "proposal",
        request,
        status,
        title=proposal.title,
        proposal=proposal,
        losses=proposal.losses,
        seen=_seen(proposal),
        diffs=[Diff(path, None, lines_of(text)) for path, text in proposal.diffs.items()],
        texts={path: typed.get(f"text.{path}", flat(text)) for path, text in _made(proposal).items()},
        problem=problem,
        is_typed=any(name.startswith("text.") for name in typed),
    )


def _made(proposal: Proposal) -> dict[str, str]:
    """The text of each file that there is afterwards."""
    return {path: after for path, (_, after) in proposal.texts.items() if after is not None}


def _seen(proposal: Proposal) -> str:
    """Names a proposal with its words as they are, so that nobody decides on others than were shown."""
    return hashlib.sha256(repr(sorted(proposal.results.items())).encode()).hexdigest()[:16]
