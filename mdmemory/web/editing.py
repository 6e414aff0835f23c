"""Editing a memory file: the form, and what becomes of it when it is sent. Floor 6.

A form carries the bytes that it was opened with. So what others wrote meanwhile is merged, or both texts are shown.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from mdmemory.backends.protocol import etag_of
from mdmemory.errors import Conflict, InvalidMemoryFile, MdmemoryError
from mdmemory.files.changes import Create, Replace
from mdmemory.files.memory_file import parse
from mdmemory.folder.known import INDEX
from mdmemory.web.conflicts import side_by_side
from mdmemory.web.forms import body_of, edited, filled, flat, inputs, retext
from mdmemory.web.reading import path_of, readable, render_body
from mdmemory.web.site import AUTHOR, link_to, see_other, site_of


@dataclass(frozen=True, slots=True)
class Sent:
    """A form, as it is shown and as it comes back.

    Args:
        base: the bytes that it was opened with; None where there was no file.
        values: its fields: `text` is the whole file, else there are `body` and `field.KEY`.
        shown: the bytes that its text was made of, where they are others than `base`: those of the loser of a conflict.
    """

    base: bytes | None
    values: Mapping[str, str]
    shown: bytes | None = None

    @classmethod
    def of(cls, values: Mapping[str, str]) -> Sent:
        """Read what came back.

        Raises:
            HTTPException: it is no form of ours.
        """
        if "base" not in values:
            raise HTTPException(400, "The form does not say what it was opened with.")
        sent = cls(_unpacked(values["base"]), values, _unpacked(values.get("shown", "")))
        return sent if {"text", "body"} & values.keys() else replace(sent, values={**values, "text": flat(readable(sent.origin))})

    @classmethod
    def fresh(cls, path: str, data: bytes, *, is_raw: bool = False) -> Sent:
        """A form for a file as it is; one that can't be read, and the index, are one text."""
        if not is_raw and path != INDEX:
            with suppress(InvalidMemoryFile):
                return cls(data, {"body": body_of(parse(path, data))})
        return cls(data, {"text": readable(data)})

    @property
    def origin(self) -> bytes:
        """The bytes that its text was made of."""
        return (self.base if self.shown is None else self.shown) or b""

    def data(self, path: str) -> bytes:
        """The file as the form has it.

        Raises:
            InvalidMemoryFile
        """
        if "text" in self.values:
            return retext(readable(self.origin), self.values["text"]).encode()
        return edited(path, self.origin, self.values)


async def show_form(request: Request) -> Response:
    """The form of a file."""
    site, path = site_of(request), path_of(request)
    await site.look()
    data = await site.folder.read(path)
    return _page(request, path, Sent.fresh(path, data, is_raw="raw" in request.query_params))


async def take_form(request: Request) -> Response:
    """Save what a form says; with `do=preview` only show it."""
    site, path = site_of(request), path_of(request)
    sent = Sent.of(await site.form(request))
    mine = b""
    try:
        mine = sent.data(path)
        if sent.values.get("do") == "preview":
            preview = await render_body(site, path, parse(path, mine).body)
            return _page(request, path, sent, preview="It is too long to be rendered." if preview is None else preview)
        change = Create(path, mine) if sent.base is None else Replace(path, mine, etag_of(sent.base), sent.base)
        applied = await site.folder.apply([change], AUTHOR, "edited on the web page")
    except Conflict as conflict:
        return _conflict(request, path, mine, None if conflict.etag is None else await site.folder.read(path))
    except MdmemoryError as error:  # what was typed must not be lost
        return _page(request, path, sent, 422, str(error))
    is_merged = any(item.merged for item in applied.files if item.path == path)
    note = "merged" if is_merged else "saved" if applied.commit_id else "same"
    return see_other("/index" if path == INDEX else link_to("file", path), note)


def _page(request: Request, path: str, sent: Sent, status: int = 200, problem: str = "", preview: str | None = None) -> Response:
    site, is_raw = site_of(request), "text" in sent.values
    return site.page(
        "edit",
        request,
        status,
        title=f"Edit {path}",
        path=path,
        base=packed(sent.base),
        shown=packed(sent.shown),
        inputs=() if is_raw else filled(inputs(parse(path, sent.origin)), sent.values),
        text=sent.values.get("text" if is_raw else "body", ""),
        is_raw=is_raw,
        is_index=path == INDEX,
        types=site.folder.types,
        preview=preview,
        problem=problem,
    )


def _conflict(request: Request, path: str, mine: bytes, theirs: bytes | None) -> Response:
    """Both texts beside each other, and what can be done."""
    text = None if theirs is None else readable(theirs)
    return site_of(request).page(
        "conflict",
        request,
        409,
        title=f"Two edits of {path}",
        path=path,
        mine=packed(mine),
        theirs=packed(theirs),
        is_gone=theirs is None,
        rows=side_by_side(readable(mine), text or ""),
        text=readable(mine),
    )


def packed(data: bytes | None) -> str:
    """Bytes as a form carries them; None is empty, and no bytes are `-`."""
    return "" if data is None else base64.b64encode(data).decode() or "-"


def _unpacked(text: str) -> bytes | None:
    try:
        return None if not text else b"" if text == "-" else base64.b64decode(text, validate=True)
    except ValueError:
        raise HTTPException(400, "The form can't be read.") from None
