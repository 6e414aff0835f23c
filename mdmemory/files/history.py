"""History: the log of what was applied, the objects that hold the bytes, the tombstones of what was forgotten. Floor 1, pure.

`.mdmemory/log.jsonl` has two lines a commit: an *intent* with the before and after etag of each file, written before the files,
and `{"done": id}` after them. An intent without its `done` was cut short and can be finished from the objects. A torn last line
is ignored.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

OBJECTS = ".mdmemory/objects/"
TOMBSTONES = ".mdmemory/tombstones"
PROPOSALS = ".mdmemory/proposals"
OUTSIDE = "outside"
UNKNOWN = "0" * 64  # in place of an etag: a large file of which only the head was read
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
_ETAG = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file of a commit: the etag before and after; None when absent.

    Args:
        restored: whether a file that was deleted came back: it is no longer counted as forgotten.
        absorbed: whether it went because another file says now what it said: then it is not forgotten.
    """

    path: str
    before: str | None
    after: str | None
    restored: bool = False
    absorbed: bool = False

    def as_json(self) -> dict[str, object]:
        """As the log's line has it."""
        marks = {name: True for name in ("restored", "absorbed") if getattr(self, name)}
        return {"path": self.path, "before": self.before, "after": self.after, **marks}


@dataclass(frozen=True, slots=True)
class Added:
    """What a commit added at the end of a file, which others may have done at the same time: so no etag is known."""

    path: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Intent:
    """One commit as the log has it.

    Args:
        at: UTC time of the commit.
        author: who made the change, such as `agent:session-1`, `person`, `doctor` or `outside`.
        swept: etags of objects that go, as nothing in the log names them any longer.
    """

    id: str
    at: datetime
    author: str
    reason: str
    files: tuple[FileChange, ...]
    added: tuple[Added, ...] = ()
    swept: tuple[str, ...] = ()

    def line(self) -> bytes:
        """The log's line."""
        head = {"id": self.id, "at": self.at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), "author": self.author, "reason": self.reason}
        added = {"added": [{"path": file.path, "bytes": file.bytes} for file in self.added]} if self.added else {}
        swept = {"swept": self.swept} if self.swept else {}
        return _json_line({**head, "files": [file.as_json() for file in self.files], **added, **swept})


def done_line(commit_id: str) -> bytes:
    """The line that says that a commit's files are in place; its text is `backends.protocol.done_mark`."""
    return f'{{"done":"{commit_id}"}}\n'.encode()


@dataclass(frozen=True, slots=True)
class LogTail:
    """What the end of a log says.

    Args:
        intents: in the order written.
        unfinished: those without a `done` line.
    """

    intents: tuple[Intent, ...]
    unfinished: tuple[Intent, ...]


def read_log(data: bytes) -> LogTail:
    """Read a log or its last part; lines that don't parse (a torn write, the first line of a part) are passed over."""
    intents: dict[str, Intent] = {}
    done: set[str] = set()
    for line in data.split(b"\n"):
        match read_line(line):
            case str(commit_id):
                done.add(commit_id)
            case Intent() as intent:
                intents[intent.id] = intent
    unfinished = tuple(intent for commit_id, intent in intents.items() if commit_id not in done and intent.author != OUTSIDE)
    return LogTail(tuple(intents.values()), unfinished)


def read_line(line: bytes) -> Intent | str | None:
    """What a line of the log says: an intent, the id of a commit that is done, or nothing that is ours."""
    match _parsed(line):
        case {"done": str(commit_id)}:
            return commit_id
        case {"id": str()} as entry:
            with suppress(KeyError, TypeError, ValueError):
                return _intent(entry)
    return None


def _parsed(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _intent(entry: Mapping[str, Any]) -> Intent:
    if not _TIME.fullmatch(entry["at"]):
        raise ValueError("a time is written as in `Intent.line`")
    at = datetime.fromisoformat(entry["at"])
    files = tuple(
        FileChange(file["path"], file["before"], file["after"], file.get("restored") is True, file.get("absorbed") is True)
        for file in entry["files"]
    )
    for file in files:
        if not isinstance(file.path, str) or not all(etag is None or _ETAG.fullmatch(etag) for etag in (file.before, file.after)):
            raise ValueError("a file change has a path and two etags")
    added = tuple(Added(str(file["path"]), int(file["bytes"])) for file in entry.get("added", ()))
    swept = tuple(etag for etag in entry.get("swept", ()) if _ETAG.fullmatch(etag))
    return Intent(entry["id"], at, str(entry["author"]), str(entry["reason"]), files, added, swept)


def object_path(etag: str) -> str:
    """Where the bytes with this etag are kept."""
    return OBJECTS + etag


def objects(contents: Iterable[bytes | None]) -> Mapping[str, bytes]:
    """The object files for these contents, by path."""
    return {object_path(hashlib.sha256(data).hexdigest()): data for data in contents if data is not None}


def tombstone(path: str, name: str, at: datetime, sources: Sequence[str] = (), *, restored: bool = False) -> bytes:
    """The line that keeps a forgotten memory forgotten: its path, its name only as a hash, and the entries it was drawn from.

    Args:
        restored: the line takes back those before it of this path and name.
    """
    when = at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")  # so precise that no two lines are the same
    line = {"path": path, "name_sha256": _name_hash(name), "at": when}
    return _json_line({**line, "restored": True} if restored else {**line, "source": list(sources)})


def rejection(id: str, at: datetime, sources: Sequence[str]) -> bytes:
    """The line that keeps what a person did not want from being drawn again from the same entries; it forgets no file.

    Args:
        id: of the proposal.
    """
    when = at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return _json_line({"rejected": id, "at": when, "source": list(sources)})


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What the tombstones say.

    Args:
        paths, names: when the latest file of that path, or with a name of that hash, was deleted.
        sources: the journal entries that deleted files, and proposals that were rejected, were drawn from.
    """

    paths: Mapping[str, datetime]
    names: Mapping[str, datetime]
    sources: frozenset[str]

    def covers(self, path: str, name: str, at: datetime) -> bool:
        """Whether what was said at this time is about a file that was deleted since; said later, it may be remembered anew."""
        deleted = (self.paths.get(path), self.paths.get(hashed_path(path)), self.names.get(_name_hash(name)))
        return any(each is not None and at <= each for each in deleted)

    def with_names(self, other: Forgotten) -> Forgotten:
        """The same with the names and sources of what was deleted elsewhere."""
        latest = {name: max(at, self.names.get(name, at)) for name, at in other.names.items()}
        return Forgotten(self.paths, {**self.names, **latest}, self.sources | other.sources)


def read_tombstones(data: bytes) -> Forgotten:
    """Read the tombstones; lines that don't parse are passed over."""
    gone: dict[tuple[str, str], tuple[datetime | None, list[Any]]] = {}
    unwanted: list[Any] = []
    for line in data.split(b"\n"):
        match _parsed(line):
            case {"path": str(path), "name_sha256": str(name), "restored": True}:
                gone.pop((path, name), None)
                gone.pop((hashed_path(path), name), None)
            case {"path": str(path), "name_sha256": str(name), "at": str(at), "source": list(entries)}:
                _, before = gone.pop((path, name), (None, []))
                gone[path, name] = _time(at), [*before, *entries]
            case {"rejected": str(), "source": list(entries)}:
                unwanted += entries
    dated = [(path, name, at) for (path, name), (at, _) in gone.items() if at is not None]
    every = [*unwanted, *(entry for _, entries in gone.values() for entry in entries)]
    sources = frozenset(entry for entry in every if isinstance(entry, str))
    return Forgotten({path: at for path, _, at in dated}, {name: at for _, name, at in dated}, sources)


def _time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return None


def hashed_path(path: str) -> str:
    """What stands in a tombstone in place of a path that is not to be read there."""
    return f"sha256:{hashlib.sha256(path.encode(errors='backslashreplace')).hexdigest()}"


def _name_hash(name: str) -> str:
    return hashlib.sha256(name.casefold().encode(errors="backslashreplace")).hexdigest()


def _json_line(value: Mapping[str, object]) -> bytes:
    return (
        json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="backslashreplace") + b"\n"
    )  # which for JSON is an escape
