"""What happened to a memory, and taking it back."""

from __future__ import annotations

from pathlib import Path

from folders import memory, on_disk, visible

from mdmemory.backends.protocol import etag_of
from mdmemory.care import history
from mdmemory.files.changes import Create, Delete, Rename, Replace

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
    assert {line.text: line.event and line.event.session for line in lines[-3:]} == {
        "Black tea.": "tuesday",
        "No sugar.": "monday",
    } | {line.text: "monday" for line in lines[-3:] if line.text not in ("Black tea.", "No sugar.")}
    await history.undo(folder, edited)
    assert visible(tmp_path)["drinks/tea.md"] == A
    await history.undo(folder, renamed)
    assert visible(tmp_path)["tea.md"] == A and "drinks/tea.md" not in visible(tmp_path)
