"""What happened to a memory, and taking it back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from counting import CountingBackend
from folders import memory, on_disk, visible

from mdmemory.backends.memory import MemoryBackend
from mdmemory.backends.protocol import LOG, Append, File, FileProblem, Range, etag_of
from mdmemory.care import history
from mdmemory.errors import InvalidArguments, NotThere
from mdmemory.files.changes import Create, Delete, Rename, Replace
from mdmemory.files.history import FileChange, Intent, done_line
from mdmemory.folder.memory_folder import MemoryFolder

A, B = memory("Tea", "green", body="Green tea.\nNo sugar.\n"), memory("Tea", "green", body="Black tea.\nNo sugar.\n")


async def test_add_update_delete_are_three_events_and_undo_gives_the_bytes(tmp_path: Path) -> None:
    """M3: add, update, delete are three events with before and after; undo gives the exact bytes, and is an event itself."""
    folder = on_disk(tmp_path)
    await folder.refresh()
    await folder.apply([Create("tea.md", A)], "agent:monday", "Write")
    await folder.apply([Replace("tea.md", B, etag_of(A), A)], "agent:monday", "Edit")
    await folder.apply([Delete("tea.md")], "person", "forget")
    found = await history.events(folder)
    assert [(event.author, event.files[0].kind) for event in found] == [
        ("person", "deleted"),
        ("agent:monday", "changed"),
        ("agent:monday", "created"),
    ]
    assert [(file.before, file.after) for event in found for file in event.files] == [
        (etag_of(B), None),
        (etag_of(A), etag_of(B)),
        (None, etag_of(A)),
    ]
    await history.undo(folder, found[0])
    assert visible(tmp_path)["tea.md"] == B
    await history.undo(folder, found[1].short_id)
    assert visible(tmp_path)["tea.md"] == A
    await history.undo(folder, found[2])
    assert "tea.md" not in visible(tmp_path)
    await history.undo(folder, (await history.events(folder, limit=1))[0])
    assert visible(tmp_path)["tea.md"] == A


async def test_renames_are_followed(tmp_path: Path) -> None:
    """M3: events, versions and origins of lines are found under the names that a file had before; undo reaches the new name."""
    folder = on_disk(tmp_path)
    await folder.refresh()
    await folder.apply([Create("tea.md", A)], "agent:monday", "Write")
    await folder.apply([Replace("tea.md", B, etag_of(A), A)], "agent:tuesday", "Edit")
    await folder.apply([Rename("tea.md", "drinks/tea.md")], "person", "tidy")
    renamed, edited, created = await history.events(folder, path="drinks/tea.md")
    assert (renamed.files[0].kind, renamed.files[0].moved_from) == ("renamed", "tea.md")
    assert await history.show(folder, "drinks/tea.md", created) == A
    assert await history.show(folder, "tea.md", edited) == B
    lines = await history.blame(folder, "drinks/tea.md")
    taught = {line.text: line.event and line.event.session for line in lines}
    assert (taught["Black tea."], taught["No sugar."], taught["name: Tea"]) == ("tuesday", "monday", "monday")
    await history.undo(folder, edited)
    assert visible(tmp_path)["drinks/tea.md"] == A
    await history.undo(folder, renamed)
    assert visible(tmp_path)["tea.md"] == A and "drinks/tea.md" not in visible(tmp_path)


async def test_filters(tmp_path: Path) -> None:
    """M3: events are found by file, folder, author, session and time, the latest first, and at most so many."""
    folder = on_disk(tmp_path)
    await folder.refresh()
    await folder.apply([Create("MEMORY.md", b"# Mine\n")], "person", "init")
    await folder.apply([Create("drinks/tea.md", A)], "agent:monday", "Write")
    await folder.apply([Create("drinks/coffee.md", memory("Coffee"))], "agent:monday/extractor", "extracted")
    await folder.apply([Create("other.md", memory("Other"))], "agent:tuesday", "Write")
    newest, *_, oldest = await history.events(folder)

    async def paths(**wanted: Any) -> list[str]:
        return [event.files[0].path for event in await history.events(folder, **wanted)]

    assert await paths(session="monday") == ["drinks/coffee.md", "drinks/tea.md"]
    assert await paths(path="drinks") == ["drinks/coffee.md", "drinks/tea.md"]
    assert await paths(author="agent", limit=1) == ["other.md"]
    assert await paths(author="person") == ["MEMORY.md"]
    assert await paths(since=newest.at) == ["other.md"] and await paths(until=oldest.at) == ["MEMORY.md"]
    assert len(await paths(since="1h", until=f"{newest.at:%Y-%m-%d}")) == 4 and await paths(until="2020-01-01") == []
    with pytest.raises(InvalidArguments, match="no time"):
        await paths(since="last week")


async def test_ids(tmp_path: Path) -> None:
    """M3: the first digits of an id are enough; too few, several that begin so, and none are told apart."""
    folder = on_disk(tmp_path)
    await folder.refresh()
    for number in range(3):
        await folder.apply([Create(f"{number}.md", memory(f"N{number}"))], "person", "Write")
    log = tmp_path / LOG
    text = log.read_text()
    for number, event in enumerate(reversed(await history.events(folder))):
        text = text.replace(event.id, f"abcd{number // 2}{event.id[5:]}")
    log.write_text(text)
    assert (await history.find(folder, "abcd1")).files[0].path == "2.md"
    wrong = {"abc": (InvalidArguments, "at least 4"), "abcd": (InvalidArguments, "several"), "eeee": (NotThere, "no event")}
    for id, (error, words) in wrong.items():
        with pytest.raises(error, match=words):
            await history.find(folder, id)


async def test_differences(tmp_path: Path) -> None:
    """M3: what one event changed, what is different between two, or since then, and the last change of a file, by hand or not."""
    folder = on_disk(tmp_path)
    await folder.refresh()
    await folder.apply([Create("tea.md", A)], "agent:monday", "Write")
    await folder.apply([Replace("tea.md", B, etag_of(A), A)], "agent:monday", "Edit")
    await folder.apply([Rename("tea.md", "black.md"), Create("other.md", memory("Other"))], "agent:monday", "Edit")
    third, second, first = await history.events(folder)
    (one,) = await history.diff(folder, second)
    assert one.text.startswith("--- a/tea.md\n+++ b/tea.md\n") and "-Green tea.\n+Black tea.\n" in one.text
    (until,) = await history.diff(folder, first, second)
    assert (until.path, until.before, until.after, until.moved_from) == ("black.md", A, B, "tea.md")
    since = {each.path: each for each in await history.diff(folder, first.short_id, "now")}
    assert set(since) == {"black.md", "other.md"}
    assert since["black.md"].text.startswith("renamed tea.md to black.md\n--- a/tea.md\n")
    assert [each.path for each in await history.diff(folder, third, path="other.md")] == ["other.md"]
    (tmp_path / "black.md").write_bytes(B.rstrip(b"\n"))
    (edited,) = await history.diff(folder, path="black.md")
    assert edited.text.endswith("-No sugar.\n+No sugar.\n\\ No newline at end of file\n")
    with pytest.raises(NotThere):
        await history.diff(folder, path="never.md")
    with pytest.raises(InvalidArguments):
        await history.diff(folder)


class Measured(CountingBackend):
    """Counts the bytes that are read, too."""

    size = 0

    async def read(self, wanted: Mapping[str, Range | None]) -> Mapping[str, File | FileProblem]:
        """Count, and read."""
        found = await super().read(wanted)
        self.size += sum(len(file.data) for file in found.values() if isinstance(file, File))
        return found


async def test_the_last_events_of_a_long_log_are_one_read() -> None:
    """M3: of a log with 100,000 events, the last 20 take one read of 64 KB, and what is further back a bounded part."""
    backend, at = MemoryBackend(), datetime(2026, 1, 1, tzinfo=UTC)
    lines = []
    for number in range(100_000):
        change, id = FileChange(f"notes/n{number % 1000}.md", "0" * 64, "1" * 64), f"{number:032x}"
        lines.append(Intent(id, at + timedelta(minutes=number), "agent:x", "Edit", (change,)).line() + done_line(id))
    for start in range(0, len(lines), 20_000):
        await backend.commit(f"c{start}", [Append(LOG, b"".join(lines[start : start + 20_000]), "")])
    measured = Measured(backend)
    folder = MemoryFolder(measured)
    found = await history.events(folder, limit=20)
    assert [event.id for event in found] == [f"{99_999 - n:032x}" for n in range(20)]
    assert measured.calls == ["read"] and measured.size <= 65_536
    found = await history.events(folder, since=at + timedelta(minutes=99_000))
    assert len(found) == 1000 and measured.size < 2_000_000 and len(measured.calls) <= 4
