"""`mdmemory import`: what comes, what stays out and why, in a table and as JSON; the exit code says whether a person is needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import mdmemory, write
from exports import as_json, claude, node, remembered, says, walk, zipped

from mdmemory.cli.import_command import KINDS


def test_the_command_knows_every_importer() -> None:
    """What `--help` offers is what there is."""
    from mdmemory.care.importers.kinds import IMPORTERS

    assert tuple(IMPORTERS) == KINDS


def test_an_archive_of_chatgpt_comes_as_it_was_downloaded(tmp_path: Path) -> None:
    """Shards are read, pictures and account data are named, and the same again is nothing new."""
    more = [walk(node("t", "m2", "tool", "1"), node("u", "t", "user", "Thanks"))]
    files = {"conversations-000.json": as_json(more), "user.json": b"{}", "file-1.png": b"\x89"}
    write(tmp_path / "chatgpt.zip", zipped(files))
    done = mdmemory("import", "chatgpt", "chatgpt.zip", "--json", cwd=tmp_path)
    told = json.loads(done.stdout)
    assert done.returncode == 0 and told["conversations"] == [{"session": "chatgpt-c1", "title": "A walk", "new": 3, "known": 0}]
    assert {each["where"] for each in told["left"]} == {"user.json", "file-1.png", "chatgpt:c1#t"}
    assert "Nothing is new." in mdmemory("import", "chatgpt", "chatgpt.zip", cwd=tmp_path).stdout
    assert "Around the lake." in mdmemory("journal", "chatgpt-c1", cwd=tmp_path).stdout
    assert "Around the lake." in mdmemory("context", "lake", cwd=tmp_path).stdout


def test_an_archive_of_claude_comes_with_what_claude_remembered(tmp_path: Path) -> None:
    """Conversations go into the journal, memories into files, from an archive or from its folder."""
    chats = as_json([claude(says("q", "human", "Hi"), says("a", "assistant", "Hello", 1))])
    memories = as_json([{"conversations_memory": "Bakes on Sundays.", "project_memories": {}}])
    files = {"conversations.json": chats, "memories.json": memories, "users.json": b"[]"}
    write(tmp_path / "data-2026-01-02.zip", zipped(files))
    for path, data in files.items():
        write(tmp_path / "unpacked" / path, data)
    assert mdmemory("import", "claude", "data-2026-01-02.zip", cwd=tmp_path).returncode == 0
    assert "Bakes on Sundays." in (tmp_path / "memory/user/claude.md").read_text(encoding="utf-8")
    assert "Nothing is new." in mdmemory("import", "claude", "unpacked", cwd=tmp_path).stdout


def test_a_dry_run_makes_nothing(tmp_path: Path) -> None:
    """Not even the folder."""
    write(tmp_path / "m.json", as_json([remembered("a", "Likes tea")]))
    done = mdmemory("import", "mem0", "m.json", "--dry-run", cwd=tmp_path)
    assert "create" in done.stdout and "user/likes-tea.md" in done.stdout and not (tmp_path / "memory").exists()


def test_a_conflict_is_exit_code_1(tmp_path: Path) -> None:
    """A file that is here with other words stays, and the command says so."""
    write(tmp_path / "memory/a.md", "# Mine\n")
    write(tmp_path / "notes/a.md", "# Theirs\n")
    done = mdmemory("import", "markdown", "notes", cwd=tmp_path)
    assert done.returncode == 1 and "conflict" in done.stdout
    assert (tmp_path / "memory/a.md").read_text(encoding="utf-8") == "# Mine\n"


@pytest.mark.parametrize(
    ("kind", "name", "data"),
    [("chatgpt", "c.json", b"{"), ("claude", "c.zip", zipped({"a.txt": b""})), ("mem0", "gone", None), ("lotus", "c.json", b"[]")],
)
def test_what_cannot_be_imported_is_exit_code_2(tmp_path: Path, kind: str, name: str, data: bytes | None) -> None:
    """One line says what is wrong, and nothing is made."""
    if data is not None:
        write(tmp_path / name, data)
    done = mdmemory("import", kind, name, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and "Error: " in done.stderr and not (tmp_path / "memory").exists()
