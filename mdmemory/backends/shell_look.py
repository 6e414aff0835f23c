"""Scan and read over a shell: what is asked, and what comes back; whoever has the sandbox may have written it. Floor 1."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple

from mdmemory.backends import paths
from mdmemory.backends.protocol import (
    COULD_NOT_LOOK,
    MAX_FILE_BYTES,
    TOO_LARGE,
    Entry,
    File,
    FileProblem,
    Range,
    Scan,
    Version,
    etag_of,
    parents,
    span,
)
from mdmemory.backends.shell_answer import KINDS, Answer, could_not_look, reason_of

MAX_FILES: Final = 200_000
_HARD_LINK: Final = (
    "hard link: it has another name elsewhere, so it is read but never written. Copy it to a file of its own to change it."
)
_HEADER: Final = b"==> ./"
_MAX_HEADER: Final = 1200
_SIZE: Final = re.compile(rb"(\d{1,19}) (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+) \S+ \./(.+)")
_BAD_NAME: Final = "its name can't be used:"
_DENIED: Final = FileProblem("unavailable", "could not look: permission denied")
_ABSENT: Final = FileProblem("absent", "it does not exist")
_PROBLEMS: Final = {
    "absent": _ABSENT,
    "blocked": _ABSENT,
    "denied": _DENIED,
    **{kind: FileProblem("unsafe", f"it is {words}") for kind, words in KINDS.items()},
}


def known_versions(known: Mapping[str, Version]) -> bytes:
    """A line for each version that equals something, as the helper's `stat` prints it."""
    lines = (f"{version} ./{path}\n" for path, version in known.items() if version and isinstance(version, str))
    return "".join(lines).encode("utf-8", "surrogateescape")


def wanted_paths(wanted: Mapping[str, Range | None]) -> bytes:
    """The whole files, an empty line, and the parts."""
    whole = "".join(f"{path}\n" for path, part in wanted.items() if part is None)
    parts = "".join(
        f"{part.start} {max(0, min(part.length, MAX_FILE_BYTES + 1))} {path}\n" for path, part in wanted.items() if part is not None
    )
    return f"{whole}\n{parts}".encode()


class _Item(NamedTuple):
    """A line of a scan."""

    path: str
    mode: int
    links: int
    changed_ns: int
    entry: Entry


def read_scan(answer: Answer, known: Mapping[str, Version], head_bytes: int) -> Scan:
    """Take in what a scan found.

    Raises:
        Unavailable: something could not be looked at, and which is not known, or the answer makes no sense.
    """
    lines, rest = _section(answer.body)
    denied, rest = _section(rest)
    odd, _, heads = rest.partition(b"\0\0") if rest[:1] != b"\0" else (b"", b"", rest[1:])
    try:
        now_ns = _nanoseconds(answer.words.removesuffix(" +0000"))
        listing = list(_listed(lines))
    except ValueError as error:
        raise could_not_look("the sandbox gave a listing that makes no sense") from error
    skipped = {_inside(line): _DENIED.reason for line in denied}
    skipped |= {_shown(_inside(name)): f"{_BAD_NAME} it contains a control character" for name in odd.split(b"\0") if name}
    new = [item for item in listing if _is_new(item, known)]
    found = _records(heads, [(item.path, min(item.entry.size, head_bytes)) for item in new])
    files = dict(_files(listing, known, now_ns, skipped))
    for item in new:
        head = found.get(item.path)
        if item.path in files and head is None:  # gone, or unreadable: which of them, only the next scan can tell
            del files[item.path]
            skipped.setdefault(item.path, f"{COULD_NOT_LOOK}: it changed meanwhile")
        elif item.path in files and head is not None and len(head) != min(item.entry.size, head_bytes):
            files[item.path] = item.entry._replace(version="")
    return Scan(files, {path: head for path, head in found.items() if path in files}, skipped)


def _listed(lines: Sequence[bytes]) -> Iterator[_Item]:
    if len(lines) > MAX_FILES:
        raise could_not_look(f"there are more than {MAX_FILES} files")
    for line in lines:
        left, bar, right = line.partition(b"|")
        if not bar:  # a complaint of find or stat: what went away is not there, and what is denied is listed apart
            if not line.endswith((b"No such file or directory", b"Permission denied")):
                raise could_not_look(reason_of(_name(line)) or "the sandbox could not list it")
            continue
        mode, links, date, time, _ = left.decode("ascii").split(" ")
        mark, _, path = right.partition(b" ./")
        _, size, changed_date, changed_time, _ = version = mark.decode("ascii").split(" ")
        if not path or int(size) < 0:
            raise ValueError(line)
        entry = Entry(int(size), _nanoseconds(f"{date} {time}"), " ".join(version))
        yield _Item(_name(path), int(mode, 16), int(links), _nanoseconds(f"{changed_date} {changed_time}"), entry)


def _is_new(item: _Item, known: Mapping[str, Version]) -> bool:
    return stat.S_ISREG(item.mode) and item.path[-3:].lower() == ".md" and known.get(item.path) != item.entry.version


def _files(
    listing: Iterable[_Item], known: Mapping[str, Version], now_ns: int, skipped: dict[str, str]
) -> Iterator[tuple[str, Entry]]:
    """The regular files; what is none, or can't be used, goes to `skipped`."""
    for path, mode, links, changed_ns, entry in listing:
        if path not in known and (fault := _name_fault(path)):
            if not any(_shown(parent) in skipped for parent in parents(path)):
                skipped[_shown(path)] = f"{_BAD_NAME} {fault}"
        elif stat.S_ISREG(mode):
            is_fresh = known.get(path) != entry.version and _is_fresh(changed_ns, now_ns)
            yield path, entry._replace(version="") if is_fresh else entry
            if links > 1:
                skipped[path] = _HARD_LINK
        elif not stat.S_ISDIR(mode):
            kind = (
                "link" if stat.S_ISLNK(mode) else "fifo" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"
            )
            skipped[path] = KINDS[kind]


def _is_fresh(changed_ns: int, now_ns: int) -> bool:
    """Whether a file changed so recently that a next change could leave the same mark, as on a local disk."""
    return changed_ns > now_ns - 2_000_000_000 and (changed_ns > now_ns - 20_000_000 or changed_ns % 1_000_000_000 == 0)


def read_files(answer: Answer, wanted: Mapping[str, Range | None]) -> dict[str, File | FileProblem]:
    """Take in what a read found; a path that the answer says nothing of could not be looked at."""
    lines, data = _section(answer.body)
    found: dict[str, File | FileProblem] = {
        path: FileProblem("unavailable", f"{COULD_NOT_LOOK}: it changed meanwhile") for path in wanted
    }
    sizes: dict[str, tuple[int, int]] = {}
    for line in lines:
        first, _, rest = _name(line).partition(" ")
        if first in _PROBLEMS and rest in wanted:
            found[rest] = _PROBLEMS[first]
        elif found_file := _SIZE.fullmatch(line):
            size, moment, path = found_file.groups()
            sizes[_name(path)] = int(size), _nanoseconds(moment.decode())
    spans = {path: span(wanted[path], size) for path, (size, _) in sizes.items() if path in wanted}
    sent = [(path, length) for path, (_, length) in spans.items() if wanted[path] or length <= MAX_FILE_BYTES]
    records = _records(data, [(path, min(length, MAX_FILE_BYTES + 1)) for path, length in sent])
    for path, (start, length) in spans.items():
        size, mtime_ns = sizes[path]
        part = records.get(path)
        if length > MAX_FILE_BYTES:
            found[path] = TOO_LARGE
        elif part is not None:
            size = max(size, len(part)) if wanted[path] else len(part)
            found[path] = File(part, etag_of(part) if (start, len(part)) == (0, size) else None, size, mtime_ns)
    return found


def _records(data: bytes, expected: Sequence[tuple[str, int]]) -> dict[str, bytes]:
    """Cut what `head -v` printed.

    Args:
        expected: each file, and how many bytes it should have brought. One that vanished has no record; one that changed
            meanwhile has another length: its record then ends where the next one of those expected begins.
    """
    numbers = {b"==> ./" + path.encode("utf-8", "surrogateescape") + b" <==\n": n for n, (path, _) in enumerate(expected)}

    def header(at: int) -> tuple[int, int]:
        """Whose record begins here, -1 for none, and where its bytes do."""
        start = at + (data[at : at + 1] == b"\n")
        end = data.find(b"\n", start, start + _MAX_HEADER) + 1
        return numbers.get(data[start:end], -1), end

    found: dict[str, bytes] = {}
    at, last = 0, -1
    while at < len(data):
        number, start = header(at)
        if number <= last:
            break
        path, length = expected[number]
        at, last = start + length, number
        if at != len(data) and header(at)[0] <= number:
            at = data.find(_HEADER, start)
            while at >= 0 and header(at)[0] <= number:
                at = data.find(_HEADER, at + 1)
            at = len(data) if at < 0 else at - (at > start)  # an empty line stands before a header
        found[path] = data[start:at]
    return found


def _section(data: bytes) -> tuple[list[bytes], bytes]:
    if data[:1] == b"\n":
        return [], data[1:]
    lines, _, rest = data.partition(b"\n\n")
    return lines.split(b"\n") if lines else [], rest


@lru_cache(maxsize=4096)
def _seconds(text: str) -> int:
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp())


def _nanoseconds(text: str) -> int:
    """From `2024-11-30 12:00:00.123456789`, in UTC."""
    return _seconds(text[:19]) * 1_000_000_000 + int(text[20:29].ljust(9, "0"))


def _name(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _inside(path: bytes) -> str:
    return _name(path).removeprefix("./")


def _shown(name: str) -> str:
    return repr(name)[1:-1]


def _name_fault(path: str) -> str | None:
    try:
        path.encode()
    except UnicodeEncodeError:
        return "it is not UTF-8"
    return paths.fault(path)
