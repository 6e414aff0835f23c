"""The doctor: what is wrong in a folder, by code and place, and the repair of the index. Floor 4.

It reads everything and changes nothing; `repair` proposes one change of MEMORY.md to the folder, in which people's lines stay.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace

from mdmemory.backends.paths import collision_key
from mdmemory.backends.protocol import File, FileProblem, etag_of
from mdmemory.errors import Conflict, InvalidMemoryFile, Unavailable
from mdmemory.files import index
from mdmemory.files.changes import Create, Replace
from mdmemory.files.index_faults import drift
from mdmemory.files.memory_file import MAX_DESCRIPTION_CHARS, decode
from mdmemory.files.safety import instructions_in
from mdmemory.folder.any_folder import Folder, parts_of
from mdmemory.folder.known import INDEX, is_memory_path
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.mounted_folder import MountedFolder

# How sync programs name the other copy: Dropbox and ownCloud, Syncthing, Nextcloud, Seafile.
_CONFLICTED = re.compile(
    r"[ _]?\((?:[^()]*['’]s )?(?:conflicted copy|case conflict|SFConflict)[^()]*\)|\.sync-conflict-[\dA-Z-]+|_conflict-\d{8}-\d{6}",
    re.IGNORECASE,
)
_READ_AT_ONCE = 200
_INDEX_CODES: Mapping[str, tuple[str, str]] = {
    "missing": ("no-pointer", "the index has no line for this file"),
    "dead": ("dead-pointer", "the index line's file is gone"),
    "dead_link": ("dead-link", "a link in the text of the index leads to no file"),
    "duplicate": ("double-pointer", "the file has another line in the index"),
    "differs": ("other-words", "the line, written by hand, says something else than the file's header"),
}
_FIXABLE = ("missing", "dead")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong.

    Args:
        code: a stable name of the kind.
        line: 1-based, where one can be named.
        fixable: whether `repair` mends it.
    """

    code: str
    path: str
    line: int | None
    message: str
    fixable: bool = False


async def examine(folder: Folder) -> list[Finding]:
    """Everything that is wrong, mount by mount: in the files, then in the index.

    Raises:
        Unavailable: the folder can't be looked at, or none of those mounted.
    """
    await folder.refresh()
    findings = []
    for prefix, part in parts_of(folder).items():
        try:
            own = await _examine(part, is_mount=bool(prefix))
        except Unavailable as error:
            own = [Finding("unavailable", "", None, str(error))]
        findings += [replace(finding, path=prefix + finding.path) for finding in own]
    hidden = folder.hidden if isinstance(folder, MountedFolder) else {}
    return [*findings, *(Finding("hidden", path, None, reason) for path, reason in hidden.items())]


async def _examine(folder: MemoryFolder, *, is_mount: bool) -> list[Finding]:
    if not folder.scanned:
        await folder.refresh()
    findings = [*_files(folder), *_names(folder), *[finding async for finding in _instructions(folder)]]
    findings += [Finding("skipped", path, None, reason) for path, reason in folder.skipped.items()]
    findings.sort(key=lambda finding: (finding.path, finding.line or 0, finding.code))
    return findings if is_mount and folder.is_read_only else findings + await _index(folder)


async def repair(folder: Folder) -> list[str]:
    """Give every file that should have one its line in the index, and take away lines whose file is gone.

    Returns:
        What was done, one line each; empty when there was nothing to do.

    Raises:
        Unavailable, PermissionDenied, Conflict: nothing was changed, or only the indexes of earlier mounts.
    """
    await folder.refresh()
    writable = {"", *(place.prefix for place in folder.places if place.can_write)}
    return [line for prefix, part in parts_of(folder).items() if prefix in writable for line in await _repair(folder, prefix, part)]


async def _repair(whole: Folder, prefix: str, folder: MemoryFolder) -> list[str]:
    """Repair one index, by a change that the whole folder's policy is asked about."""
    data = (await folder.read_many([INDEX]))[INDEX]
    if isinstance(data, FileProblem) and data.kind != "absent":
        return []  # could not look is not absent; `examine` says so
    before = data.data if isinstance(data, File) else b""
    try:
        text = decode(INDEX, before)
    except InvalidMemoryFile:
        return []
    faults = [
        fault for fault in drift(text, folder.listed, folder.limits) if fault.kind in _FIXABLE and not _unseen(folder, fault.path)
    ]
    dead: dict[str, tuple[index.Listed | None, index.Listed | None]] = {
        fault.path: (None, None) for fault in faults if fault.kind == "dead"
    }
    changed = dead | {path: (listed, listed) for path, listed in folder.listed.items()}
    after = index.update(text, changed, folder.listed, folder.limits).text.encode()
    if after == before:
        return []
    place, is_new = prefix + INDEX, before == b"" and isinstance(data, FileProblem)
    change = Create(place, after) if is_new else Replace(place, after, etag_of(before), before)
    try:
        await whole.apply([change], "doctor", "repair the index")
    except Conflict:
        if isinstance(change, Replace):
            raise
        await folder.refresh()
        return await _repair(whole, prefix, folder)  # the index was made meanwhile
    return [f"{place}: {'added' if fault.kind == 'missing' else 'removed'} {fault.text.strip()}" for fault in faults]


def _files(folder: MemoryFolder) -> Iterator[Finding]:
    for path, known in folder.files.items():
        if known.problem is not None:
            yield Finding("broken", path, known.problem.line, known.problem.reason)
            continue
        yield from (Finding("yaml-comment", path, None, warning) for warning in known.warnings)
        header = known.header
        if header is not None and header.type is not None and header.type not in folder.types:
            yield Finding("unknown-type", path, None, f"the type {header.type!r} is none of {', '.join(folder.types)}")
        if header is not None and len(header.description) > MAX_DESCRIPTION_CHARS:
            yield Finding(
                "long-description", path, None, f"the description has {len(header.description):,} characters; one line is enough"
            )


def _names(folder: MemoryFolder) -> Iterator[Finding]:
    twins: defaultdict[str, list[str]] = defaultdict(list, {collision_key(INDEX): [INDEX]})
    for path in folder.files:
        twins[collision_key(path)].append(path)
        original = _CONFLICTED.sub("", path)
        if original != path:
            there = "" if original in folder.files or original == INDEX else ", which is gone"
            yield Finding("conflicted-copy", path, None, f"a sync program's other copy of {original}{there}; merge the two by hand")
    for paths in twins.values():
        for path in sorted(paths)[1:]:
            yield Finding("lookalike", path, None, f"is easily taken for {min(paths)}; rename or merge one of them")


async def _instructions(folder: MemoryFolder) -> AsyncIterator[Finding]:
    paths = list(folder.files)
    for start in range(0, len(paths), _READ_AT_ONCE):
        found = await folder.read_many(paths[start : start + _READ_AT_ONCE])
        for path, file in found.items():
            if isinstance(file, FileProblem):
                yield Finding("unreadable", path, None, file.reason)
                continue
            for place in instructions_in(file.data.decode("utf-8", "replace")):
                yield Finding("instructions", path, place.line, f"reads like an instruction to a model: {place.text}")


async def _index(folder: MemoryFolder) -> list[Finding]:
    found = (await folder.read_many([INDEX]))[INDEX]
    if isinstance(found, FileProblem) and found.kind != "absent":
        return [Finding("unreadable", INDEX, None, found.reason)]
    try:
        text = decode(INDEX, found.data if isinstance(found, File) else b"")
    except InvalidMemoryFile as error:
        return [Finding("broken", INDEX, error.line, error.reason)]
    findings = []
    for fault in drift(text, folder.listed, folder.limits):
        if is_memory_path(fault.path) and not _unseen(folder, fault.path):
            code, message = _INDEX_CODES[fault.kind]
            place, line = (fault.path, None) if fault.kind == "missing" else (INDEX, fault.line)
            findings.append(Finding(code, place, line, f"{message}: {fault.text.strip()}", fault.kind in _FIXABLE))
    for line in index.inline_content(text):
        findings.append(Finding("inline-content", INDEX, line, "text that belongs in a memory file of its own; move it there"))
    repaired = index.update(text, {path: (listed, listed) for path, listed in folder.listed.items()}, folder.listed, folder.limits)
    full = index.warning(repaired, folder.limits)
    return [*findings, Finding("index-full", INDEX, None, full)] if full else findings


def _unseen(folder: MemoryFolder, path: str) -> bool:
    """Whether a path is that of a broken file, was skipped, or lies in a folder that was: then it is not known to be gone."""
    return (path in folder.files and path not in folder.listed) or any(
        path == place or path.startswith(f"{place}/") for place in folder.skipped
    )
