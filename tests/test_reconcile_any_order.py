"""Whatever people and agents do on two sides between syncs: both end up the same, and nothing that anyone wrote is lost."""

from __future__ import annotations

import asyncio
import itertools
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

import pytest
from counting import CountingBackend
from hypothesis import given, settings
from hypothesis import strategies as st
from reconciling import Two, contents, delete, edit, keep, note, rename

from mdmemory.backends.memory import MemoryBackend
from mdmemory.backends.protocol import Op
from mdmemory.errors import Unavailable
from mdmemory.files.history import OBJECTS
from mdmemory.folder.known import INDEX
from mdmemory.folder.memory_folder import MemoryFolder

pytestmark = pytest.mark.slow  # many processes, or the same again and again

PATHS = ("a.md", "b.md", "sub/c.md")
WORD = re.compile(rb"word\d+")
Act = tuple[str, bool, str, int]
ACTS = st.tuples(
    st.sampled_from(["edit", "keep", "insert", "delete", "remove", "rename", "index", "copy"]),
    st.booleans(),
    st.sampled_from(PATHS),
    st.integers(0, 4),
)


class Failing(CountingBackend):
    """A backend that goes away at one of its commits, before or after it was done."""

    def __init__(self) -> None:
        super().__init__(MemoryBackend())
        self.left, self.is_done = 0, False

    async def commit(self, commit_id: str, ops: Sequence[Op]) -> Mapping[str, str]:
        """Commit, or not."""
        self.left -= 1
        if self.left == 0 and not self.is_done:
            raise Unavailable("gone before")
        etags = await super().commit(commit_id, ops)
        if self.left == 0:
            raise Unavailable("gone after")
        return etags


def changed(data: bytes, act: str, line: int, word: str) -> bytes:
    """The file with another line, or one more; a new file has five."""
    if not data:
        return note("N", "".join(f"{number} {word}\n" for number in range(5)))
    lines = data.splitlines(keepends=True)
    place = min(len(lines), 6 + line)
    lines[place : place + (act != "insert")] = [f"{line} {word}\n".encode()]
    return b"".join(lines)


async def do(folder: MemoryFolder, act: Act, word: str) -> None:
    """Do one thing on one side, where it can be done."""
    what, _, path, line = act
    now = await contents(folder)
    if what in ("edit", "keep", "insert"):
        await (keep if what == "keep" else edit)(folder, path, changed(now.get(path, b""), what, line, word))
    elif what == "index":
        text = await folder.index_file() or ""
        await edit(folder, INDEX, f"# {word}\n{text}".encode())
    elif what == "copy" and path in now:
        await edit(folder, PATHS[line % 3], now[path])
    elif what == "rename" and path in now and (new := f"moved/{line}{path[-4:]}") not in now:
        await rename(folder, path, new)
    elif path in now and what == "delete":
        await delete(folder, path)
    elif path in now and what == "remove":
        await edit(folder, path, None)


def words(files: Mapping[str, bytes]) -> set[bytes]:
    """All words that files hold."""
    return {word for data in files.values() for word in WORD.findall(data)}


async def everything(two: Two) -> set[bytes]:
    """The words of both folders and of both histories."""
    found = set()
    for backend in two.backends:
        inner = getattr(backend.inner, "inner", backend.inner)
        files: Mapping[str, tuple[bytes, object]] = inner._files
        found |= words({path: data for path, (data, _) in files.items() if path.startswith(OBJECTS) or not path.startswith(".")})
    return found


def gone(was: Mapping[str, bytes], here: Mapping[str, bytes], there: Mapping[str, bytes]) -> set[str]:
    """The files that one side deleted and the other left as they were, where none with the same bytes came in their place."""
    new = {data for side in (here, there) for path, data in side.items() if path not in was}
    return {
        path
        for path, data in was.items()
        if data not in new and ((path not in here and there.get(path) == data) or (path not in there and here.get(path) == data))
    }


async def play(rounds: list[list[Act]]) -> None:
    """Do things on both sides and sync, again and again, and check what must hold after each."""
    two, count = Two(MemoryBackend(), MemoryBackend()), itertools.count()
    await edit(two.here, "z.md", note("Z"))
    await two.sync()
    was = await contents(two.here)
    for acts in rounds:
        for act in acts:
            await do(two.here if act[1] else two.there, act, f"word{next(count)}")
        here, there = await contents(two.here), await contents(two.there)
        alive = words(here) | words(there)
        done = await two.synced(max_deletions=1_000)
        after = await contents(two.here)
        assert after == await contents(two.there) and not any(step.action == "left" for step in done.steps)
        assert alive <= await everything(two)
        assert not gone(was, here, there) & after.keys()
        if not any(step.action in ("delete", "rename") for step in done.steps):
            for path in here.keys() & there.keys():  # what only one of both changed is as that one has it
                if here[path] == was.get(path) or there[path] == was.get(path):
                    assert after[path] == (there if here[path] == was.get(path) else here)[path]
        assert await two.sync() == []
        was = after


@settings(max_examples=150)
@given(st.lists(st.lists(ACTS, min_size=1, max_size=6), min_size=1, max_size=5))
def test_any_edits_on_both_sides(rounds: list[list[Act]]) -> None:
    """Both sides are the same after a sync, the next has nothing to do, deletions are carried out, and no word is lost."""
    asyncio.run(play(rounds))


@settings(max_examples=150)
@given(st.lists(ACTS, min_size=2, max_size=8), st.booleans(), st.integers(1, 6), st.booleans())
def test_a_side_that_goes_away(acts: list[Act], is_here: bool, commits: int, is_done: bool) -> None:
    """When a side goes away at any of its commits, done or not, the next sync ends well."""

    async def play_and_fail() -> None:
        sides = Failing(), Failing()
        two, count = Two(*sides), itertools.count()
        for path in PATHS:
            await edit(two.here, path, changed(b"", "edit", 0, f"word{next(count)}"))
        await two.sync()
        was = await contents(two.here)
        for act in acts:
            await do(two.here if act[1] else two.there, act, f"word{next(count)}")
        here, there = await contents(two.here), await contents(two.there)
        side = sides[0 if is_here else 1]
        side.left, side.is_done = commits, is_done
        with suppress(Unavailable):
            await two.sync(max_deletions=1_000)
        side.left = 0
        assert words(here) | words(there) <= await everything(two)
        again = Two(*sides)  # as the next process has it
        for folder in (again.here, again.there):
            await folder.recover()
        await again.sync(max_deletions=1_000)
        after = await contents(again.here)
        assert after == await contents(again.there) and await again.sync() == []
        assert words(here) | words(there) <= await everything(again)
        assert not gone(was, here, there) & after.keys()

    asyncio.run(play_and_fail())
