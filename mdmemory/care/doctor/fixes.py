"""What the doctor mends, as changes that everyone can look at before they are applied. Floor 4."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mdmemory.backends.protocol import File, etag_of
from mdmemory.care.doctor.findings import Finding
from mdmemory.care.doctor.index import FIXABLE, repaired_index
from mdmemory.care.doctor.names import original_of
from mdmemory.errors import InvalidMemoryFile
from mdmemory.files.changes import Change, Delete, Replace
from mdmemory.files.memory_file import BOM, decode, encode, parse, set_field
from mdmemory.files.strict_yaml import quote, read_fields, split
from mdmemory.folder.any_folder import Folder, parts_of
from mdmemory.folder.memory_folder import MemoryFolder

Edit = Callable[[MemoryFolder, str, bytes, Finding], bytes]


async def fixes(folder: Folder, findings: Sequence[Finding]) -> list[Change]:
    """The changes that mend these findings, one a file: `folder.apply` takes them, with `dry_run` to see what would be.

    What is no longer as the findings say is left out; of an index all is mended at once.

    Raises:
        Unavailable: the folder can't be looked at.
    """
    if not folder.scanned:
        await folder.refresh()
    writable = {"", *(place.prefix for place in folder.places if place.can_write)}
    parts = {prefix: part for prefix, part in parts_of(folder).items() if prefix in writable}
    by_part: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.is_fixable and finding.mount in parts:
            by_part[finding.mount].append(finding.inside)
    return [_with(prefix, change) for prefix, found in by_part.items() for change in await _fixes(parts[prefix], found)]


async def _fixes(folder: MemoryFolder, findings: Sequence[Finding]) -> list[Change]:
    changes = await repaired_index(folder) if any(finding.code in FIXABLE for finding in findings) else []
    by_path: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.code in _FIXES:
            by_path[finding.path].append(finding)
    found = await folder.read_many([*by_path, *filter(None, map(original_of, by_path))]) if by_path else {}
    files = {path: file.data for path, file in found.items() if isinstance(file, File)}
    for path, own in by_path.items():
        if path in files and (change := await _fixed(folder, files, path, own)):
            changes.append(change)
    return changes


async def _fixed(folder: MemoryFolder, files: Mapping[str, bytes], path: str, findings: Sequence[Finding]) -> Change | None:
    before = data = files[path]
    for finding in findings:
        edit = _FIXES[finding.code]
        if edit is None:
            original = original_of(path)
            return Delete(path, etag_of(before), absorbed=True) if original and files.get(original) == before else None
        try:
            data = edit(folder, path, data, finding)
        except InvalidMemoryFile:
            continue
    return Replace(path, data, etag_of(before), before) if data != before else None


def quoted(folder: MemoryFolder, path: str, data: bytes, finding: Finding) -> bytes:
    """The value that YAML ends at ` #`, in quotes with the rest of its line.

    Raises:
        InvalidMemoryFile: the line is no longer there, or more than that value would change.
    """
    text = decode(path, data)
    mark, text = (BOM, text.removeprefix(BOM)) if text.startswith(BOM) else ("", text)
    parts = split(path, text)
    head = "" if parts is None else text[parts.start : parts.end]
    fields = read_fields(path, head) or []
    field = next((field for field in fields if field.line == finding.line and field.plain), None)
    if parts is None or field is None:
        raise InvalidMemoryFile(path, "there is no such line", finding.line)
    rest = head[field.end :].split("\n", 1)[0]
    value = f"{field.value}{rest.rstrip()}".lstrip()
    end = field.end + len(rest.rstrip())
    start = field.start if field.value else end - len(value)
    changed = encode(path, mark + text[: parts.start] + head[:start] + quote(value) + head[end:] + text[parts.end :])
    wanted = {each.key: each.value for each in fields} | {field.key: value}
    if parse(path, changed).header.fields != wanted:
        raise InvalidMemoryFile(path, "more than this value would change", finding.line)
    return changed


def typed(folder: MemoryFolder, path: str, data: bytes, finding: Finding) -> bytes:
    """The type as the configuration writes it, where only capitals differ."""
    kind = (parse(path, data).header.type or "").casefold()
    return set_field(path, data, "type", kind) if kind in folder.types else data


_FIXES: Mapping[str, Edit | None] = {"yaml-comment": quoted, "unknown-type": typed, "conflicted-copy": None}
"""By code, how the file is edited; None: it is deleted, when it has the bytes of the file that it is a copy of."""


def _with(prefix: str, change: Change) -> Change:
    return replace(change, path=prefix + change.path)
