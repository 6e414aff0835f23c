"""What people's commands, the doctor and a sync make of mounts and of a configuration file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import mdmemory
from folders import everything, in_memory, index_of, memory
from mounting import mounted, put

from mdmemory.care.doctor import examine, repair
from mdmemory.care.sync import sync
from mdmemory.errors import InvalidArguments, PermissionDenied

BROKEN = b"---\nname: [\n---\n"
CONFIG = """location: home
stages: [plan]
mounts:
  team/: {location: team}
  docs/: {location: docs, access: read, stages: [plan]}
"""


async def test_doctor_looks_at_every_mount(tmp_path: Path) -> None:
    """M5: findings name whole paths; a read-only mount needs no index, and a file in the place of a mount is named."""
    put(tmp_path, {"home/team/x.md": memory("X"), "team/a.md": memory("A"), "team/bad.md": BROKEN, "docs/d.md": "# D\n"})
    put(tmp_path, {"board/n.md": memory("N"), "inbox/secret.md": BROKEN})
    rights = {"docs": {"access": "read"}, "board": {"access": ("read", "append")}, "inbox": {"access": "append"}}
    async with mounted(tmp_path, team={}, **rights) as memory_:
        found = {(finding.code, finding.path) for finding in await examine(memory_.folder)}
        home = {("no-pointer", "team/x.md"), ("hidden", "team/x.md")}
        assert found == {("no-pointer", "team/a.md"), ("broken", "team/bad.md"), ("no-pointer", "board/n.md"), *home}
        before = everything(tmp_path / "board"), everything(tmp_path / "docs")
        mended = [(finding.code, finding.path, finding.mount) for finding in await repair(memory_.folder)]
        assert mended == [("no-pointer", "team/x.md", ""), ("no-pointer", "team/a.md", "team/")]
        assert index_of(tmp_path / "team") == "- [A](a.md) — what it says\n"
        assert (everything(tmp_path / "board"), everything(tmp_path / "docs")) == before


async def test_a_repair_asks_the_policy(tmp_path: Path) -> None:
    """AM8: the doctor, too, writes into a mount only what the memory's policy allows."""
    put(tmp_path, {"team/a.md": memory("A")})
    async with mounted(tmp_path, policy=lambda change, author: "deny", team={}) as memory_:
        with pytest.raises(PermissionDenied, match=r"team/MEMORY\.md"):
            await repair(memory_.folder)
    assert index_of(tmp_path / "team") == ""


async def test_a_mount_that_is_away_is_a_finding(tmp_path: Path) -> None:
    """C1: the doctor says which mount can't be looked at, and looks at the others."""
    put(tmp_path, {"home/a.md": BROKEN})
    (tmp_path / "team").write_text("a file, no folder")
    async with mounted(tmp_path, team={}) as memory_:
        found = {(finding.code, finding.path) for finding in await examine(memory_.folder)}
        assert found == {("broken", "a.md"), ("unavailable", "team/")}


async def test_a_sync_is_between_two_folders(tmp_path: Path) -> None:
    """What is mounted is not carried along: a sync of it is refused, and does nothing."""
    put(tmp_path, {"home/a.md": memory("A"), "team/b.md": memory("B")})
    async with mounted(tmp_path, team={}) as memory_:
        with pytest.raises(InvalidArguments, match="between two folders"):
            await sync(memory_.folder, in_memory(), "there", push=True)


@pytest.mark.slow
def test_the_commands_take_a_configuration_file(tmp_path: Path) -> None:
    """C9: --config, or MDMEMORY_CONFIG, gives every command the file's folders; --folder names another home."""
    put(tmp_path, {"memory.yaml": CONFIG, "home/a.md": memory("A", body="kiwi"), "team/b.md": memory("B", body="kiwi")})
    put(tmp_path, {"docs/c.md": "# C\n\nkiwi\n", "other/o.md": memory("O", body="kiwi")})
    option = ("--config", "memory.yaml")
    found = json.loads(mdmemory("search", "kiwi", "--json", *option, cwd=tmp_path).stdout)
    assert {match["path"] for match in found} == {"a.md", "team/b.md", "docs/c.md"}
    listed = json.loads(mdmemory("ls", "--json", cwd=tmp_path / "docs", MDMEMORY_CONFIG=str(tmp_path / "memory.yaml")).stdout)
    assert {file["path"] for file in listed["files"]} == {"a.md", "team/b.md", "docs/c.md"}
    found = json.loads(mdmemory("search", "kiwi", "--json", "--mount", "docs", "--mount", ".", *option, cwd=tmp_path).stdout)
    assert {match["path"] for match in found} == {"a.md", "docs/c.md"}
    other = json.loads(mdmemory("ls", "--json", "-f", "other", *option, cwd=tmp_path).stdout)
    assert {file["path"] for file in other["files"]} == {"o.md", "team/b.md", "docs/c.md"}
    assert mdmemory("show", "team/b.md", *option, cwd=tmp_path).stdout == memory("B", body="kiwi").decode()
    assert "[B](team/b.md)" in mdmemory("prompt", *option, cwd=tmp_path).stdout
    assert mdmemory("remember", "plum", *option, cwd=tmp_path).returncode == 0 and (tmp_path / "home/project/plum.md").exists()
    assert mdmemory("doctor", *option, cwd=tmp_path).returncode == 1
    for command in (["pull", "other"], ["search", "kiwi", "--stage", "final"], ["search", "kiwi", "--mount", "none"]):
        done = mdmemory(*command, *option, cwd=tmp_path)
        assert done.returncode == 2 and done.stderr.count("\n") == 1


def test_a_wrong_configuration_file_is_one_line(tmp_path: Path) -> None:
    """C9: what is wrong with the file is said in one line, with its own line, and nothing is made."""
    put(tmp_path, {"memory.yaml": "locatoin: home\n"})
    done = mdmemory("ls", "--config", "memory.yaml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "Error: memory.yaml, line 1: unknown key 'locatoin'; did you mean location?\n"
    done = mdmemory("ls", "--config", "none.yaml", cwd=tmp_path)
    assert done.returncode == 1 and "none.yaml can't be read: No such file" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["memory.yaml"]


async def test_facts_of_all_mounts(tmp_path: Path) -> None:
    """X1: a timeline and facts are those of all mounts, with whole paths; one file replaces another in its own mount only."""
    put(tmp_path, {"home/anna.md": memory("Anna", body="- works at:: [[Acme]]\n")})
    put(tmp_path, {"team/ben.md": memory("Ben", body="- works at:: [[Acme]]\n")})
    put(tmp_path, {"team/other.md": memory("Other", supersedes="anna.md")})
    async with mounted(tmp_path, team={}) as memory_:
        found = await memory_.facts(predicate="works at")
        assert {fact.path for fact in found} == {"anna.md", "team/ben.md"}
        assert "Ben" in str(await memory_.timeline("Ben")) and "Anna" in await memory_.wake_up(500)


def test_the_commands_for_facts_take_a_configuration_file(tmp_path: Path) -> None:
    """C9: timeline, fact and wake-up heed --config as all commands do."""
    put(tmp_path, {"memory.yaml": CONFIG, "home/a.md": memory("Anna"), "team/b.md": memory("Ben", body="- likes:: tea\n")})
    option = ("--config", "memory.yaml")
    assert "tea" in mdmemory("timeline", "Ben", *option, cwd=tmp_path).stdout
    assert mdmemory("fact", "team/b.md", "likes", "coffee", *option, cwd=tmp_path).returncode == 0
    assert b"coffee" in (tmp_path / "team/b.md").read_bytes()
    assert "Ben" in mdmemory("wake-up", *option, cwd=tmp_path).stdout
