"""One memory file, rendered. Floor 6."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from mdmemory.errors import InvalidMemoryFile, InvalidPath
from mdmemory.files.memory_file import MemoryFile, parse
from mdmemory.folder.known import INDEX, is_memory_path
from mdmemory.render import moment
from mdmemory.web.listing import Wanted
from mdmemory.web.markdown import MAX_RENDERED_CHARS, to_html
from mdmemory.web.site import Site, link_to, site_of

_PLAINLY_SHOWN = ("name", "description")


@dataclass(frozen=True, slots=True)
class Property:
    """A field of the frontmatter on the page.

    Args:
        parts: its texts, each with the address that it leads to, or none.
    """

    key: str
    parts: tuple[tuple[str, str], ...]


async def show_file(request: Request) -> Response:
    """A memory file as people read it; of a broken one, why it can't be, and its text as it is."""
    site, path = site_of(request), path_of(request)
    await site.look()
    data = await site.folder.read(path)
    known = site.folder.files.get(path)
    shared: dict[str, Any] = {"path": path, "title": path, "can_write": site.can_write(path)}
    shared |= {"changed": moment(known.mtime_ns) if known else None, "is_outdated": path in site.folder.outdated}
    try:
        file = parse(path, data)
    except InvalidMemoryFile as error:
        return site.page("broken", request, **shared, reason=error.reason, line=error.line, text=readable(data))
    rendered = await render_body(site, path, without_title(file))
    shared["title"] = file.header.name
    return site.page("file", request, **shared, file=file, properties=list(_properties(site, file)), rendered=rendered)


def path_of(request: Request) -> str:
    """The memory file that the address names.

    Raises:
        InvalidPath: it can't be one.
    """
    path: str = request.path_params["path"]
    if path != INDEX and not is_memory_path(path):
        raise InvalidPath(f"{path!r:.100} is no memory file, so it has no page here.")
    return path


async def render_body(site: Site, path: str, body: str) -> str | None:
    """The text of a file as HTML, made while others are answered; None when it is too long."""
    if len(body) > MAX_RENDERED_CHARS:
        return None
    entities = site.entities()
    return await asyncio.to_thread(to_html, body, lambda target: entities.target(target, path))


def without_title(file: MemoryFile) -> str:
    """The body; without its first heading where that is the name, which the page shows above it."""
    body = file.body.lstrip()
    first, _, rest = body.partition("\n")
    return rest if first.startswith("# ") and first[2:].strip() == file.header.name else file.body


def readable(data: bytes) -> str:
    """The bytes of a file that may be in whatever encoding, as text."""
    for encoding in ("utf-8", "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "cp1252"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("latin-1")


def _properties(site: Site, file: MemoryFile) -> Iterator[Property]:
    for key, value in (file.header.fields or {}).items():
        if key not in _PLAINLY_SHOWN:
            values = value if isinstance(value, list) else [value]
            if key == "tags" and isinstance(value, str):
                values = list(file.header.tags)
            yield Property(key, tuple(_part(site, file.path, key, each) for each in values))


def _part(site: Site, path: str, key: str, value: Any) -> tuple[str, str]:
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False), ""
    if key == "tags":
        return value, Wanted(tag=value.removeprefix("#")).url()
    if key == "type":
        return value, Wanted(type=value).url()
    if key == "source" and "#" in value:
        session, _, entry = value.partition("#")
        return value, f"{link_to('journal', session)}#{entry}"
    if key == "supersedes" and (target := site.entities().target(value, path)):
        return value, link_to("file", target)
    return value, ""
