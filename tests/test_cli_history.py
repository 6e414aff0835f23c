"""The commands of the history as JSON, on a terminal, and with conversations; two transcripts show them at length."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from command import mdmemory, note, write
from pseudo_terminal import Terminal

from mdmemory import open_memory


def as_json(*arguments: str, cwd: Path, code: int = 0) -> Any:
    """What a command prints as JSON."""
    done = mdmemory(*arguments, "--json", cwd=cwd)
    assert done.returncode == code and done.stderr == "", done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_everything_as_json(tmp_path: Path) -> None:
    """M3: log, diff, blame, undo, restore and purge print JSON, with whole ids, the session and the diffs."""
    mdmemory("remember", "Tea", cwd=tmp_path)
    (event,) = as_json("log", "project/tea.md", cwd=tmp_path)
    assert (event["author"], event["session"], event["files"][0]["kind"]) == ("person", None, "created")
    (shown,) = as_json("diff", event["id"][:8], cwd=tmp_path)
    assert shown["path"] == "project/tea.md" and shown["diff"].startswith("--- /dev/null\n")
    assert as_json("blame", "memory/project/tea.md", cwd=tmp_path)[0] == {
        "text": "---",
        "event": event["id"],
        "author": "person",
        "session": None,
        "at": event["at"],
    }
    undone = as_json("undo", event["id"][:6], cwd=tmp_path)
    assert list(undone["diff"]) == ["project/tea.md"] and undone["event"] == as_json("log", "-n", "1", cwd=tmp_path)[0]["id"]
    assert as_json("undo", event["id"], cwd=tmp_path) == {"event": None, "diff": {}}
    assert as_json("restore", "project/tea.md", "--dry-run", cwd=tmp_path)["event"] is None
    assert as_json("purge", "project/tea.md", "--yes", cwd=tmp_path)["commits"] == 2
    assert as_json("log", cwd=tmp_path) == []


def test_a_scope_is_deleted_and_comes_back(tmp_path: Path) -> None:
    """M7: `forget --all` deletes 250 files and says so, the neighbour stays, and one undo brings all of them back."""
    for number in range(250):
        write(tmp_path / f"memory/users/ada/n{number}.md", note(f"N{number}", "of Ada"))
    write(tmp_path / "memory/users/adam/n.md", note("N", "of Adam"))
    assert mdmemory("forget", "--all", "users/ada", cwd=tmp_path).returncode == 1  # nobody is there to ask
    assert mdmemory("forget", "--all", "users/ada", "-y", cwd=tmp_path).stdout == "Forgot 250 files below users/ada.\n"
    assert [path.name for path in (tmp_path / "memory/users").rglob("*.md")] == ["n.md"]
    assert mdmemory("undo", cwd=tmp_path).returncode == 0
    assert len(list((tmp_path / "memory/users/ada").glob("*.md"))) == 250


def test_purging_asks_and_tells_of_conversations(tmp_path: Path) -> None:
    """D3: on a terminal `purge` asks; what conversations say is named, with the option that takes it out."""

    async def talk() -> None:
        async with open_memory(tmp_path / "memory") as opened:
            await (await opened.session("monday").turn("The code is 4711-2290.")).finish("I see.")

    asyncio.run(talk())
    purge = ("purge", "--text", "4711-2290")
    with Terminal(*purge, cwd=tmp_path, NO_COLOR="1") as terminal:
        terminal.wait_for("This can't be undone")
        terminal.type("n\r")
        assert terminal.end() == 1
    with Terminal(*purge, cwd=tmp_path, NO_COLOR="1") as terminal:
        terminal.wait_for("This can't be undone")
        terminal.type("y\r")
        assert terminal.end() == 1 and "monday.md" in terminal.shown and "say --journal" in terminal.shown
    done = mdmemory(*purge, "--journal", "--yes", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "Purged 1 message.\n")
    assert "The code is (purged)." in mdmemory("journal", "monday", cwd=tmp_path).stdout
