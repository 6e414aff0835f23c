"""Which paths a memory may have."""

from __future__ import annotations

import os
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mdmemory.backends import paths
from mdmemory.errors import InvalidPath
from mdmemory.testing.cases import ACCEPTED, REFUSED

ODD = st.lists(
    st.sampled_from(["..", ".", "/", "~", "\\", "a", ".md", " ", "-", "\0", "\n", "\x1b", "é", "\u202e", "\ud800", ".mdmemory"])
).map("".join)


@given(st.text() | ODD)
@example("a/" * 511 + "b")
@example("é" * 127 + "a")
@example("é" * 128)
def test_any_text_is_refused_or_safe(text: str) -> None:
    """N1: whatever a model says, it is refused, or it stays inside the folder, is visible, printable and fits on a disk."""
    try:
        path = paths.check(text)
    except InvalidPath as error:
        assert str(error).isprintable() and len(str(error)) < 400
        return
    assert path == text and os.path.normpath(path) == path and not os.path.isabs(path)
    parts = path.split("/")
    assert not any(part[0] in ".-~ " or part[-1] == " " for part in parts)
    assert not any(unicodedata.category(c) in ("Cc", "Cs") for c in path)
    assert len(path.encode()) <= 1024 and all(len(part.encode()) <= 255 for part in parts)
    assert paths.check(path, hidden=True) == path


@given(st.text() | ODD)
def test_only_the_history_may_name_its_folder(text: str) -> None:
    """N7: `.mdmemory` is a usable first part when asked for, and what follows it obeys the same rules."""
    inside = f".mdmemory/{text}"
    assert paths.fault(inside)
    if paths.fault(text) is None and len(inside.encode()) <= paths.MAX_PATH_BYTES:
        assert paths.fault(inside, hidden=True) is None
    if any(part[:1] in ("", ".", "-") for part in text.split("/")):
        assert paths.fault(inside, hidden=True)


def test_no_name_holds_what_cannot_be_seen() -> None:
    """N1: control characters, halves of characters and marks that change how a name reads are refused, and no other character."""
    misleading = "\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"
    for char in map(chr, range(0x1_1000)):
        is_hidden = unicodedata.category(char) in ("Cc", "Cs") or char in misleading
        assert (paths.fault(f"a{char}b") is None) is (not is_hidden and char != "\\")


@pytest.mark.parametrize("path", REFUSED)
def test_refusals_say_why(path: str) -> None:
    """N1: each refusal shows the path escaped, gives the reason and an example of a usable path."""
    with pytest.raises(InvalidPath, match=r"is not a usable path: .+ Use a relative path such as") as caught:
        paths.check(path)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("path", ACCEPTED)
def test_accepted_paths(path: str) -> None:
    """N2: dots inside, spaces, any script and emoji are fine."""
    assert paths.check(path) == path


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("A.md", "a.md"),
        ("caf\u00e9.md", "cafe\u0301.md"),
        ("site-roadmap.md", "Site Roadmap.md"),
        ("a_b.md", "a-b.md"),
        ("ﬁx.md", "fix.md"),
    ],
)
def test_names_that_collide(one: str, other: str) -> None:
    """P2: names that a person or a disk takes for the same have one collision key, and others don't."""
    assert paths.collision_key(one) == paths.collision_key(other) != paths.collision_key(f"x{one}")


@given(st.text())
def test_a_collision_key_is_stable(text: str) -> None:
    """P2: the key of a key is the key."""
    key = paths.collision_key(text)
    assert paths.collision_key(key) == key
