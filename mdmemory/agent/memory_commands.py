"""The commands of Anthropic's memory tool, `memory_20250818`, on a memory folder: `/memories` is its root. Floor 4.

The contract is text in, text out: https://docs.claude.com/en/docs/agents-and-tools/tool-use/memory-tool. Files of any name may be
kept; Markdown with frontmatter is a memory file as every other: checked, indexed and found.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mdmemory.agent.arguments import check_arguments
from mdmemory.agent.dialects import Dialect, worded
from mdmemory.agent.memory_views import inside, listing, numbered, places_of, snippet, split_lines
from mdmemory.backends.paths import fault
from mdmemory.backends.protocol import File, etag_of, parents, problem_error
from mdmemory.errors import Conflict, InvalidArguments, InvalidPath, MdmemoryError, UnsafeFile
from mdmemory.files.changes import Change, Create, Delete, Rename, Replace, crlf, edit_text, uses_crlf
from mdmemory.files.memory_file import BOM, decode, encode
from mdmemory.folder.any_folder import Folder
from mdmemory.folder.settle import Applied

ROOT: Final = "/memories"
MAX_LINES: Final = 999_999
ATTEMPTS: Final = 20  # how often an edit is made anew when others changed the same lines meanwhile
_LINK: Final = "symbolic link"
_TYPES: Final[Mapping[str, Mapping[str, Any]]] = {  # all others are text
    "view_range": {"type": "array", "items": {"type": "integer"}},
    "insert_line": {"type": "integer"},
}
_COMMANDS: Final[Mapping[str, Sequence[str]]] = {
    "view": ("path", "view_range?"),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str", "new_str?"),
    "insert": ("path", "insert_line", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}


class MemoryCommands:
    """View, create, str_replace, insert, delete and rename, each answered in the words of the contract.

    Args:
        author: who the history says made the changes.
        dialect: `docs` as the documentation words the answers, `sdk` as the Python SDK's own tool does.
    """

    def __init__(self, folder: Folder, author: str = "agent:", dialect: Dialect = "docs") -> None:
        self.folder, self._author, self._dialect = folder, author, dialect
        steps = (self._view, self._create, self._str_replace, self._insert, self._delete, self._rename)
        self._steps: Mapping[str, Callable[..., Any]] = dict(zip(_COMMANDS, steps, strict=True))

    async def run(self, arguments: object) -> str:
        """Carry out one command as the model gave it, such as `{"command": "view", "path": "/memories"}`.

        Raises:
            MdmemoryError: the message is for the model.
        """
        given = dict(arguments) if isinstance(arguments, Mapping) else {}
        command = given.pop("command", None)
        if not isinstance(command, str) or command not in _COMMANDS:
            raise InvalidArguments(f"memory: command must be one of {', '.join(_COMMANDS)}.")
        names = _COMMANDS[command]
        schema = {
            "properties": {name.rstrip("?"): _TYPES.get(name.rstrip("?"), {"type": "string"}) for name in names},
            "required": [name for name in names if not name.endswith("?")],
        }
        checked = check_arguments(f"memory {command}", given, schema)
        try:
            answer: str = await self._steps[command](**checked)
        except UnsafeFile as error:
            raise await self._explained(error, checked) from error
        return answer

    async def _view(self, path: str, view_range: Sequence[int] = ()) -> str:
        place = self._place(path)
        found = (await self.folder.read_many([place]))[place] if place else None
        if not isinstance(found, File):
            scan = await self.folder.scan()
            if found is not None and not inside(place, scan.files):
                is_empty = found.kind == "unsafe" and not any(part in scan.skipped for part in (place, *parents(place)))
                raise self._refusal("view_absent", path=path) if is_empty or found.kind == "absent" else problem_error(place, found)
            return f"{self._say('listing', path=path)}\n{listing(ROOT, place, scan, self._dialect)}"
        text = decode(place, found.data).removeprefix(BOM)
        lines = text.split("\n") if self._dialect == "sdk" else split_lines(text.replace("\r\n", "\n"))
        if len(lines) > MAX_LINES:
            raise self._refusal("too_long", path=path)
        return f"{self._say('content', path=path)}\n{numbered(lines, *_range(view_range, len(lines)))}"

    async def _create(self, path: str, file_text: str) -> str:
        place, exists = self._place(path), self._refusal("exists", path=path)
        try:
            applied = await self._apply(Create(place, encode(place, file_text))) if place else None
        except (Conflict, UnsafeFile) as error:
            if isinstance(error, UnsafeFile) and not await self._is_folder(place):
                raise
            raise exists from None
        if applied is None or applied.files[0].before is not None:
            raise exists
        return self._say("created", path=path)

    async def _str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        old = old_str.replace("\r\n", "\n")
        if not old:
            raise InvalidArguments("memory str_replace: old_str is empty; give the text to replace.")
        at = 0

        def edited(text: str) -> str:
            nonlocal at
            flat = text.replace("\r\n", "\n")
            found = places_of(flat, old)
            if not found:
                raise self._refusal("no_match", path=path, old=old_str)
            lines = [flat.count("\n", 0, place) for place in found]
            if len(found) > 1:
                raise self._refusal("matches", old=old_str, lines=", ".join(str(line + 1) for line in lines))
            at = lines[0]
            return text if old_str == new_str else edit_text(text, old_str, new_str)

        lines = (await self._edit(path, "replace", edited)).replace("\r\n", "\n").split("\n")
        return f"{self._say('replaced')}\n{snippet(lines, at, new_str.count(chr(10)) + 1)}"

    async def _insert(self, path: str, insert_line: int, insert_text: str) -> str:
        def edited(text: str) -> str:
            lines, new = split_lines(text), insert_text.rstrip("\n")
            if not 0 <= insert_line <= len(lines):
                raise self._refusal("bad_line", line=insert_line, last=len(lines))
            if uses_crlf(text) and self._dialect == "docs":
                new = f"{crlf(new)}\r"
            return "\n".join([*lines[:insert_line], new, *lines[insert_line:]]) + "\n"

        await self._edit(path, "insert", edited)
        return self._say("inserted", path=path)

    async def _delete(self, path: str) -> str:
        place = self._place(path)
        if not place:
            raise self._refusal("delete_root")
        scan = await self.folder.scan()
        links = [link for link in (place, *inside(place, scan.skipped)) if _LINK in scan.skipped.get(link, "")]
        files = inside(place, scan.files)
        try:
            if files or not links:
                await self._apply(*map(Delete, files or [place]))
        except Conflict as error:
            raise self._refusal("absent", path=path) if error.path == place else error from error
        for link in links:
            await self.folder.unlink(link, self._author)
        return self._say("deleted", path=path)

    async def _rename(self, old_path: str, new_path: str) -> str:
        old, new = self._place(old_path), self._place(new_path)
        if not old:
            raise self._refusal("rename_root")
        if not new or await self._is_there(new):
            raise self._refusal("taken", new_path=new_path)
        try:
            await self._apply(Rename(old, new))
        except Conflict as error:
            if error.etag is not None:
                raise self._refusal("taken", new_path=new_path) from error
            raise self._refusal("absent", path=old_path) from error
        return self._say("renamed", path=old_path, new_path=new_path)

    async def _edit(self, path: str, kind: str, edited: Callable[[str], str], attempts: int = ATTEMPTS) -> str:
        """Edit a file as it is now, and anew when others changed the same lines meanwhile; returns its text after that."""
        place = self._place(path)
        found = (await self.folder.read_many([place]))[place] if place else None
        if not isinstance(found, File):
            if found is None or await self._is_folder(place):
                raise self._refusal(f"{kind}_folder", path=path)
            raise self._refusal(f"{kind}_absent", path=path) if found.kind == "absent" else problem_error(place, found)
        data = encode(place, edited(decode(place, found.data)))
        try:
            applied = await self._apply(Replace(place, data, etag_of(found.data), found.data))
        except Conflict:
            if attempts == 1:
                raise
            return await self._edit(path, kind, edited, attempts - 1)
        return decode(place, applied.files[0].after or b"")

    async def _apply(self, *changes: Change) -> Applied:
        return await self.folder.apply(changes, self._author, "memory tool", plain=True)

    async def _is_folder(self, place: str) -> bool:
        return bool(inside(place, (await self.folder.scan()).files))

    async def _is_there(self, place: str) -> bool:
        scan = await self.folder.scan()
        return place in scan.files or place in scan.skipped or bool(inside(place, scan.files))

    def _place(self, path: str) -> str:
        """The path inside the folder, "" for its root.

        Raises:
            InvalidArguments, InvalidPath: it lies outside, or is none that a memory may have.
        """
        parts: list[str] = []
        if path != ROOT and not path.startswith(f"{ROOT}/"):
            raise self._refusal("outside", path=path)
        for part in path.removeprefix(ROOT).split("/"):
            if part == ".." and not parts:
                raise self._refusal("escape", path=path)
            if part == "..":
                parts.pop()
            elif part not in ("", "."):
                parts.append(part)
        place = "/".join(parts)
        if place and (why := fault(place)):
            raise InvalidPath(f"{path!r:.80} is not a usable path: {why}. Use a path such as {ROOT}/project/release-plan.md.")
        return place

    async def _explained(self, error: UnsafeFile, arguments: Mapping[str, Any]) -> MdmemoryError:
        """What is unsafe in the way of a command: a link is never followed, wherever it leads."""
        skipped = (await self.folder.scan()).skipped
        for path in (value for name, value in arguments.items() if name.endswith("path")):
            place = self._place(path)
            if any(_LINK in skipped.get(parent, "") for parent in parents(place)):
                return self._refusal("escape", path=path)
            if place in skipped:
                reason = "it is a symlink, never followed" if _LINK in skipped[place] else skipped[place]
                return self._refusal("unsupported", path=path, reason=reason)
        return error

    def _say(self, key: str, **values: object) -> str:
        return worded(self._dialect, key, **values)

    def _refusal(self, key: str, **values: object) -> InvalidArguments:
        return InvalidArguments(self._say(key, **values))


def _range(view_range: Sequence[int], count: int) -> tuple[int, int]:
    """The first and the last line to show."""
    if not view_range:
        return 1, count
    if len(view_range) == 2:
        first, last = view_range
        return max(1, first), count if last == -1 else max(0, last)
    raise InvalidArguments("memory view: view_range is two line numbers, such as [1, 20]; -1 as the second is the last line.")
