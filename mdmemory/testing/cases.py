"""Inputs of the conformance suite: paths, ranges and operations, with what is right for each."""

from __future__ import annotations

from typing import Final

from mdmemory.backends.protocol import ABSENT, Append, Delete, Move, Op, Put, etag_of

REFUSED: Final = [
    *("../x", "/etc/passwd", "memory-evil/../..", "/memoriesXYZ/a.md", "", ".", "a//b", "a/", "~/a.md", "a\\b.md", "C:/a.md"),
    *("a\0.md", "a\n.md", "a\x1b.md", "\ud800.md", "a\u202e.md", "-a.md", " a.md", "a" * 300, "a/" * 512 + "b"),
    *(".git/config", "a/.b/c.md", ".mdmemory", ".mdmemory/../x"),
]
ACCEPTED: Final = ["report..final.md", "with some spaces.md", "大明科技.md", "🙂.md", "deep/er/and/deeper/x.md", "Ünï.txt"]

# Start, length, and the bytes of b"0123456789" that they name.
RANGES: Final = [
    *((0, 3, b"012"), (2, 3, b"234"), (4, 0, b""), (0, 99, b"0123456789"), (99, 5, b"")),
    *((-3, 2, b"78"), (-3, 9, b"789"), (-99, 2, b"01")),
]

# Operations that conflict where `a.md` and `other.md` hold b"now", and the etag that the conflict carries.
STALE: Final[list[tuple[Op, str | None]]] = [
    (Put("a.md", b"x", ABSENT), etag_of(b"now")),
    (Put("a.md", b"x", etag_of(b"before")), etag_of(b"now")),
    (Put("no.md", b"x", etag_of(b"before")), None),
    (Delete("a.md", etag_of(b"before")), etag_of(b"now")),
    (Move("no.md", "b.md"), None),
    (Move("other.md", "a.md"), etag_of(b"now")),
]

# Operations that can't be where `a/f.md` and `other.md` are, and `first.md` is put in the same commit.
IMPOSSIBLE: Final[list[Op]] = [
    *(Move("a", "a/b/c"), Move("a", "a"), Move("", "b"), Delete(""), Delete("a"), Put("a", b"x"), Append("a", b"x", "")),
    *(Put("a/f.md/x.md", b"x"), Append("a/f.md/x.md", b"x", ""), Move("a/f.md", "a/f.md/x.md"), Move("other.md", "a/f.md/x.md")),
    *(Put("first.md/x.md", b"x"), Delete("a/f.md/x.md")),
]
