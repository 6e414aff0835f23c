"""Taking a text, or what a file held, out of what the history and conversations keep. Floor 1, pure.

What is taken out leaves `(purged)` behind: a plain word in YAML, JSON and Markdown alike.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote as percent

from mdmemory.errors import InvalidMemoryFile
from mdmemory.files.history import FileChange, Intent, hashed_path, read_line
from mdmemory.files.journal import Message
from mdmemory.files.memory_file import parse
from mdmemory.files.strict_yaml import quote

MARK: Final = "(purged)"
IN_PATH: Final = b"purged"
_LONG: Final = 20  # characters from which on a line is known by itself
_MOST: Final = 300  # lines that are looked for
_NAME: Final = re.compile(rb"[\w./-]")
_GOES_ON: Final = re.compile(rb"[\w-]|\.\w")
_DOTS: Final = re.compile(rb"(?:(?<![\w.])\.{1,2}/)+\Z")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What must be found nowhere.

    Args:
        texts: as they stand in bytes.
        paths: which count only where no longer path has them in it.
        is_text: whether it is a text, which is taken out by itself; else lines and entries go that speak of a file.
        free_names: of a text, by the path in which it is, a path that no other file has.
    """

    texts: tuple[bytes, ...]
    paths: tuple[bytes, ...] = ()
    is_text: bool = False
    free_names: Mapping[str, str] = field(default_factory=dict)

    def find(self, data: bytes) -> bool:
        """Whether it is there."""
        return any(text in data for text in self.texts) or any(True for path in self.paths for _ in _whole(path, data))

    def count(self, data: bytes) -> int:
        """How often it is there."""
        return sum(data.count(text) for text in self.texts) + sum(1 for path in self.paths for _ in _whole(path, data))

    def sub(self, mark: bytes, data: bytes) -> bytes:
        """The bytes with something else in place of a text."""
        for text in self.texts:
            data = data.replace(text, mark)
        return data

    def without_entries(self, data: bytes) -> bytes:
        """Entries, a line each, without those in which it is."""
        return b"".join(line for line in data.splitlines(keepends=True) if not self.find(line))

    def without(self, text: str) -> str:
        """A text, or a value, without it."""
        data = text.encode(errors="surrogatepass")
        if self.is_text:
            return self.sub(MARK.encode(), data).decode(errors="surrogatepass")
        return MARK if self.find(data) else text

    def without_in_path(self, path: str) -> str:
        """A path without it, if it is a text: a name that needs no quotes in a shell."""
        if path in self.free_names:
            return self.free_names[path]
        return self.sub(IN_PATH, path.encode(errors="surrogatepass")).decode(errors="surrogatepass") if self.is_text else path


def _whole(path: bytes, data: bytes) -> Iterator[int]:
    """Where a path stands that is no part of a longer one, but for `./` and `../` before it."""
    start = data.find(path)
    while start >= 0:
        before = _DOTS.sub(b"", data[max(0, start - 64) : start])
        if not _NAME.match(before[-1:]) and not _GOES_ON.match(data, start + len(path)):
            yield start
        start = data.find(path, start + 1)


def a_text(text: str) -> Wanted:
    """An exact text."""
    return Wanted(_forms(text), is_text=True)


def a_file(names: Collection[str], contents: Collection[bytes]) -> Wanted:
    """What files were called and held: their paths, and their longest descriptions and lines, each of 20 characters and more."""
    lines = {line.strip() for data in contents for line in _words(data)}
    longest = sorted((line for line in lines if len(line) >= _LONG), key=lambda line: (-len(line), line))[:_MOST]
    paths = dict.fromkeys(form.encode() for name in names for form in (name, percent(name)))
    return Wanted(tuple(form for line in longest for form in _forms(line)), tuple(paths))


def _words(data: bytes) -> list[str]:
    """The body's lines and the description; a file that can't be read is all body."""
    try:
        file = parse("", data)
    except InvalidMemoryFile:
        return data.decode("utf-8", "replace").split("\n")
    return [file.header.description, *file.body.split("\n")]


def _forms(text: str) -> tuple[bytes, ...]:
    """A text as it stands in Markdown, YAML, JSON, and in JSON inside of JSON; longest first."""
    spelt = {text, unicodedata.normalize("NFC", text), unicodedata.normalize("NFD", text)}  # an accent, too, may be two characters
    forms = sorted({form for each in spelt for form in _written(each)}, key=lambda form: (-len(form), form))
    return tuple(form.encode(errors="surrogatepass") for form in forms)


def _written(text: str) -> set[str]:
    quoted = quote(text)
    plain = {text, text.replace("\r\n", "\n"), text.replace("\n", "\r\n"), text if quoted == text else quoted[1:-1]}
    once = {json.dumps(form, ensure_ascii=is_ascii)[1:-1] for form in plain for is_ascii in (False, True)}
    twice = {json.dumps(form, ensure_ascii=is_ascii)[1:-1] for form in once for is_ascii in (False, True)}
    return {*plain, *once, *twice}


def without_lines(data: bytes, wanted: Wanted) -> bytes:
    """People's lines of an index without it, and, where it is a file, without the lines that speak of it."""
    if wanted.is_text:
        return wanted.sub(MARK.encode(), data)
    return b"".join(line for line in data.splitlines(keepends=True) if not wanted.find(line))


def rewritten_log(
    log: bytes, dropped: Collection[tuple[str, str]], new_etags: Mapping[str, str], wanted: Wanted
) -> tuple[bytes, int]:
    """The log without some files of some commits, and with other contents in place of some.

    Args:
        dropped: pairs of a commit's id and a path.
        new_etags: by the etag that a content had.

    Returns:
        The bytes, and how many commits read otherwise. What says nothing any longer is left out, but for `done`.
    """
    lines, count = list[bytes](), 0
    for line in log.splitlines(keepends=True):
        said = read_line(line)
        if not isinstance(said, Intent):
            lines += [] if said is None and wanted.find(line) else [line]
            continue
        new = _rewritten(said, dropped, new_etags, wanted)
        if new == said:
            lines.append(line)
            continue
        count += 1
        if new.files or new.added:
            lines.append(new.line())
    return b"".join(lines), count


def _rewritten(said: Intent, dropped: Collection[tuple[str, str]], new_etags: Mapping[str, str], wanted: Wanted) -> Intent:
    files = []
    for file in said.files:
        before, after = (new_etags.get(etag, etag) if etag else None for etag in (file.before, file.after))
        is_nothing = before == after and file.before != file.after
        if (said.id, file.path) not in dropped and not is_nothing:
            files.append(replace(file, path=wanted.without_in_path(file.path), before=before, after=after))
    if wanted.is_text:
        files = [file for file in files if not _is_renamed_to_itself(file, files)]
    added = tuple(
        replace(file, path=wanted.without_in_path(file.path)) for file in said.added if (said.id, file.path) not in dropped
    )
    is_about = len(files) + len(added) < len(said.files) + len(said.added)
    reason = MARK if is_about and not wanted.is_text else wanted.without(said.reason)
    return replace(
        said, author=wanted.without(said.author) if wanted.is_text else said.author, reason=reason, files=tuple(files), added=added
    )


def _is_renamed_to_itself(file: FileChange, files: Sequence[FileChange]) -> bool:
    """Whether a file was renamed only in what went from its name."""
    return any(other.path == file.path and (other.before, other.after) == (file.after, file.before) for other in files)


def rewritten_tombstones(data: bytes, names: Collection[str], wanted: Wanted) -> bytes:
    """Tombstones that tell paths only by their hash, where they are these or hold a text."""
    return b"".join(_rewritten_tombstone(line, names, wanted) for line in data.splitlines(keepends=True))


def _rewritten_tombstone(line: bytes, names: Collection[str], wanted: Wanted) -> bytes:
    try:
        said = json.loads(line)
        path = said["path"] if "rejected" not in said else ""
    except (ValueError, KeyError, TypeError):
        return b"" if wanted.find(line) else line
    if path not in names and not (wanted.is_text and wanted.find(line)):
        return line
    if path:
        said["path"] = hashed_path(path) if path in names or wanted.find(path.encode()) else path
    if wanted.is_text:
        said["source"] = [wanted.without(entry) for entry in said.get("source", ())]
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def without_it(wanted: Wanted, sources: Collection[str] = ()) -> Callable[[Message], Mapping[str, Any] | None]:
    """How an entry of a conversation reads without it; None for as it is.

    Args:
        sources: ids of entries whose words go as a whole, as the file was drawn from them.
    """

    def change(message: Message) -> Mapping[str, Any] | None:
        data = dict(message.data)
        if message.id in sources:
            data["content"] = _blank(data.get("content"))
        new = {key: value if key == "role" else _without(value, wanted) for key, value in data.items()}
        return None if new == message.data else new

    return change


def _blank(content: Any) -> Any:
    """A content, or its parts, whose words are gone and whose ids stay."""
    if not isinstance(content, list):
        return MARK
    words = ("text", "content")
    return [{**part, **{key: MARK for key in words if key in part}} if isinstance(part, dict) else part for part in content]


def _without(value: Any, wanted: Wanted) -> Any:
    if isinstance(value, str):
        inner = _json_in(value)
        if inner is None:
            return wanted.without(value)
        new = _without(inner, wanted)
        return value if new == inner else json.dumps(new, ensure_ascii=False)
    if isinstance(value, dict):
        return {key: _without(inner, wanted) for key, inner in value.items()}
    return [_without(inner, wanted) for inner in value] if isinstance(value, list) else value


def _json_in(text: str) -> Any:
    """What the arguments of a tool hold, which are JSON as text."""
    try:
        found = json.loads(text) if text.lstrip()[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, (dict, list)) else None
