"""The memory's tools over MCP: what is offered, and what a call comes to. Floor 6."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from mdmemory.agent.arguments import check_arguments
from mdmemory.agent.recalling import quoted_for_model, recall
from mdmemory.agent.searching import DEFAULT_FILES, found, search_keywords
from mdmemory.agent.tools import Tool, Toolset
from mdmemory.backends.protocol import File, etag_of
from mdmemory.errors import MdmemoryError
from mdmemory.folder.any_folder import Folder
from mdmemory.render import render

Context = ServerRequestContext[Any, Any]
MAX_SESSIONS: Final = 256
ETAG_CHARS: Final = 16
_TEXT, _MAYBE_TEXT, _NUMBER = {"type": "string"}, {"type": ["string", "null"]}, {"type": "number"}
_ETAG: Final = {
    "type": "string",
    "description": "Where a Read ended in an etag: that etag, if this replaces the file that was read",
}
_RECALL: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What it is about, in a few words"},
        "max_tokens": {"type": "integer", "minimum": 50, "description": "How much the passages may take"},
        "filters": {"type": "object", "description": "Any of type, path, tags, after, before, as_of, where"},
    },
    "required": ["query"],
    "additionalProperties": False,
}
_HINTS: Final = {  # read-only, destructive, idempotent
    "Read": (True, False, True),
    "Search": (True, False, True),
    "recall": (True, False, True),
    "Write": (False, True, True),
    "Edit": (False, True, False),
    "Delete": (False, True, True),
    "Add": (False, False, True),
}


def _list_of(name: str, properties: Mapping[str, Any]) -> dict[str, Any]:
    item = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "object", "properties": {name: {"type": "array", "items": item}}, "required": [name]}


_FILE: Final = {"path": _TEXT, "name": _TEXT, "description": _TEXT, "type": _MAYBE_TEXT, "score": _NUMBER, "modified": _TEXT}
_PASSAGE: Final = {
    **{"path": _TEXT, "name": _TEXT, "line": _NUMBER, "end_line": _NUMBER},
    **{"score": _NUMBER, "date": _TEXT, "text": _TEXT},
}
_OUTPUTS: Final = {"Search": _list_of("files", _FILE), "recall": _list_of("passages", _PASSAGE)}


class Tools:
    """The tools of one memory for many clients: each conversation has a toolset of its own, which knows what it has read.

    A client of the protocol without sessions gets an etag with what it reads, and gives it with what it writes.
    """

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._toolsets: OrderedDict[str, Toolset] = OrderedDict()

    async def list(self, ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        """The tools, with what each does to the memory; a memory that is only read has only those that read."""
        tools = [_offered(tool) for tool in self._new("list").tools if tool.read_only or not self.folder.is_read_only]
        description = render("tool_recall", self.folder.config.prompts_dir)
        return types.ListToolsResult(tools=[*tools, _described("recall", description, _RECALL)])

    async def call(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Call a tool; what a model can mend comes back as its result."""
        arguments = dict(params.arguments or {})
        try:
            if params.name == "recall":
                return await self._recall(arguments)
            if params.name == "Search":
                return await self._search(arguments)
            return await self._files(ctx, params.name, arguments)
        except MdmemoryError as error:
            return _result(str(error), is_error=True)

    async def _files(self, ctx: Context, name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        session = session_of(ctx)
        toolset = self._new(author_of(ctx)) if session is None else self._toolset(session, author_of(ctx))
        if name not in toolset.names:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {name!r:.40}.")
        if name == "Write" and isinstance(etag := arguments.pop("etag", None), str):
            await self._take_for_read(toolset, arguments.get("file_path"), etag)
        result = await toolset.call(name, arguments)
        text = result.text
        if session is None and name == "Read" and not result.is_error:
            text += "".join(f"\n(etag {etag_of(data)[:ETAG_CHARS]})" for data in toolset.seen.read.values())
        return _result(text, is_error=result.is_error)

    async def _take_for_read(self, toolset: Toolset, path: object, etag: str) -> None:
        """Let a file count as read, if it is still what the client has read."""
        place = path.strip().removeprefix("./") if isinstance(path, str) else ""
        file = (await self.folder.read_many([place]))[place] if len(etag) >= ETAG_CHARS and place else None
        if isinstance(file, File) and etag_of(file.data).startswith(etag):
            toolset.seen.read[place] = file.data

    async def _search(self, arguments: Mapping[str, Any]) -> types.CallToolResult:
        schema = next(tool for tool in self._new("search").tools if tool.name == "Search").input_schema
        given = check_arguments("Search", arguments, schema)
        await self.folder.refresh()
        matches = await search_keywords(self.folder, given["keywords"], given.get("limit", DEFAULT_FILES), given.get("filters", {}))
        files = [
            {
                "path": match.path,
                "name": match.name,
                "description": match.description,
                "type": match.type,
                "score": round(score, 3),
                "modified": match.modified.isoformat(timespec="seconds"),
            }
            for match, score in matches
        ]
        return _result(await found(self.folder, matches), {"files": files})

    async def _recall(self, arguments: Mapping[str, Any]) -> types.CallToolResult:
        given = check_arguments("recall", arguments, _RECALL)
        quotes = await recall(self.folder, given["query"], given.get("max_tokens"), given.get("filters", {}))
        return _result(quoted_for_model(self.folder, quotes), {"passages": [asdict(quote) for quote in quotes]})

    def _toolset(self, session: str, author: str) -> Toolset:
        toolset = self._toolsets.pop(session, None) or self._new(author)
        self._toolsets[session] = toolset
        if len(self._toolsets) > MAX_SESSIONS:
            self._toolsets.popitem(last=False)
        return toolset

    def _new(self, author: str) -> Toolset:
        return Toolset(self.folder, f"agent:{author}")


def session_of(ctx: Context) -> str | None:
    """What a client's conversation is known by: "" over stdin and stdout; None for a request that belongs to none."""
    if ctx.request is None:
        return ""
    if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
        return None
    session: str | None = ctx.request.headers.get("mcp-session-id")
    return session


def author_of(ctx: Context) -> str:
    """Who the history says made the changes: the client, as it calls itself."""
    client = ctx.session.client_params
    return re.sub(r"[^\w.-]+", "-", client.client_info.name if client else "")[:40].strip("-") or "mcp"


def _offered(tool: Tool) -> types.Tool:
    schema = dict(tool.input_schema)
    if tool.name == "Write":
        schema["properties"] = {**schema["properties"], "etag": _ETAG}
    return _described(tool.name, tool.description, schema)


def _described(name: str, description: str, schema: Mapping[str, Any]) -> types.Tool:
    reads, destroys, repeats = _HINTS[name]
    hints = types.ToolAnnotations(read_only_hint=reads, destructive_hint=destroys, idempotent_hint=repeats, open_world_hint=False)
    return types.Tool(
        name=name, description=description, input_schema=dict(schema), output_schema=_OUTPUTS.get(name), annotations=hints
    )


def _result(text: str, structured: object = None, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=structured, is_error=is_error)
