"""The toolset: Read, Write, Edit, Delete, Search and Add over one memory folder, as agents know them. Floor 4.

A tool never raises for what a model can mend: the answer then is text that says how to mend the call. Answers name files by their
path in the folder. A toolset remembers what was read through it: that is what Write may overwrite and what Edit is based on.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, cast

from mdmemory.agent.adding import from_content
from mdmemory.agent.answers import DEFAULT_LINES, deleted, listing, numbered, saved
from mdmemory.agent.arguments import check_arguments
from mdmemory.agent.searching import DEFAULT_FILES, found, search_keywords
from mdmemory.backends.paths import check
from mdmemory.backends.protocol import etag_of
from mdmemory.errors import Conflict, InvalidArguments, MdmemoryError, NotThere
from mdmemory.files.changes import Change, Create, Delete, Replace, crlf, edit_text, uses_crlf
from mdmemory.files.memory_file import BOM, decode, encode
from mdmemory.folder.any_folder import Folder
from mdmemory.render import render

Mode = Literal["auto", "agent", "both"]
"""How an agent comes by memories: hints that are given (`auto`), the tool Search (`agent`), or both."""
READ_ONLY = ("Read", "Search")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A tool's answer to the model."""

    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool, for any framework: JSON Schema in, text out.

    Args:
        input_schema: JSON Schema of the arguments, an object.
        read_only: whether a call leaves the memory as it is.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    read_only: bool
    run: Callable[[Mapping[str, Any]], Awaitable[str]]

    async def __call__(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Call the tool; errors come back as text for the model."""
        try:
            return ToolResult(await self.run(check_arguments(self.name, arguments, self.input_schema)))
        except Conflict as error:
            current = f"\n\nThe file now:\n{numbered(error.current)}" if error.current is not None else ""
            return ToolResult(f"{error}{current}", is_error=True)
        except MdmemoryError as error:
            return ToolResult(str(error), is_error=True)


@dataclass(frozen=True, slots=True)
class Seen:
    """What went through the tools of one conversation: the bytes read by path, and the paths written or deleted."""

    read: dict[str, bytes] = field(default_factory=dict)
    written: set[str] = field(default_factory=set)


class Toolset:
    """Read, Write, Edit and Delete for one conversation; Search, unless hints do its work, and Add, where there may be writing.

    Args:
        seen: what the conversation has read and written so far.
        author: who the history says made the changes, such as `agent:session-1`.
        after_call: gives text to add to an answer, or ""; for hosts that have no other place for a hint.
    """

    def __init__(
        self,
        folder: Folder,
        author: str,
        seen: Seen | None = None,
        after_call: Callable[[], Awaitable[str]] | None = None,
        mode: Mode = "both",
    ) -> None:
        self.folder = folder
        self.author = author
        self.seen = seen or Seen()
        self._after_call = after_call
        tools = [
            self._tool("Read", {"default_limit": DEFAULT_LINES}, ("file_path", "offset?", "limit?"), self._run_read),
            self._tool("Write", {"types": list(folder.types)}, ("file_path", "content"), self._run_write),
            self._tool("Edit", {}, ("file_path", "old_string", "new_string", "replace_all?"), self._run_edit),
            self._tool("Delete", {}, ("file_path",), self._run_delete),
        ]
        if mode != "auto":
            tools.append(self._tool("Search", {}, ("keywords", "limit?", "filters?"), self._run_search))
        if not folder.is_read_only:
            tools.append(self._tool("Add", {"types": list(folder.types)}, ("thinking", "content", "type?"), self._run_add))
        self.tools: tuple[Tool, ...] = tuple(tools)

    def _tool(
        self,
        name: str,
        variables: Mapping[str, object],
        parameters: Sequence[str],
        run: Callable[[Mapping[str, Any]], Awaitable[str]],
    ) -> Tool:
        names = [parameter.rstrip("?") for parameter in parameters]
        properties = {key: _PARAMETERS.get(f"{name}.{key}") or _PARAMETERS[key] for key in names}
        required = [parameter for parameter in parameters if not parameter.endswith("?")]
        schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
        description = render(f"tool_{name.lower()}", self.folder.config.prompts_dir, **variables)
        return Tool(name, description, schema, name in READ_ONLY, run)

    @property
    def names(self) -> list[str]:
        """The tools' names."""
        return [tool.name for tool in self.tools]

    def openai(self) -> list[dict[str, Any]]:
        """The tools as the OpenAI chat completions API takes them."""
        return [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.input_schema)},
            }
            for tool in self.tools
        ]

    def anthropic(self) -> list[dict[str, Any]]:
        """The tools as the Anthropic Messages API takes them."""
        return [
            {"name": tool.name, "description": tool.description, "input_schema": dict(tool.input_schema)} for tool in self.tools
        ]

    async def call(self, name: str, arguments: Mapping[str, Any] | str) -> ToolResult:
        """Call a tool by name.

        Args:
            arguments: as the model gave them, decoded or as JSON text.
        """
        tool = next((tool for tool in self.tools if tool.name == name), None)
        if tool is None:
            return ToolResult(f"There is no memory tool {name!r}; there are {', '.join(self.names)}.", is_error=True)
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments or "{}")
            except (ValueError, RecursionError) as error:
                return ToolResult(f"The arguments of {name} are not valid JSON ({error}). Call it again.", is_error=True)
        result = await tool(cast("Mapping[str, Any]", arguments))
        more = await self._after_call() if self._after_call else ""
        return ToolResult(f"{result.text}\n\n{more}", result.is_error) if more else result

    async def _run_read(self, arguments: Mapping[str, Any]) -> str:
        part = arguments.get("offset", 1), arguments.get("limit", DEFAULT_LINES)
        if not part[0]:
            raise InvalidArguments("Read: offset must be at least 1, or less than 0 to count lines from the end.")
        if not arguments["file_path"].strip().lower().endswith(".md") and (found := await self._list(arguments["file_path"], part)):
            return found
        path = _path(arguments)
        try:
            data = await self.folder.read(path)
        except NotThere:
            raise NotThere(f"There is no {path}. Read . to list every memory file.") from None
        text = decode(path, data).removeprefix(BOM)
        self.seen.read[path] = data
        return numbered(text, *part)

    async def _list(self, place: str, part: tuple[int, int]) -> str | None:
        """The memory files in a folder, or with `.` all; None when it is no folder of any."""
        folder = place.strip().removeprefix("./").rstrip("/")
        if folder != ".":
            check(folder)
        if not self.folder.scanned:  # else it would be called empty
            await self.folder.refresh()
        found = listing("" if folder == "." else folder, self.folder.files, *part)
        return "The memory is empty." if folder == "." and found is None else found

    async def _run_write(self, arguments: Mapping[str, Any]) -> str:
        path, content = _path(arguments), arguments["content"]
        base = self.seen.read.get(path)
        if base is None:
            return await self._apply(Create(path, encode(path, content)), "Write")  # a conflict, when there is such a file
        old = decode(path, base)
        content = crlf(content) if uses_crlf(old) and "\r\n" not in content else content
        mark = BOM if old.startswith(BOM) and not content.startswith(BOM) else ""
        return await self._apply(Replace(path, encode(path, mark + content), etag_of(base), base), "Write")

    async def _run_edit(self, arguments: Mapping[str, Any]) -> str:
        path = _path(arguments)
        encode(path, arguments["new_string"])
        edit = partial(_edited, path, arguments)
        base = self.seen.read.get(path)
        try:
            data = edit(base) if base is not None else None
        except InvalidArguments:
            data = None  # the text was seen elsewhere, as in a hint: what counts is the file as it is now
        if base is None or data is None:
            base = await self.folder.read(path)
            data = edit(base)
        return await self._apply(Replace(path, data, etag_of(base), base), "Edit")

    async def _run_delete(self, arguments: Mapping[str, Any]) -> str:
        path = _path(arguments)
        base = self.seen.read.get(path)
        applied = await self.folder.apply([Delete(path, None if base is None else etag_of(base))], self.author, "Delete")
        self.seen.read.pop(path, None)
        self.seen.written.add(path)
        return deleted(path, applied)

    async def _run_search(self, arguments: Mapping[str, Any]) -> str:
        await self.folder.refresh()  # so that what others have just written is found
        limit, filters = arguments.get("limit", DEFAULT_FILES), arguments.get("filters", {})
        return await found(self.folder, await search_keywords(self.folder, arguments["keywords"], limit, filters))

    async def _run_add(self, arguments: Mapping[str, Any]) -> str:
        if not self.folder.scanned:
            await self.folder.refresh()
        return await self._apply(from_content(self.folder, arguments["content"], arguments.get("type")), "Add")

    async def _apply(self, change: Change, reason: str) -> str:
        try:
            applied = await self.folder.apply([change], self.author, reason)
        except Conflict as error:
            if error.etag is None:
                self.seen.read.pop(change.path, None)  # who writes it again, knowing that it was deleted, makes it anew
            raise
        item = next(item for item in applied.files if item.path == change.path)
        self.seen.read[change.path] = item.after or b""
        if isinstance(change, Replace) and item.before == b"":  # it was added at the end: what was seen is what was written
            self.seen.read[change.path] = change.data
        self.seen.written.add(change.path)
        return saved(change, applied, self.folder.files.get(change.path))


# `tool.parameter` is that of one tool only.
_PARAMETERS: Mapping[str, Mapping[str, Any]] = {
    "file_path": {"type": "string", "description": "Path inside the memory folder, such as user/role.md"},
    "offset": {"type": "integer", "description": "First line to read, from 1; -20 for the last 20 lines"},
    "limit": {"type": "integer", "minimum": 1, "description": "How many lines to read"},
    "content": {"type": "string", "description": "The whole file: frontmatter, then the memory"},
    "old_string": {"type": "string", "description": "The exact text to replace"},
    "new_string": {"type": "string", "description": "The text to put in its place"},
    "Search.limit": {"type": "integer", "minimum": 1, "description": f"How many files at most (default {DEFAULT_FILES})"},
    "Add.content": {"type": "string", "description": "What to remember, word for word"},
    "keywords": {"type": "array", "items": {"type": "string"}, "description": "Several short keywords"},
    "filters": {"type": "object", "description": "Any of type, path, mount, tags, after, before, as_of, where"},
    "thinking": {"type": "string", "description": "Why this is worth remembering; not stored"},
    "type": {"type": "string", "description": "The memory's type (default project)"},
    "replace_all": {"type": "boolean", "description": "Replace every occurrence (default false)"},
}


def _edited(path: str, arguments: Mapping[str, Any], data: bytes) -> bytes:
    """The file with the edit in it."""
    text, old, new = decode(path, data), arguments["old_string"], arguments["new_string"]
    try:
        return encode(path, edit_text(text, old, new, replace_all=arguments.get("replace_all", False)))
    except InvalidArguments as error:
        raise InvalidArguments(f"{path}: {error}. Nothing was written.") from None


def _path(arguments: Mapping[str, Any]) -> str:
    """The path as the folder has it: models like to begin with `./`."""
    return check(arguments["file_path"].strip().removeprefix("./"))
