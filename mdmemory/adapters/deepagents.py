"""The memory's folder as the files of a deep agent: `create_deep_agent(model, backend=FolderBackend(memory))`. Floor 7."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import wraps
from typing import Any

from mdmemory.adapters.bridge import BridgedMemory
from mdmemory.adapters.connection import extra
from mdmemory.backends.protocol import File, etag_of
from mdmemory.errors import InvalidMemoryFile, MdmemoryError
from mdmemory.files.changes import Change, Create, Delete, Replace
from mdmemory.files.memory_file import decode, encode

with extra("deepagents"):
    from deepagents.backends import StateBackend
    from deepagents.backends import protocol as answers

INDEX = "MEMORY.md"


def _answering(method: Callable[..., Any], answer: Callable[..., Any]) -> Any:
    """The method, whose failures the model is told."""

    @wraps(method)
    def called(*given: Any, **named: Any) -> Any:
        try:
            return method(*given, **named)
        except MdmemoryError as error:
            return answer(error=str(error))

    return called


class FolderBackend(StateBackend):
    """deepagents' own tools (`ls`, `read_file`, `write_file`, …) on the memory's folder, whose writes are checked like all others.

    It is deepagents' StateBackend on another place: the two methods by which that one reads and writes its files are replaced.

    Args:
        memory: from `mdmemory.adapters.bridge`: deepagents calls its backends in threads.
        author: who the history says made the changes.
    """

    def __init__(self, memory: BridgedMemory, author: str = "agent:deepagents") -> None:
        super().__init__()
        self._bridge, self._folder, self._author = memory.bridge, memory.memory.folder, author
        self._seen = threading.local()  # a call is one thread's: what it read is what its change is based on

    def _read_files(self) -> dict[str, Any]:
        found = self._bridge.run(self._look())
        self._seen.data = {f"/{path}": file.data for path, file in found.items()}
        return {f"/{path}": told for path, file in found.items() if (told := _told(path, file))}

    def _send_files_update(self, update: Mapping[str, Any]) -> None:
        changes = [self._change(path, told) for path, told in update.items()]
        self._bridge.run(self._folder.apply(changes, self._author, "deepagents"))

    async def _look(self) -> dict[str, File]:
        await self._folder.refresh()
        found = await self._folder.read_many([*self._folder.files, INDEX])
        return {path: file for path, file in found.items() if isinstance(file, File)}

    def _change(self, path: str, told: Mapping[str, Any] | None) -> Change:
        inside, data = path.removeprefix("/"), self._seen.data.get(path)
        if told is None:
            return Delete(inside, etag_of(data))
        text = encode(inside, told["content"])
        return Create(inside, text) if data is None else Replace(inside, text, etag_of(data), data)

    ls = _answering(StateBackend.ls, answers.LsResult)
    read = _answering(StateBackend.read, answers.ReadResult)
    grep = _answering(StateBackend.grep, answers.GrepResult)
    glob = _answering(StateBackend.glob, answers.GlobResult)
    write = _answering(StateBackend.write, answers.WriteResult)
    edit = _answering(StateBackend.edit, answers.EditResult)
    delete = _answering(StateBackend.delete, answers.DeleteResult)


def _told(path: str, file: File) -> dict[str, Any] | None:
    """The file as deepagents has it; None when it is no text."""
    try:
        content = decode(path, file.data)
    except InvalidMemoryFile:
        return None
    changed = datetime.fromtimestamp(file.mtime_ns / 1e9, UTC).isoformat()
    return {"content": content, "encoding": "utf-8", "created_at": changed, "modified_at": changed}
