"""What people and other processes change while nobody looks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from folders import index_of, log_of, memory, objects_of, on_disk, visible

from mdmemory.backends.protocol import File, etag_of, span
from mdmemory.files.changes import Create, Delete, Rename, Replace
from mdmemory.files.history import Intent, done_line
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.news import LogReader

A, B, C = memory("Alpha", "the first"), memory("Beta", "the second"), memory("Gamma", "the third")


def outside(root: Path) -> list[dict[str, Any]]:
    """The log's entries of changes that were made outside."""
    return [entry for entry in log_of(root) if entry.get("author") == "outside"]


async def opened(root: Path) -> MemoryFolder:
    """The folder as a new process opens it."""
    folder = on_disk(root)
    await folder.recover()
    await folder.refresh()
    return folder


async def save(folder: MemoryFolder, name: str) -> None:
    """Any save, which logs what was noticed before."""
    await folder.apply([Create(f"{name}.md", memory(name))], "agent:a", "Write")


async def test_an_edit_outside_is_logged_once(tmp_path: Path) -> None:
    """What a person edits, makes and deletes is logged as made outside by the next save, once, and indexed; its bytes are kept."""
    folder = await opened(tmp_path)
    await folder.apply([Create("a.md", A), Create("b.md", B)], "agent:a", "Write")
    (tmp_path / "a.md").write_bytes(memory("Alpha", "by hand"))
    (tmp_path / "b.md").unlink()
    (tmp_path / "c.md").write_bytes(C)
    assert await folder.refresh() == {"a.md", "b.md", "c.md"}
    for name in "xyz":
        await save(folder, name)
        await folder.refresh()
    (entry,) = outside(tmp_path)
    changes = {file["path"]: (file["before"], file["after"]) for file in entry["files"]}
    new = memory("Alpha", "by hand")
    assert changes == {"a.md": (etag_of(A), etag_of(new)), "b.md": (etag_of(B), None), "c.md": (None, etag_of(C))}
    assert {new, C} <= set(objects_of(tmp_path))
    lines = index_of(tmp_path).splitlines()
    assert lines[:2] == ["- [Alpha](a.md) — by hand", "- [Gamma](c.md) — the third"] and "b.md" not in index_of(tmp_path)


async def test_an_edit_while_no_process_ran(tmp_path: Path) -> None:
    """An edit between two runs is noticed at the next open: the prompt has the new words at once, log and index later."""
    await (await opened(tmp_path)).apply([Create("a.md", A), Create("b.md", B)], "agent:a", "Write")
    (tmp_path / "a.md").write_bytes(memory("Alpha", "by hand"))
    (tmp_path / "b.md").unlink()
    folder = await opened(tmp_path)
    assert (await folder.prompt_index()).text == "- [Alpha](a.md) — by hand\n"
    await save(folder, "x")
    assert index_of(tmp_path).splitlines()[0] == "- [Alpha](a.md) — by hand" and "b.md" not in index_of(tmp_path)
    (entry,) = outside(tmp_path)
    assert [(file["path"], file["before"]) for file in entry["files"]] == [("a.md", etag_of(A)), ("b.md", etag_of(B))]
    for _ in range(2):
        await save(await opened(tmp_path), f"y{_}")
    assert len(outside(tmp_path)) == 1


async def test_the_prompt_follows_an_edit_outside(tmp_path: Path) -> None:
    """Between an edit outside and the next save, the prompt has the file's new words, and MEMORY.md is left as it is."""
    folder = await opened(tmp_path)
    await folder.apply([Create("a.md", A)], "agent:a", "Write")
    before = index_of(tmp_path)
    (tmp_path / "a.md").write_bytes(memory("Alpha", "by hand"))
    await folder.refresh()
    assert (await folder.prompt_index()).text == "- [Alpha](a.md) — by hand\n" and index_of(tmp_path) == before


async def test_another_process_is_not_outside(tmp_path: Path) -> None:
    """What a cooperating process saved is never logged as made outside, in whichever order it is noticed and read of."""
    first, second = await opened(tmp_path), await opened(tmp_path)
    await first.apply([Create("a.md", A)], "agent:1", "Write")
    await second.refresh()  # seen on the disk before it is read of in the log
    await save(second, "x")
    await first.apply([Replace("a.md", B, etag_of(A))], "agent:1", "Edit")
    await save(second, "y")  # read of in the log before it is seen on the disk
    await second.refresh()
    await first.apply([Delete("a.md")], "agent:1", "Delete")
    await save(second, "z")
    await second.refresh()
    await save(second, "end")
    assert not outside(tmp_path) and set(second.files) == {"x.md", "y.md", "z.md", "end.md"}


async def test_two_processes_log_an_edit_once(tmp_path: Path) -> None:
    """An edit outside that two processes noticed is logged by the one that saves first."""
    first, second = await opened(tmp_path), await opened(tmp_path)
    await first.apply([Create("a.md", A)], "agent:1", "Write")
    await second.refresh()
    (tmp_path / "a.md").write_bytes(C)
    for folder in (first, second):
        assert await folder.refresh() == {"a.md"}
    await save(first, "x")
    await save(second, "y")
    assert len(outside(tmp_path)) == 1


async def test_what_was_put_back_is_no_change(tmp_path: Path) -> None:
    """An edit that was taken back before the next save leaves no trace."""
    folder = await opened(tmp_path)
    await folder.apply([Create("a.md", A)], "agent:a", "Write")
    for data in (B, A):
        (tmp_path / "a.md").write_bytes(data)
        assert await folder.refresh() == {"a.md"}
    await save(folder, "x")
    assert not outside(tmp_path)


async def test_many_changes_at_once_log_hashes_only(tmp_path: Path) -> None:
    """Of more than twenty changes at once, as from a git checkout, the log has the hashes, and no bytes are kept."""
    folder = await opened(tmp_path)
    await save(folder, "x")
    data = {f"n{n}.md": memory(f"N{n}") for n in range(21)}
    for path, content in data.items():
        (tmp_path / path).write_bytes(content)
    await folder.refresh()
    await save(folder, "y")
    (entry,) = outside(tmp_path)
    assert {file["path"]: file["after"] for file in entry["files"]} == {path: etag_of(content) for path, content in data.items()}
    assert not set(data.values()) & set(objects_of(tmp_path)) and len(index_of(tmp_path).splitlines()) == 23


async def test_a_file_moved_outside_keeps_its_line(tmp_path: Path) -> None:
    """W2: a file or a folder that a person moves keeps the words people gave its pointer; only the target changes."""
    mine = "* [my own words](n/a.md) here\n"
    folder = on_disk(tmp_path, {"n/a.md": A, "n/b.md": B, "MEMORY.md": mine})
    await folder.refresh()
    (tmp_path / "n").rename(tmp_path / "moved")
    await folder.refresh()
    assert "* [my own words](moved/a.md) here" in (await folder.prompt_index()).text
    await save(folder, "x")
    assert index_of(tmp_path).splitlines()[0] == "* [my own words](moved/a.md) here" and "n/a" not in index_of(tmp_path)


async def test_an_edit_outside_and_one_of_ours_on_it(tmp_path: Path) -> None:
    """A file that a person changed and an agent then changed again has one line, ours, in its newest words; both are logged."""
    folder = await opened(tmp_path)
    await folder.apply([Create("a.md", A)], "agent:a", "Write")
    by_hand = memory("Alpha", "by hand")
    (tmp_path / "a.md").write_bytes(by_hand)
    await folder.refresh()
    await folder.apply([Replace("a.md", memory("Alpha", "by an agent"), etag_of(by_hand))], "agent:a", "Edit")
    assert index_of(tmp_path) == "- [Alpha](a.md) — by an agent\n"
    assert [entry["author"] for entry in log_of(tmp_path) if "id" in entry] == ["agent:a", "outside", "agent:a"]


async def test_moves_and_edits_outside_of_a_line(tmp_path: Path) -> None:
    """A rename of a file that was edited outside has its line follow both."""
    folder = await opened(tmp_path)
    await folder.apply([Create("a.md", A)], "agent:a", "Write")
    (tmp_path / "a.md").write_bytes(memory("Alpha", "by hand"))
    await folder.apply([Rename("a.md", "b.md")], "person", "move")
    assert index_of(tmp_path) == "- [Alpha](b.md) — by hand\n" and set(visible(tmp_path)) == {"b.md", "MEMORY.md"}


async def test_journals_and_the_index_are_not_memory_files(tmp_path: Path) -> None:
    """A journal or an index that comes, changes or goes is no change of a memory file and is not logged."""
    folder = on_disk(tmp_path, {"journal/s.md": "x", "MEMORY.md": "# Mine\n"})
    await folder.refresh()
    (tmp_path / "journal/s.md").write_text("y")
    assert await folder.refresh() == frozenset()
    (tmp_path / "journal/s.md").unlink()
    (tmp_path / "MEMORY.md").unlink()
    assert await folder.refresh() == frozenset()
    await save(folder, "x")
    assert not outside(tmp_path) and index_of(tmp_path) == "- [x](x.md) — what it says\n"


async def test_an_edit_on_top_of_another_process(tmp_path: Path) -> None:
    """Where a process saved and a person then edited, the log says which bytes the person began with, and the index follows."""
    first, second = await opened(tmp_path), await opened(tmp_path)
    await first.apply([Create("a.md", A)], "agent:1", "Write")
    (tmp_path / "a.md").write_bytes(C)
    await second.refresh()
    await save(second, "x")
    assert outside(tmp_path)[0]["files"] == [{"path": "a.md", "before": etag_of(A), "after": etag_of(C)}]
    assert "- [Gamma](a.md) — the third" in index_of(tmp_path) and "Alpha" not in index_of(tmp_path)


async def test_a_file_that_came_and_went_since_the_last_look(tmp_path: Path) -> None:
    """A file that a process saw, and of whose deletion only the log tells it, is gone for it too, and not logged as come back."""
    first, second = await opened(tmp_path), await opened(tmp_path)
    await first.apply([Create("a.md", A)], "agent:1", "Write")
    await second.refresh()
    (tmp_path / "a.md").unlink()
    await first.refresh()
    await save(first, "x")
    await save(second, "y")
    assert "a.md" not in second.files and "a.md" not in index_of(tmp_path) and len(outside(tmp_path)) == 1


def test_a_log_that_was_rewritten_is_read_anew() -> None:
    """M3: a reader that kept its place begins at the end again when other bytes stand before it, whether the log shrank or grew."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    logs = [Intent(name, at, "agent:a", "Write", ()).line() + done_line(name) for name in ("first", "second", "third")]
    for rewritten in (logs[1], logs[1] + logs[2] + logs[1] + logs[2]):
        reader, told = LogReader(), list[str]()
        for log in (logs[0] + logs[1], rewritten):
            for _ in range(2):
                start, length = span(reader.wanted, len(log))
                found = reader.take(File(log[start : start + length], None, len(log), 0))
                told += [intent.id for intent in found.finished]
        assert told == ["first", "second", "second", *(["third"] if len(rewritten) > len(logs[1]) else [])]
