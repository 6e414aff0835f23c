"""The folder as one file to take away: a zip archive, a Markdown document, or JSON. Floor 4.

What is the same gives the same bytes, and `.mdmemory` is never in it. docs/import-and-export.md has the forms.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from mdmemory.backends.protocol import File, FileProblem
from mdmemory.errors import InvalidMemoryFile
from mdmemory.files.journal import JOURNAL, session_of
from mdmemory.files.journal import parse as parse_journal
from mdmemory.files.memory_file import decode, parse
from mdmemory.folder.any_folder import Folder
from mdmemory.folder.known import INDEX, is_markdown, is_memory_path
from mdmemory.render import inline, moment

Form = Literal["zip", "markdown", "json"]
JSON_FORMAT = "mdmemory-export/1"
_ZIP_YEARS = range(1980, 2108)


@dataclass(frozen=True, slots=True)
class Exported:
    """An export.

    Args:
        skipped: what is not in it, by path, with the reason.
    """

    data: bytes
    skipped: Mapping[str, str]


async def export(folder: Folder, form: Form, *, journal: bool = False) -> Exported:
    """All that people see in a folder, as one file; of other files than Markdown, the zip archive alone has the bytes.

    Args:
        journal: whether conversations are in it too.

    Raises:
        Unavailable: the folder can't be looked at.
    """
    scan = await folder.scan()
    paths = [path for path in sorted(scan.files) if journal or not path.startswith(JOURNAL)]
    if form != "zip":
        paths = [path for path in paths if is_markdown(path)]
    read = await folder.read_many(paths)
    files = {path: file for path in paths if isinstance(file := read[path], File)}
    skipped = dict(scan.skipped) | {path: file.reason for path, file in read.items() if isinstance(file, FileProblem)}
    if form == "zip":
        return Exported(_zip(files), skipped)
    texts, broken = dict[str, str](), dict[str, str]()
    for path, file in files.items():
        try:
            texts[path] = decode(path, file.data)
        except InvalidMemoryFile as error:
            broken[path] = error.reason
    data = _markdown(texts) if form == "markdown" else _json(files, texts, skipped | broken)
    return Exported(data, skipped | broken)


def _zip(files: Mapping[str, File]) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as made:
        for path, file in files.items():
            at = moment(file.mtime_ns)
            when = (at.year, at.month, at.day, at.hour, at.minute, at.second) if at.year in _ZIP_YEARS else (1980, 1, 1, 0, 0, 0)
            entry = zipfile.ZipInfo(path, when)
            entry.create_system, entry.external_attr, entry.compress_type = 3, 0o100644 << 16, zipfile.ZIP_DEFLATED
            made.writestr(entry, file.data)
    return archive.getvalue()


def _markdown(texts: Mapping[str, str]) -> bytes:
    """Each file whole, under its path, in a fence that is longer than any in it; the index is the first."""
    parts = ["# Memory\n"]
    for path, text in sorted(texts.items(), key=lambda item: (item[0] != INDEX, item[0])):
        fence = "`" * max(4, 1 + max(map(len, re.findall("`+", text)), default=0))
        end = "" if text.endswith("\n") else "\n"
        parts.append(f"## {inline(path)}\n\n{fence}markdown\n{text}{end}{fence}\n")
    return "\n".join(parts).encode()


def _json(files: Mapping[str, File], texts: Mapping[str, str], skipped: Mapping[str, str]) -> bytes:
    memories = [_memory(path, texts[path], files[path]) for path in texts if is_memory_path(path)]
    journals = [_conversation(session, files[path]) for path in texts if (session := session_of(path)) is not None]
    whole = {"format": JSON_FORMAT, "files": memories, "index": texts.get(INDEX), "conversations": journals, "skipped": skipped}
    return f"{json.dumps(whole, ensure_ascii=False, indent=2)}\n".encode()


def _memory(path: str, text: str, file: File) -> dict[str, Any]:
    common = {"path": path, "etag": file.etag, "modified": _iso(moment(file.mtime_ns))}
    try:
        read = parse(path, file.data)
    except InvalidMemoryFile as error:
        return {**common, "problem": str(error), "text": text}
    header = read.header
    fields = {name: getattr(header, name) for name in ("name", "description", "type", "pinned", "tags")}
    fields |= {name: getattr(header, name) for name in ("valid_from", "valid_until", "supersedes", "source", "fields")}
    return {**common, **fields, "body": read.body}


def _conversation(session: str, file: File) -> dict[str, Any]:
    messages = [said.as_json(_iso(said.at)) for said in parse_journal(file.data).messages]
    return {"session": session, "messages": messages}


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
