"""Answers that a hostile sandbox may give: whatever comes back, it is read within bounds or refused."""

from __future__ import annotations

import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmemory.backends.protocol import MAX_FILE_BYTES, File, FileProblem, Move, Op, Put, Range, etag_of
from mdmemory.backends.shell_answer import Answer, parse
from mdmemory.backends.shell_commit import read_commit
from mdmemory.backends.shell_look import MAX_FILES, read_files, read_scan
from mdmemory.errors import MdmemoryError, Unavailable

NOW = "2026-11-29 22:00:00.000000000 +0000"
TIME = b"2026-01-01 00:00:00.000000001 +0000"
OPS: list[Op] = [Put("a.md", b"x"), Move("b.md", "c.md"), Put("d.md", b"y", required=False)]
PIECES = st.sampled_from(
    [
        *(b"\n", b"\n\n", b"\0", b"\0\0", b" ", b"|", b"./", b"a.md", b"81a4 1 ", b"41ed 2 ", b"a1ff 1 ", TIME, b"-1", b"0", b"99"),
        *(
            b"==> ./a.md <==\n",
            b"==> ",
            b" <==\n",
            b"absent a.md",
            b"link",
            b"file",
            b"7" * 5000,
            b"../../etc/passwd",
            b"\xff",
            b"NaN",
        ),
    ]
)
BODIES = st.lists(PIECES | st.binary(max_size=8), max_size=30).map(b"".join)


def line(path: bytes, size: int = 1, mode: bytes = b"81a4", inode: int = 1) -> bytes:
    """A line of a listing, as `stat` prints it."""
    return b"%s 1 %s|%d %d %s ./%s\n" % (mode, TIME, inode, size, TIME, path)


@given(BODIES, st.sampled_from([NOW, "", "x", "9999-99-99 99:99:99.9 +0000"]))
def test_any_scan_is_read_or_refused(body: bytes, now: str) -> None:
    """Whatever a scan answers, what comes of it is a scan with usable paths, or a clear error."""
    try:
        scan = read_scan(Answer("scan", now, body, ""), {"a.md": "v"}, 16_384)
    except MdmemoryError:
        return
    assert scan.heads.keys() <= scan.files.keys()
    assert not any(path.startswith(("/", ".", "-")) or "/../" in path for path in scan.files if path != "a.md")
    assert all(
        len(head) <= len(body) and entry.size >= 0 for head, entry in zip(scan.heads.values(), scan.files.values(), strict=False)
    )


@given(BODIES)
def test_any_read_is_read_or_unknown(body: bytes) -> None:
    """Whatever a read answers, each wanted path has an answer, and no other has."""
    wanted = {"a.md": None, "b.md": Range(-3, 2), "c.md": None}
    try:
        found = read_files(Answer("read", "", body, ""), wanted)
    except MdmemoryError:
        return
    assert found.keys() == wanted.keys()
    for path, file in found.items():
        if isinstance(file, File):
            assert file.etag in (None, etag_of(file.data)) and len(file.data) <= len(body), path


@given(
    st.sampled_from(["ok", "happened", "conflict", "refused", "failed", "lost", "busy", "else", ""]), st.text(max_size=20), BODIES
)
def test_any_commit_is_read_or_refused(status: str, words: str, body: bytes) -> None:
    """Whatever a commit answers, it is an etag for what was put, or an error of ours."""
    try:
        etags = read_commit(Answer(status, words, body, ""), OPS)
    except MdmemoryError:
        return
    assert etags.keys() <= {"a.md", "d.md"}


@given(st.integers(-9, 255), BODIES, BODIES)
def test_any_answer_is_split_or_refused(code: int, stdout: bytes, stderr: bytes) -> None:
    """What does not begin as an answer, or ended with an error, is none."""
    try:
        answer = parse("scan", code, stdout, stderr)
    except Unavailable:
        return
    assert code == 0 and stdout.startswith(b"mdmemory ") and stdout.endswith(answer.body)


def test_sizes_that_lie() -> None:
    """A record longer or shorter than its size was said to be ends where the next begins; its version equals nothing."""
    listing = line(b"a.md", 5) + line(b"b.md", 9999) + line(b"c.md", 2, inode=3)
    heads = b"==> ./a.md <==\nlonger than five\n==> ./b.md <==\nshort\n==> ./c.md <==\ncc"
    scan = read_scan(Answer("scan", NOW, listing + b"\n\n\0" + heads, ""), {}, 16_384)
    assert scan.heads == {"a.md": b"longer than five", "b.md": b"short", "c.md": b"cc"}
    assert [bool(entry.version) for entry in scan.files.values()] == [False, False, True]
    files = read_files(
        Answer("read", "", b"5 %s ./a.md\n9 %s ./b.md\n\n==> ./a.md <==\n123\n==> ./b.md <==\n1" % (TIME, TIME), ""),
        {"a.md": None, "b.md": None},
    )
    assert [(file.data, file.etag, file.size) for file in files.values() if isinstance(file, File)] == [
        (b"123", etag_of(b"123"), 3),
        (b"1", etag_of(b"1"), 1),
    ]


def test_a_file_that_went_while_it_was_looked_at() -> None:
    """A head that is missing says neither that the file is there nor that it is absent."""
    listing = line(b"a.md") + line(b"b.md", inode=2)
    scan = read_scan(Answer("scan", NOW, listing + b"\n\n\0==> ./b.md <==\nb", ""), {}, 16_384)
    assert list(scan.files) == ["b.md"] and scan.skipped["a.md"].startswith("could not look")


def test_a_bomb_of_a_listing() -> None:
    """A listing of a million files, or of files that claim to be huge, costs no more than what was sent, and is refused or cut."""
    body = b"".join(line(b"%d.md" % n) for n in range(MAX_FILES + 1))
    with pytest.raises(Unavailable, match="more than"):
        read_scan(Answer("scan", NOW, body + b"\n\n\0", ""), {}, 16_384)
    tracemalloc.start()
    began = time.monotonic()
    body = b"".join(line(b"%d.md" % n, 1 << 60) for n in range(2000))
    heads = b"".join(b"==> ./%d.md <==\n" % n for n in range(2000))
    scan = read_scan(Answer("scan", NOW, body + b"\n\n\0" + heads, ""), {}, 16_384)
    huge = read_files(Answer("read", "", b"%d %s ./a.md\n\n" % (1 << 60, TIME), ""), {"a.md": None})["a.md"]
    assert tracemalloc.get_traced_memory()[1] < 20_000_000 and time.monotonic() - began < 10
    tracemalloc.stop()
    assert sum(map(len, scan.heads.values())) <= len(heads) and isinstance(huge, FileProblem) and huge.kind == "too_large"
    assert MAX_FILE_BYTES < 1 << 60


def test_complaints() -> None:
    """D1: what `find` says besides `denied` and `gone` means that a part is unknown, so nothing is concluded."""
    gone = b"find: './x': No such file or directory\nstat: cannot statx './y': Permission denied\n"
    assert list(read_scan(Answer("scan", NOW, line(b"a.txt") + gone + b"\n\n\0", ""), {}, 1).files) == ["a.txt"]
    with pytest.raises(Unavailable, match="the disk reports an error"):
        read_scan(Answer("scan", NOW, line(b"a.txt") + b"find: './x': Input/output error\n\n\n\0", ""), {}, 1)
