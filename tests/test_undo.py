"""Taking back events, sessions and everything since a time; what stands in the way; restoring one file."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest
from folders import everything, index_of, memory, on_disk, visible
from hypothesis import given, settings
from hypothesis import strategies as st

from mdmemory import open_memory
from mdmemory.backends.memory import MemoryBackend
from mdmemory.backends.protocol import etag_of
from mdmemory.care import history
from mdmemory.errors import Conflict, InvalidArguments, NotThere
from mdmemory.files.changes import Append, Change, Create, Delete, Rename, Replace
from mdmemory.files.history import read_tombstones
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.mounts import Mount

LINES = [f"Line {number} says so.\n" for number in range(9)]


def note(*changed: tuple[int, str], name: str = "Note") -> bytes:
    """A memory file of nine lines, some of which are others."""
    lines = list(LINES)
    for number, text in changed:
        lines[number] = f"{text}\n"
    return memory(name, "nine lines", body="".join(lines))


async def ready(root: Path, files: dict[str, bytes] | None = None) -> MemoryFolder:
    """A folder that has been looked at."""
    folder = on_disk(root, files or {})
    await folder.refresh()
    return folder


async def edit(folder: MemoryFolder, path: str, data: bytes, author: str = "agent:monday") -> None:
    """Replace a file by what is based on its bytes now."""
    now = await folder.read(path)
    await folder.apply([Replace(path, data, etag_of(now), now)], author, "Edit")


async def test_later_edits_of_other_lines_stay(tmp_path: Path) -> None:
    """M3: undo of an edit keeps what others changed in other lines since, and undo of that undo brings the edit back."""
    folder = await ready(tmp_path)
    await folder.apply([Create("a.md", note())], "agent:monday", "Write")
    await edit(folder, "a.md", note((1, "wrong")))
    await edit(folder, "a.md", note((1, "wrong"), (7, "right")), "person")
    (wrong,) = (await history.events(folder, session="monday"))[:1]
    await history.undo(folder, wrong)
    assert visible(tmp_path)["a.md"] == note((7, "right"))
    await history.undo(folder, (await history.events(folder))[0])
    assert visible(tmp_path)["a.md"] == note((1, "wrong"), (7, "right"))


async def test_a_later_edit_of_the_same_line_is_named(tmp_path: Path) -> None:
    """M3: what stands in the way is named with its event, and nothing is written, of no file."""
    folder = await ready(tmp_path)
    await folder.apply([Create("a.md", note()), Create("b.md", note(name="B"))], "person", "Write")
    now = [await folder.read(path) for path in ("a.md", "b.md")]
    both = [
        Replace("a.md", note((1, "one")), etag_of(now[0]), now[0]),
        Replace("b.md", note((1, "b"), name="B"), etag_of(now[1]), now[1]),
    ]
    await folder.apply(both, "agent:monday", "Edit")
    await edit(folder, "a.md", note((1, "two")), "person")
    later, event, _ = await history.events(folder)
    before = everything(tmp_path)
    with pytest.raises(Conflict, match=rf"a\.md: the same lines were changed since \({later.short_id} by person") as caught:
        await history.undo(folder, event)
    assert everything(tmp_path) == before and caught.value.etag == etag_of(note((1, "two")))
    await history.undo(folder, event, paths=["b.md"])
    assert visible(tmp_path)["b.md"] == note(name="B") and visible(tmp_path)["a.md"] == note((1, "two"))
    await history.undo(folder, later)
    await history.undo(folder, event)  # what of it was undone before stays as it is
    assert visible(tmp_path)["a.md"] == note() and visible(tmp_path)["b.md"] == note(name="B")


async def test_a_session_is_taken_back(tmp_path: Path) -> None:
    """M3: undo of a session takes all of its changes back, renames included, and those of others stay; twice is once."""
    folder = await ready(tmp_path)
    await folder.apply([Create("a.md", note()), Create("gone.md", note(name="Gone"))], "person", "Write")
    start = visible(tmp_path)
    await edit(folder, "a.md", note((1, "by the agent")))
    await folder.apply(
        [Rename("a.md", "new/a.md"), Delete("gone.md"), Create("made.md", note(name="Made"))], "agent:monday", "tidy"
    )
    await edit(folder, "new/a.md", note((1, "by the agent"), (2, "again")))
    await folder.apply([Create("other.md", note(name="Other"))], "agent:tuesday", "Write")
    shown = await history.undo(folder, session="monday", dry_run=True)
    assert shown.commit_id is None and "new/a.md" in visible(tmp_path)
    await history.undo(folder, session="monday")
    assert {path: data for path, data in visible(tmp_path).items() if path not in ("other.md", "MEMORY.md")} == {
        path: data for path, data in start.items() if path != "MEMORY.md"
    }
    assert sorted(index_of(tmp_path).splitlines()) == [
        f"- [{name}]({name.lower() if name != 'Note' else 'a'}.md) — nine lines" for name in ("Gone", "Note", "Other")
    ]
    assert (await history.undo(folder, session="monday")).files == ()
    forgotten = read_tombstones((tmp_path / ".mdmemory/tombstones").read_bytes())
    assert set(forgotten.paths) >= {"made.md"} and "gone.md" not in forgotten.paths


async def test_everything_since_a_time(tmp_path: Path) -> None:
    """M3, M7: 250 files of a scope that were cleared come back with one undo, and so do people's own lines of the index."""
    async with open_memory(tmp_path) as opened:
        own = "# Mine\n\n* [the first](users/ada/n0.md) my words\n"
        await opened.folder.refresh()
        await opened.folder.apply([Create("MEMORY.md", own.encode()), Create("keep.md", note(name="Keep"))], "person", "init")
        await opened.folder.apply([Create(f"users/ada/n{n}.md", memory(f"N{n}", "d")) for n in range(250)], "agent:x", "Write")
        before, since = visible(tmp_path), datetime.now(UTC)
        assert await opened.clear("users/ada") == 250
        assert "my words" not in index_of(tmp_path) and set(visible(tmp_path)) == {"MEMORY.md", "keep.md"}
        await history.undo(opened.folder, since=since)
        after = visible(tmp_path)
    assert {path: data for path, data in after.items() if path != "MEMORY.md"} == {
        path: data for path, data in before.items() if path != "MEMORY.md"
    }
    assert index_of(tmp_path).startswith(own)


async def test_the_restored_is_no_longer_forgotten(tmp_path: Path) -> None:
    """D3: an undone deletion clears its tombstone; an undone creation stays forgotten, until that is undone."""
    folder = await ready(tmp_path)
    await folder.apply([Create("a.md", note(name="A"))], "agent:monday", "extracted")

    def forgets() -> bool:
        data = (tmp_path / ".mdmemory/tombstones").read_bytes()
        return read_tombstones(data).covers("a.md", "A", datetime(2020, 1, 1, tzinfo=UTC))

    created = (await history.events(folder))[0]
    await history.undo(folder, created)
    assert forgets()
    await history.undo(folder, (await history.events(folder))[0])
    assert not forgets() and visible(tmp_path)["a.md"] == note(name="A")
    await folder.apply([Delete("a.md")], "person", "forget")
    assert forgets()
    await history.restore(folder, "a.md")
    assert not forgets() and visible(tmp_path)["a.md"] == note(name="A")


async def test_an_addition_is_taken_back(tmp_path: Path) -> None:
    """M3: text at the end of a file has a before and an after, though the log has no etags of it, and what others added stays."""
    folder = await ready(tmp_path, {"a.md": note().rstrip(b"\n")})
    for text in ("One.", "Two.", "Three."):
        await folder.apply([Append("a.md", text.encode())], f"agent:{text}", "Add")
    three, two, one = await history.events(folder, path="a.md")
    assert [each.files[0].kind for each in (one, two, three)] == ["added"] * 3
    (shown,) = await history.diff(folder, two)
    assert shown.text.endswith(" One.\n+Two.\n") and await history.show(folder, "a.md", one) == note() + b"One.\n"
    assert [line.event and line.event.session for line in await history.blame(folder, "a.md")][-3:] == ["One.", "Two.", "Three."]
    await history.undo(folder, two)
    assert visible(tmp_path)["a.md"] == note() + b"One.\nThree.\n"


async def test_across_mounts(tmp_path: Path) -> None:
    """M3: events of mounts have whole paths; undo of a session writes to each mount, and ids are found in all of them."""
    async with open_memory(tmp_path / "home", mounts={"team/": Mount(tmp_path / "team")}) as opened:
        await opened.folder.refresh()
        await opened.folder.apply([Create("a.md", note()), Create("team/b.md", note(name="B"))], "agent:monday", "Write")
        found = await history.events(opened.folder)
        assert sorted(file.path for event in found for file in event.files) == ["a.md", "team/b.md"]
        team = next(event for event in found if event.prefix == "team/")
        assert await history.find(opened.folder, team.short_id) == team
        assert await history.show(opened.folder, "team/b.md", team.id) == note(name="B")
        await history.undo(opened.folder, session="monday")
        assert set(opened.folder.files) == set()
    assert "b.md" not in visible(tmp_path / "team") and "a.md" not in visible(tmp_path / "home")


async def test_restore_brings_back_a_version(tmp_path: Path) -> None:
    """M3: a file is brought back as of an event or a time; one that is there needs a version, and one that never was is told."""
    folder = await ready(tmp_path)
    await folder.apply([Create("a.md", note())], "person", "Write")
    first = (await history.events(folder))[0]
    await edit(folder, "a.md", note((1, "new")))
    with pytest.raises(InvalidArguments, match="is there"):
        await history.restore(folder, "a.md")
    with pytest.raises(NotThere, match=r"no a\.md then"):
        await history.restore(folder, "a.md", "2020-01-01")
    with pytest.raises(NotThere):
        await history.restore(folder, "never.md")
    await history.restore(folder, "a.md", first.at)
    assert visible(tmp_path)["a.md"] == note()
    assert (await history.events(folder))[0].reason.startswith("restore as of")


async def test_an_edit_outside_is_in_the_history(tmp_path: Path) -> None:
    """E6, M3: what a person changed in an editor is an event of `outside` after the next save; blame tells of it before."""
    folder = await ready(tmp_path)
    await folder.apply([Create("a.md", note())], "agent:monday", "Write")
    (tmp_path / "a.md").write_bytes(note((3, "by hand")))
    await folder.refresh()
    line = next(line for line in await history.blame(folder, "a.md") if line.text == "by hand")
    assert line.event is not None and (line.event.id, line.event.author) == ("", "outside")
    await folder.apply([Create("b.md", note(name="B"))], "agent:monday", "Write")
    outside = next(event for event in await history.events(folder) if event.author == "outside")
    line = next(line for line in await history.blame(folder, "a.md") if line.text == "by hand")
    assert line.event == outside and await history.find(folder, outside.short_id) == outside
    await history.undo(folder, outside)
    assert visible(tmp_path)["a.md"] == note()


CHANGES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 8)), min_size=1, max_size=8)


@settings(max_examples=40, deadline=None)
@given(CHANGES, st.integers(0, 7))
def test_undo_since_any_event_gives_the_files_of_then(steps: list[tuple[int, int, int]], since: int) -> None:
    """M3: whatever was created, edited, renamed and deleted, undo of all since then gives the files of then, and undo of that."""

    async def run() -> None:
        backend = MemoryBackend()
        folder = MemoryFolder(backend)
        await folder.refresh()
        states, ids = list[dict[str, bytes]](), list[str]()
        for number, (file, kind, line) in enumerate(steps):
            states.append({path: await folder.read(path) for path in folder.files})
            change = step(states[-1], file, kind, line, number)
            applied = await folder.apply([change], f"agent:{number}", "step")
            ids.append(applied.commit_id or "")
        states.append({path: await folder.read(path) for path in folder.files})
        place = min(since, len(steps) - 1)
        found = {event.id: event for event in await history.events(folder)}
        await history.undo(folder, since=found[ids[place]].at)
        assert {path: await folder.read(path) for path in folder.files} == states[place]
        last = (await history.events(folder, limit=1))[0]
        if last.reason.startswith("undo"):
            await history.undo(folder, last)
        assert {path: await folder.read(path) for path in folder.files} == states[-1]

    asyncio.run(run())


def step(state: dict[str, bytes], file: int, kind: int, line: int, number: int) -> Change:
    """A change that this state allows."""
    path, other = f"f{file}.md", f"f{(file + 1) % 4}.md"
    if path not in state:
        return Create(path, note((line, f"made in {number}"), name=f"F{number}"))
    if kind == 0:
        return Delete(path)
    if kind == 1 and other not in state:
        return Rename(path, other)
    text = state[path].decode().splitlines(keepends=True)
    text[-1 - line] = f"edited in {number}\n"
    return Replace(path, "".join(text).encode(), etag_of(state[path]), state[path])
