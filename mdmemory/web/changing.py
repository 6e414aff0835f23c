"""New memory files, other names for them, and their end. Floor 6."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from mdmemory.agent.adding import DEFAULT_TYPE, free_path
from mdmemory.backends.protocol import etag_of
from mdmemory.errors import Conflict, MdmemoryError
from mdmemory.files.changes import Create, Delete, Rename
from mdmemory.files.memory_file import new_file
from mdmemory.files.naming import slug
from mdmemory.web.reading import path_of
from mdmemory.web.site import AUTHOR, link_to, see_other, site_of

_NEW = {"name": "", "description": "", "type": DEFAULT_TYPE, "tags": "", "path": "", "body": ""}


async def show_new(request: Request) -> Response:
    """An empty form; `name` may stand in the address."""
    site = site_of(request)
    values = {**_NEW, "name": request.query_params.get("name", "")[:200]}
    return site.page("new", request, title="New memory", values=values, types=site.folder.types, problem="")


async def take_new(request: Request) -> Response:
    """Make the file; without a path it is named after its type and name."""
    site = site_of(request)
    values = {**_NEW, **await site.form(request)}
    name, kind = values["name"].strip(), values["type"]
    tags = [tag.strip() for tag in values["tags"].split(",") if tag.strip()]
    try:
        if not name:
            raise MdmemoryError("A memory needs a name: a short title.")
        fields = {"tags": tags} if tags else {}
        data = new_file(name, " ".join(values["description"].split()), kind, values["body"], **fields)
        await site.look()
        path = values["path"].strip() or free_path(site.folder, f"{kind}/{slug(name)}", data)
        path = path if path.lower().endswith(".md") else f"{path}.md"
        await site.folder.apply([Create(path, data)], AUTHOR, "made on the web page")
    except Conflict as conflict:
        problem = f"{conflict.path} is there already. Nothing was written: choose another path."
        return site.page("new", request, 409, title="New memory", values=values, types=site.folder.types, problem=problem)
    except MdmemoryError as error:
        return site.page("new", request, 422, title="New memory", values=values, types=site.folder.types, problem=str(error))
    return see_other(link_to("file", path), "made")


async def show_move(request: Request) -> Response:
    """Where a file is to be, or whether it is to go."""
    site, path = site_of(request), path_of(request)
    await site.look()
    etag = etag_of(await site.folder.read(path))
    return site.page("move", request, title=f"Move {path}", path=path, new_path=path, etag=etag, problem="")


async def take_move(request: Request) -> Response:
    """Rename the file, or delete it."""
    site, path = site_of(request), path_of(request)
    values = await site.form(request)
    new_path, etag, is_end = values.get("new_path", path).strip(), values.get("etag", ""), values.get("do") == "delete"
    try:
        if is_end:
            await site.folder.apply([Delete(path, etag or None)], AUTHOR, "deleted on the web page")
        elif new_path != path:
            await site.folder.apply([Rename(path, new_path)], AUTHOR, "renamed on the web page")
    except Conflict as conflict:
        status, problem = 409, f"{conflict.path} is there already: choose another path."
        if conflict.etag is None:
            problem = f"{path} is gone already."
        elif is_end:
            problem = f"{path} has changed since you opened it, so it was not deleted. Look at it, and delete it then."
    except MdmemoryError as error:
        status, problem = 422, str(error)
    else:
        return see_other("/", "deleted") if is_end else see_other(link_to("file", new_path), "moved")
    return site.page("move", request, status, title=f"Move {path}", path=path, new_path=new_path, etag=etag, problem=problem)
