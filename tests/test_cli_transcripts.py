"""Whole sessions with the command, as people have them; those in tests/transcripts are named after what they show."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import REPOSITORY
from transcript import is_to_be_renewed, read, replay, write

SESSIONS = sorted((REPOSITORY / "tests/transcripts").glob("*.txt"))


@pytest.mark.parametrize("session", SESSIONS, ids=[path.stem for path in SESSIONS])
def test_the_session_goes_as_its_transcript_says(session: Path, tmp_path: Path) -> None:
    """AM1, AM3, F2, F5, I2, I3, M6, S1, S2, V3: every command of the transcript prints what stands below it, on a fresh folder."""
    expected = list(read(session.read_text(encoding="utf-8")))
    actual = replay(expected, tmp_path)
    if is_to_be_renewed():
        session.write_text(write(actual), encoding="utf-8")
    else:
        assert expected and write(actual) == write(expected)
