"""Memory files and the index as MCP resources. Floor 6."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote, unquote

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from mdmemory.files.memory_file import decode
from mdmemory.folder.any_folder import Folder
from mdmemory.folder.known import INDEX, Known, is_memory_path, listed_as
from mdmemory.render import moment

SCHEME: Final = "mdmemory:///"
PAGE: Final = 500
_TYPE: Final = "text/markdown"
Context = ServerRequestContext[Any, Any]


def uri_of(path: str) -> str:
    """The URI of a file in the folder."""
    return SCHEME + quote(path)


class Resources:
    """The index and every memory file of a folder."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder

    async def list(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        """The index, then the memory files by path, 500 a page."""
        await self.folder.refresh()
        after = params.cursor if params and params.cursor else ""
        files = self.folder.files
        paths = sorted(path for path in files if path > after)
        index = types.Resource(name=INDEX, uri=uri_of(INDEX), description="The index of the memory", mime_type=_TYPE)
        page = [_resource(path, files[path]) for path in paths[:PAGE]]
        more = paths[PAGE - 1] if len(paths) > PAGE else None
        return types.ListResourcesResult(resources=page if after else [index, *page], next_cursor=more)

    async def templates(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListResourceTemplatesResult:
        """One template for any memory file."""
        template = types.ResourceTemplate(
            name="memory file", uri_template=f"{SCHEME}{{+path}}", description="A memory file by its path", mime_type=_TYPE
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        """The text of a memory file, or of the index as an agent sees it.

        Raises:
            MCPError: not a URI of this memory.
            MdmemoryError: the file can't be read.
        """
        path = unquote(params.uri.removeprefix(SCHEME))
        if not params.uri.startswith(SCHEME) or not (path == INDEX or is_memory_path(path)):
            raise MCPError(types.INVALID_PARAMS, f"There is no resource {params.uri!r:.80}.")
        if path == INDEX:
            await self.folder.refresh()
            text = (await self.folder.prompt_index()).text
        else:
            text = decode(path, await self.folder.read(path))
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, mime_type=_TYPE, text=text)])


def _resource(path: str, known: Known) -> types.Resource:
    listed = listed_as(path, known)
    changed = moment(known.mtime_ns).isoformat(timespec="seconds")
    return types.Resource(
        name=path,
        title=listed.name,
        uri=uri_of(path),
        description=listed.description or None,
        mime_type=_TYPE,
        size=known.size,
        annotations=types.Annotations(last_modified=changed),
    )
