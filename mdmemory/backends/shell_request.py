"""What ShellBackend sends to its helper on standard input. Floor 1."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping, Sequence

from mdmemory.backends.protocol import (
    MAX_FILE_BYTES,
    Append,
    Delete,
    Move,
    Op,
    Put,
    Range,
    Version,
    done_mark,
    etag_of,
    parents,
    touched,
)

_PUBLIC, _PRIVATE = 0o644, 0o600


def known_versions(known: Mapping[str, Version]) -> bytes:
    """A line for each version that equals something, as the helper's `stat` prints it."""
    lines = (f"{version} ./{path}\n" for path, version in known.items() if version)
    return "".join(lines).encode("utf-8", "surrogateescape")


def wanted_paths(wanted: Mapping[str, Range | None]) -> bytes:
    """The whole files, an empty line, and the parts."""
    whole = "".join(f"{path}\n" for path, part in wanted.items() if part is None)
    parts = "".join(
        f"{part.start} {max(0, min(part.length, MAX_FILE_BYTES + 1))} {path}\n" for path, part in wanted.items() if part is not None
    )
    return f"{whole}\n{parts}".encode()


def commit_request(commit_id: str, ops: Sequence[Op]) -> bytes:
    """A tar of the bytes to write, each under its operation's number, and at last of `ops`, a line each.

    Bytes that are written more than once are sent once, and copied there.
    """
    lines = [_line("done", last=done_mark(commit_id))]
    bodies: dict[str, tuple[bytes, int]] = {}
    sent: dict[tuple[str, int], int] = {}
    seen: set[str] = set()
    for n, op in enumerate(ops):
        sha, mode = "-", _PRIVATE if touched(op)[0].startswith(".mdmemory/") else _PUBLIC
        if isinstance(op, Put | Append):
            sha = etag_of(op.data)
            if (first := sent.setdefault((sha, mode), n)) == n:
                bodies[str(n)] = (op.data, mode)
            else:
                lines.append(_line("copy", str(n), str(first)))
        again = any(path in seen for name in touched(op) for path in (name, *parents(name)))
        lines.append(_op_line(n, op, sha, again))
        seen.update(touched(op))
    return _tar({**bodies, "ops": ("".join(lines).encode(), _PRIVATE)})


def _op_line(n: int, op: Op, sha: str, again: bool) -> str:
    match op:
        case Put():
            return _line("put", str(n), op.path, "-", op.if_match, str(int(op.required)), sha, str(int(again)))
        case Append():
            if "\n" in op.entry_id or "\0" in op.entry_id:
                raise ValueError("an entry id is one line of text")
            return _line("append", str(n), op.path, last=op.entry_id)
        case Delete():
            return _line("delete", str(n), op.path, "-", op.if_match, str(int(op.required)))
        case Move():
            return _line("move", str(n), op.src, op.dst)


def _line(*fields: str, last: str = "") -> str:
    # kind, number, path, dst, want, required, sha, always, id; the shell joins empty fields, so none is
    defaults = ("-", "-", "-", "-", "-", "1", "-", "0")
    return "\t".join((*fields, *defaults[len(fields) :], f"={last}")) + "\n"


def _tar(members: Mapping[str, tuple[bytes, int]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, (data, mode) in members.items():
            header = tarfile.TarInfo(name)
            header.size, header.mode = len(data), mode
            tar.addfile(header, io.BytesIO(data))
        end = tar.offset
    return buffer.getvalue()[:end] + bytes(2 * tarfile.BLOCKSIZE)  # without the padding to a tape's record
