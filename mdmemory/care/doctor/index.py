"""Where the index and the files disagree, and the one change that repairs it; people's lines stay. Floor 4."""

from __future__ import annotations

from collections.abc import Mapping

from mdmemory.backends.protocol import File, FileProblem, etag_of
from mdmemory.care.doctor.findings import Finding
from mdmemory.errors import InvalidMemoryFile
from mdmemory.files import index
from mdmemory.files.changes import Change, Create, Replace
from mdmemory.files.index_faults import drift
from mdmemory.files.memory_file import decode
from mdmemory.folder.known import INDEX, is_memory_path
from mdmemory.folder.memory_folder import MemoryFolder

_CODES: Mapping[str, tuple[str, str]] = {
    "missing": ("no-pointer", "the index has no line for this file"),
    "dead": ("dead-pointer", "the index line's file is gone"),
    "dead_link": ("dead-link", "a link in the text of the index leads to no file"),
    "duplicate": ("double-pointer", "the file has another line in the index"),
    "differs": ("other-words", "the line, written by hand, says something else than the file's header"),
}
FIXABLE = ("no-pointer", "dead-pointer")


async def check_index(folder: MemoryFolder) -> list[Finding]:
    """The findings of MEMORY.md, and of files that it should name."""
    found = (await folder.read_many([INDEX]))[INDEX]
    if isinstance(found, FileProblem) and found.kind != "absent":
        return [Finding("unreadable", INDEX, None, found.reason)]
    try:
        text = decode(INDEX, found.data if isinstance(found, File) else b"")
    except InvalidMemoryFile as error:
        return [Finding("encoding", INDEX, error.line, error.reason)]
    findings = []
    for fault in drift(text, folder.listed, folder.limits):
        if is_memory_path(fault.path) and not _unseen(folder, fault.path):
            code, message = _CODES[fault.kind]
            place, line = (fault.path, None) if fault.kind == "missing" else (INDEX, fault.line)
            findings.append(Finding(code, place, line, f"{message}: {fault.text.strip()}", code in FIXABLE))
    for line in index.inline_content(text):
        findings.append(Finding("inline-content", INDEX, line, "text that belongs in a memory file of its own; move it there"))
    repaired = index.update(text, {path: (listed, listed) for path, listed in folder.listed.items()}, folder.listed, folder.limits)
    full = index.warning(repaired, folder.limits)
    return [*findings, Finding("index-full", INDEX, None, full)] if full else findings


async def repaired_index(folder: MemoryFolder) -> list[Change]:
    """The change that gives every file that should have one its line, and takes away lines that lead nowhere."""
    data = (await folder.read_many([INDEX]))[INDEX]
    if isinstance(data, FileProblem) and data.kind != "absent":
        return []  # could not look is not absent; `check_index` says so
    before = data.data if isinstance(data, File) else b""
    try:
        text = decode(INDEX, before)
    except InvalidMemoryFile:
        return []
    faults = drift(text, folder.listed, folder.limits)
    dead: dict[str, tuple[index.Listed | None, index.Listed | None]] = {
        fault.path: (None, None) for fault in faults if fault.kind == "dead" and not _unseen(folder, fault.path)
    }
    changed = dead | {path: (listed, listed) for path, listed in folder.listed.items()}
    after = index.update(text, changed, folder.listed, folder.limits).text.encode()
    if after == before:
        return []
    return [Create(INDEX, after) if isinstance(data, FileProblem) else Replace(INDEX, after, etag_of(before), before)]


def _unseen(folder: MemoryFolder, path: str) -> bool:
    """Whether a path is that of a broken file, was skipped, or lies in a folder that was: then it is not known to be gone."""
    return (path in folder.files and path not in folder.listed) or any(
        path == place or path.startswith(f"{place}/") for place in folder.skipped
    )
