"""What is longer than the screen goes through the pager that the person has chosen."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from command import mdmemory, note, write
from pseudo_terminal import screen

from mdmemory import Create, open_memory
from mdmemory.files.journal import entry_bytes, new_message, opening


@pytest.mark.parametrize("command", [["ls"], ["show", "a.md"], ["log", "-n", "99"], ["blame", "a.md"], ["diff"], ["journal", "s"]])
def test_long_output_is_paged(command: list[str], tmp_path: Path) -> None:
    """On a terminal a long answer goes to PAGER, a short one does not; piped, there is no pager."""
    (tmp_path / "pager").write_text("#!/bin/sh\nsed 's/^/PAGED /'\n")
    (tmp_path / "pager").chmod(0o755)
    for size in (3, 200):
        root = tmp_path / f"{size}" / "memory"
        write(root / "a.md", note("A", "a", "\n".join(f"line {number}" for number in range(size))))
        for number in range(size if command == ["ls"] else 0):
            write(root / f"n{number}.md", note(f"N{number}", "n"))
        mdmemory("remember", "A thought", *["and more of it\n"] * size, cwd=root.parent)
        if command[0] == "log":
            asyncio.run(change(root, size // 4))
        write(root / "journal/2026/11/s.md", journal(size))
        _, shown = screen(*command, cwd=root.parent, PAGER=str(tmp_path / "pager"), NO_COLOR="1")
        assert ("PAGED" in shown) is (size > 100), shown
        piped = mdmemory(*command, cwd=root.parent, PAGER=str(tmp_path / "pager"))
        assert piped.returncode == 0 and piped.stdout and "PAGED" not in piped.stdout


async def change(root: Path, times: int) -> None:
    """So many events of a history."""
    async with open_memory(root) as memory:
        for number in range(times):
            await memory.folder.apply([Create(f"t{number}.md", b"A thought.\n")], "person", "a test")


def journal(size: int) -> bytes:
    """A conversation of so many messages, as its file has it."""
    messages = [new_message({"role": "user", "content": f"said {number}"}, f"m{number}") for number in range(size)]
    return opening("s", messages[0]) + b"".join(map(entry_bytes, messages))
