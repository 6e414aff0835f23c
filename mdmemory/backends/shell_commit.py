"""Commit over a shell: the operations as one tar, and what they came to. Floor 1."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Mapping, Sequence
from typing import Final

from mdmemory.backends.protocol import Append, Delete, Move, Op, Put, done_mark, etag_of, parents, touched
from mdmemory.backends.shell_answer import KINDS, Answer, reason_of
from mdmemory.errors import Conflict, InvalidPath, MdmemoryError, Unavailable, UnsafeFile

_CONFLICT: Final = re.compile(r"(\d{1,9}) (path|dst) (\S+)")
_PUBLIC, _PRIVATE = 0o644, 0o600


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


def read_commit(answer: Answer, ops: Sequence[Op]) -> dict[str, str]:
    """Say what a commit came to.

    Raises:
        Conflict, InvalidPath, UnsafeFile, Unavailable: as `Backend.commit`.
    """
    status, words = answer.status, answer.words
    if status == "ok":
        left_out = set(words.split())
        return {op.path: etag_of(op.data) for n, op in enumerate(ops) if isinstance(op, Put) and str(n) not in left_out}
    if status == "happened":
        etags = dict(line.partition(" ")[::2] for line in answer.body.decode("ascii", "replace").splitlines())
        return {op.path: etags[str(n)] for n, op in enumerate(ops) if isinstance(op, Put) and etags.get(str(n))}
    if status == "conflict" and (found := _CONFLICT.fullmatch(words)) and int(found[1]) < len(ops):
        paths = touched(ops[int(found[1])])
        raise Conflict(paths[-1] if found[2] == "dst" else paths[0], None if found[3] == "-" else found[3])
    if status == "refused":
        raise _refusal(*words.partition(" ")[::2])
    if status == "lost":
        raise Unavailable(f"the commit was so slow that another took the lock; {_so_far(words)} was written. Try again.")
    so_far, _, said = words.partition(" ")
    raise Unavailable(
        f"Could not save: {reason_of(said or answer.stderr) or 'the sandbox refused it'}; {_so_far(so_far)} was written. "
        "Mend that and try again."
    )


def _so_far(word: str) -> str:
    return "nothing" if word == "nothing" else "only a part"


def _refusal(kind: str, path: str) -> MdmemoryError:
    if kind == "blocked":
        return InvalidPath(f"{path} is a file, not a folder; nothing was written. Choose another path.")
    if kind == "folder":
        return InvalidPath(f"{path} is a folder, not a file; name a file.")
    if kind == "denied":
        return Unavailable(f"Could not save: permission denied at {path}; nothing was written. Mend that and try again.")
    if kind == "hard_link":
        return UnsafeFile(f"{path} is a hard link, which is never written through. Make it a file of its own by copying it.")
    return UnsafeFile(f"{path} is {KINDS.get(kind, 'no file')}. Nothing was written.")
