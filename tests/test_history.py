"""The log, its objects and its tombstones, as bytes."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmemory.backends.protocol import done_mark, etag_of
from mdmemory.files import history
from mdmemory.files.history import FileChange, Intent, LogTail, done_line, read_log

AT = datetime(2026, 3, 1, 12, 30, 0, 123456, UTC)
OLD, NEW = etag_of(b"old"), etag_of(b"new")
CHANGE = FileChange("user/role.md", OLD, NEW)
INTENT = Intent("c1", AT, "agent:s1", "Edit", (CHANGE,))
TEXT = st.text(max_size=20)
ETAGS = st.sampled_from([None, OLD, NEW])
INTENTS = st.builds(
    Intent,
    st.uuids().map(lambda value: value.hex),
    st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC)),
    TEXT,
    TEXT,
    st.lists(st.builds(FileChange, TEXT, ETAGS, ETAGS), max_size=3).map(tuple),
)


@given(st.lists(INTENTS, max_size=4, unique_by=lambda intent: intent.id), st.sets(st.integers(0, 3)))
def test_what_is_logged_is_read_back(intents: list[Intent], finished: set[int]) -> None:
    """E6: every intent comes back as it was, whatever text it holds, and those without a done line are unfinished."""
    log = b"".join(intent.line() + (done_line(intent.id) if n in finished else b"") for n, intent in enumerate(intents))
    assert log.count(b"\n") == len(intents) + len(finished & set(range(len(intents))))
    left = tuple(intent for n, intent in enumerate(intents) if n not in finished and intent.author != history.OUTSIDE)
    assert read_log(log) == LogTail(tuple(intents), left)


def test_a_log_cut_anywhere_is_read_as_far_as_it_goes() -> None:
    """E6: a torn last line and a first line that begins in its middle are passed over; the others count."""
    log = INTENT.line() + done_line("c1") + Intent("c2", AT, "person", "é \u2028", (CHANGE,)).line()
    for end in range(len(log) - 1):
        tail = read_log(log[:end])
        assert [intent.id for intent in tail.intents] == ["c1"] * (end >= len(INTENT.line()) - 1)
        assert bool(tail.unfinished) == (len(INTENT.line()) - 1 <= end < len(INTENT.line() + done_line("c1")) - 1)
    for start in range(1, len(INTENT.line())):
        assert [intent.id for intent in read_log(log[start:]).intents] == ["c2"]


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"3",
        b'"done"',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"id":"x"}',
        b'{"id":1,"at":"x"}',
        b'{"done":3}',
        b'{"id":"x","at":"2026-03-01T12:30:00.0Z","author":"a","reason":"r","files":3}',
        INTENT.line().replace(b"2026", b"noon"),
        INTENT.line().replace(b"Z", b"+00"),
        INTENT.line().replace(b'"path"', b'"road"'),
        INTENT.line().replace(b'"user/role.md"', b"7"),
        INTENT.line().replace(OLD.encode(), b"../../x"),
        INTENT.line().replace(f'"{NEW}"'.encode(), b"[]"),
    ],
)
def test_a_line_that_is_not_ours_is_passed_over(line: bytes) -> None:
    """E6: whoever has a shell can write into the log; a line that is no entry of ours does not stop the others."""
    log = line + b"\n" + Intent("c3", AT, "person", "r", (CHANGE,)).line()
    assert [intent.id for intent in read_log(log).intents] == ["c3"]


def test_what_was_changed_outside_is_never_unfinished() -> None:
    """E6: a change from outside was made already, so there is nothing to finish."""
    tail = read_log(Intent("c1-outside", AT, history.OUTSIDE, "changed outside", (CHANGE,)).line())
    assert len(tail.intents) == 1
    assert tail.unfinished == ()


def test_the_marks_of_a_commit_stand_in_its_lines() -> None:
    """E7: a backend knows a commit that happened by the very text of its lines, which no reason can imitate."""
    assert done_mark("c1").encode() in done_line("c1")
    assert b'"id":"c1"' in INTENT.line()
    forged = Intent("c2", AT, "a", f'"id":"c1" {done_mark("c1")}', ()).line()
    assert done_mark("c1").encode() not in forged
    assert b'"id":"c1"' not in forged


def test_objects_are_kept_once_by_their_hash() -> None:
    """The bytes before and after are stored under their sha256, equal ones once, absent ones not."""
    assert history.objects([b"old", None, b"new", b"old"]) == {
        f".mdmemory/objects/{OLD}": b"old",
        f".mdmemory/objects/{NEW}": b"new",
    }
    assert history.object_path(OLD) == f".mdmemory/objects/{OLD}"


def test_a_tombstone_does_not_tell_the_name() -> None:
    """D3: what was forgotten leaves its path, the hash of its name in any case, and the entries it came from."""
    line = history.tombstone("user/secret.md", "Straße", AT, ["session-1#4"])
    entry = json.loads(line)
    assert entry == {
        "path": "user/secret.md",
        "name_sha256": etag_of(b"strasse"),
        "at": "2026-03-01T12:30:00.123456Z",
        "source": ["session-1#4"],
    }
    assert line.endswith(b"\n")
    assert b"Stra" not in line


def test_tombstones_are_read_back() -> None:
    """D3: what was said before a deletion is covered, by path or by name; what is said later is not; torn lines do no harm."""
    lines = (
        history.tombstone("a.md", "Home", AT, ["s#1"]) + b'{"path":"b.md","name\n' + history.tombstone("c.md", "Tea", AT, ["s#2"])
    )
    forgotten, said = history.read_tombstones(lines), AT.replace(microsecond=0)
    assert forgotten.sources == {"s#1", "s#2"}
    assert forgotten.covers("a.md", "x", said) and forgotten.covers("x.md", "HOME", said)
    assert not forgotten.covers("a.md", "Home", said + timedelta(seconds=1)) and not forgotten.covers("b.md", "x", said)
    assert history.read_tombstones(b"") == history.Forgotten({}, {}, frozenset())
