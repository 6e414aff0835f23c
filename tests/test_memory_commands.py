"""The commands of Anthropic's memory tool, as its documentation words them, on every backend."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from e2b_server import E2BServer
from engine import IMAGES, new_volume, why_not
from folders import index_of, log_of, memory, visible
from local_shell import KINDS, LocalShell

from mdmemory import Mount, open_memory
from mdmemory.agent.dialects import human_size
from mdmemory.agent.memory_commands import MemoryCommands
from mdmemory.backends.protocol import Backend
from mdmemory.backends.shell import ShellBackend
from mdmemory.errors import InvalidMemoryFile, InvalidPath, MdmemoryError, PermissionDenied
from mdmemory.folder.permissions import read_only

Given = Mapping[str, Any]
KINDS_OF_BACKENDS = ["local", "memory", "shell", "e2b", pytest.param("docker", marks=pytest.mark.docker)]


def backend_of(kind: str, place: Path) -> str | Path | Backend:
    """Where the memory is."""
    if kind == "docker" and (reason := why_not()):
        pytest.skip(reason)
    docker = f"docker://{IMAGES['busybox']}?volume={new_volume()}&on_close=remove"
    shell = ShellBackend(LocalShell(KINDS[0], place), str(place / "memory"))
    return {"local": place / "memory", "memory": "memory://", "shell": shell, "e2b": "e2b://base?memory=m", "docker": docker}[kind]


@pytest.fixture(params=KINDS_OF_BACKENDS)
async def commands(request: pytest.FixtureRequest, tmp_path: Path, server: E2BServer) -> AsyncIterator[MemoryCommands]:
    """The commands on an empty memory."""
    async with open_memory(backend_of(request.param, tmp_path)) as opened:
        yield MemoryCommands(opened.folder)


@pytest.fixture
async def local(tmp_path: Path) -> AsyncIterator[MemoryCommands]:
    """The commands on a memory of this disk, whose folder is there."""
    (tmp_path / "memory").mkdir()
    async with open_memory(tmp_path / "memory") as opened:
        yield MemoryCommands(opened.folder)


async def told(commands: MemoryCommands, command: str, **given: Any) -> str:
    """The answer, or the text of the error."""
    try:
        return await commands.run({"command": command, **given})
    except MdmemoryError as error:
        return f"!{error}"


ABSENT = "!Error: The path /memories/b.txt does not exist"
CONVERSATION: list[tuple[str, Given, str]] = [
    ("create", {"path": "/memories/a.txt", "file_text": "one\ntwo\n"}, "File created successfully at: /memories/a.txt"),
    ("create", {"path": "/memories/a.txt", "file_text": "one\ntwo\n"}, "!Error: File /memories/a.txt already exists"),
    (
        "view",
        {"path": "/memories/a.txt"},
        "Here's the content of /memories/a.txt with line numbers:\n     1\tone\n     2\ttwo",
    ),
    (
        "str_replace",
        {"path": "/memories/a.txt", "old_str": "two", "new_str": "2\n3"},
        "The memory file has been edited.\n     1\tone\n     2\t2\n     3\t3\n     4\t",
    ),
    ("str_replace", {"path": "/memories/b.txt", "old_str": "x"}, f"{ABSENT}. Please provide a valid path."),
    (
        "str_replace",
        {"path": "/memories/a.txt", "old_str": "two"},
        "!No replacement was performed, old_str `two` did not appear verbatim in /memories/a.txt.",
    ),
    ("insert", {"path": "/memories/a.txt", "insert_line": 3, "insert_text": "one\n"}, "The file /memories/a.txt has been edited."),
    (
        "str_replace",
        {"path": "/memories/a.txt", "old_str": "one", "new_str": "x"},
        "!No replacement was performed. Multiple occurrences of old_str `one` in lines: 1, 4. Please ensure it is unique",
    ),
    (
        "insert",
        {"path": "/memories/a.txt", "insert_line": 9, "insert_text": "x"},
        "!Error: Invalid `insert_line` parameter: 9. It should be within the range of lines of the file: [0, 4]",
    ),
    ("insert", {"path": "/memories/b.txt", "insert_line": 0, "insert_text": "x"}, ABSENT),
    (
        "view",
        {"path": "/memories/a.txt", "view_range": [2, -1]},
        "Here's the content of /memories/a.txt with line numbers:\n     2\t2\n     3\t3\n     4\tone",
    ),
    ("view", {"path": "/memories/b.txt"}, "!The path /memories/b.txt does not exist. Please provide a valid path."),
    (
        "rename",
        {"old_path": "/memories/a.txt", "new_path": "/memories/d/e/a.txt"},
        "Successfully renamed /memories/a.txt to /memories/d/e/a.txt",
    ),
    (
        "view",
        {"path": "/memories"},
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:\n"
        "12B\t/memories\n12B\t/memories/d\n12B\t/memories/d/e",
    ),
    ("create", {"path": "/memories/d", "file_text": ""}, "!Error: File /memories/d already exists"),
    (
        "str_replace",
        {"path": "/memories/d", "old_str": "x"},
        "!Error: The path /memories/d does not exist. Please provide a valid path.",
    ),
    ("insert", {"path": "/memories/d", "insert_line": 0, "insert_text": "x"}, "!Error: The path /memories/d does not exist"),
    ("rename", {"old_path": "/memories/b.txt", "new_path": "/memories/c.txt"}, ABSENT),
    ("rename", {"old_path": "/memories/d/e", "new_path": "/memories/d"}, "!Error: The destination /memories/d already exists"),
    ("rename", {"old_path": "/memories/d/e", "new_path": "/memories/f"}, "Successfully renamed /memories/d/e to /memories/f"),
    ("delete", {"path": "/memories/b.txt"}, ABSENT),
    ("delete", {"path": "/memories/f/"}, "Successfully deleted /memories/f/"),
    ("view", {"path": "/memories/f"}, "!The path /memories/f does not exist. Please provide a valid path."),
    ("delete", {"path": "/memories/x/.."}, "!Cannot delete the /memories directory itself"),
    ("rename", {"old_path": "/memories", "new_path": "/memories/a"}, "!Cannot rename the /memories directory itself"),
]


async def test_a_conversation_in_the_words_of_the_documentation(commands: MemoryCommands) -> None:
    """V8: each command answers as documented, in success and in error, on every backend; folders move and go as a whole."""
    for command, given, answer in CONVERSATION:
        assert await told(commands, command, **given) == answer


async def test_a_folder_is_shown_two_levels_deep(local: MemoryCommands, tmp_path: Path) -> None:
    """Sizes are summed, hidden items and node_modules left out, by name; in the SDK's words folders end in a slash."""
    for path, size in {"a/b/c/d.md": 3, "a/b.txt": 1500, ".git/x": 1, "node_modules/m.js": 1, "ab.md": 1}.items():
        (tmp_path / "memory" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "memory" / path).write_bytes(b"x" * size)
    lines = (await told(local, "view", path="/memories")).splitlines()[1:]
    assert lines == ["1.5K\t/memories", "1.5K\t/memories/a", "3B\t/memories/a/b", "1.5K\t/memories/a/b.txt", "1B\t/memories/ab.md"]
    sdk = MemoryCommands(local.folder, dialect="sdk")
    lines = (await told(sdk, "view", path="/memories/a")).splitlines()
    assert lines[0].endswith("in /memories/a, excluding hidden items:")
    assert lines[1:] == ["1.5K\t/memories/a", "3B\t/memories/a/b/", "3B\t/memories/a/b/c/", "1.5K\t/memories/a/b.txt"]
    assert "/memories/node_modules/m.js" in await told(sdk, "view", path="/memories")
    assert [human_size(size, "docs") for size in (0, 1023, 4096, 1_258_291)] == ["0B", "1023B", "4.0K", "1.2M"]
    assert human_size(4096, "sdk") == "4K"


async def test_frontmatter_makes_a_memory_file(local: MemoryCommands, tmp_path: Path) -> None:
    """F1, I1: what has frontmatter is checked as any agent's file and indexed; plain files are kept, Markdown among them listed."""
    home = memory("Home", "where the user lives").decode()
    await local.run({"command": "create", "path": "/memories/user/home.md", "file_text": home})
    await local.run({"command": "create", "path": "/memories/log.md", "file_text": "# Progress\n\nStep 1 is done.\n"})
    await local.run({"command": "create", "path": "/memories/rules.xml", "file_text": "<rules/>"})
    index = index_of(tmp_path / "memory")
    assert "- [Home](user/home.md) — where the user lives\n" in index and "- [Progress](log.md) — Step 1 is done.\n" in index
    assert "rules.xml" not in index and list(local.folder.files) == ["user/home.md", "log.md"]
    with pytest.raises(InvalidMemoryFile, match="must be one of user"):
        await local.run({"command": "create", "path": "/memories/b.md", "file_text": home.replace("type: user", "type: odd")})
    with pytest.raises(InvalidMemoryFile, match="has no type"):  # what was typed stays typed
        await local.run({"command": "str_replace", "path": "/memories/user/home.md", "old_str": "type: user\n"})
    await local.run({"command": "rename", "old_path": "/memories/user", "new_path": "/memories/people"})
    assert "(people/home.md)" in index_of(tmp_path / "memory") and (await local.folder.search("lives"))[0].path == "people/home.md"
    assert {entry["author"] for entry in log_of(tmp_path / "memory") if "author" in entry} == {"agent:"}


async def test_parallel_replacements_are_all_kept(commands: MemoryCommands) -> None:
    """E1: 40 of 40 replacements at once are in the file, and 5 insertions at one place."""
    await commands.run({"command": "create", "path": "/memories/n.txt", "file_text": "".join(f"old {n};\n" for n in range(40))})
    work = [
        commands.run({"command": "str_replace", "path": "/memories/n.txt", "old_str": f"old {n};", "new_str": f"new {n};"})
        for n in range(40)
    ]
    await asyncio.gather(*work)
    text = await commands.folder.read("n.txt")
    assert text == b"".join(b"new %d;\n" % n for n in range(40))
    insert = {"command": "insert", "path": "/memories/n.txt", "insert_line": 0}
    await asyncio.gather(*(commands.run({**insert, "insert_text": f"top {n}"}) for n in range(5)))
    assert sorted((await commands.folder.read("n.txt")).splitlines()[:5]) == [b"top %d" % n for n in range(5)]


async def test_the_policy_rules_here_too(tmp_path: Path) -> None:
    """What a policy denies is denied through this tool, the deletion of a link included."""
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory/link.md").symlink_to("gone")
    async with open_memory(tmp_path / "memory", policy=read_only) as opened:
        commands = MemoryCommands(opened.folder)
        for given in (
            {"command": "create", "path": "/memories/a", "file_text": ""},
            {"command": "delete", "path": "/memories/link.md"},
        ):
            with pytest.raises(PermissionDenied):
                await commands.run(given)
    assert (tmp_path / "memory/link.md").is_symlink()


async def test_the_index_and_the_journal_have_their_own_rules(local: MemoryCommands) -> None:
    """I1: MEMORY.md can be viewed and stays where it is, and conversations are written by conversations only."""
    home = memory("Home").decode()
    await local.run({"command": "create", "path": "/memories/home.md", "file_text": home})
    assert "(home.md)" in await local.run({"command": "view", "path": "/memories/MEMORY.md"})
    for given in (
        {"command": "delete", "path": "/memories/MEMORY.md"},
        {"command": "rename", "old_path": "/memories/MEMORY.md", "new_path": "/memories/x.md"},
        {"command": "create", "path": "/memories/journal/2026/01/s.md", "file_text": "x"},
    ):
        with pytest.raises(InvalidPath):
            await local.run(given)


async def test_line_ends_and_long_files(local: MemoryCommands, tmp_path: Path) -> None:
    """F8: CRLF stays, also in what is inserted; a view of a long file says how to go on."""
    (tmp_path / "memory/w.md").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n")
    assert await told(local, "view", path="/memories/w.md", view_range=[1, 2]) == (
        "Here's the content of /memories/w.md with line numbers:\n     1\tone\n     2\ttwo"
    )
    await told(local, "str_replace", path="/memories/w.md", old_str="one\ntwo", new_str="1\n2")
    await told(local, "insert", path="/memories/w.md", insert_line=2, insert_text="2.5\n")
    assert (tmp_path / "memory/w.md").read_bytes() == b"\xef\xbb\xbf1\r\n2\r\n2.5\r\nthree\r\n"
    (tmp_path / "memory/long.txt").write_text("x" * 99 + "\n" + "y\n" * 50_000)
    shown = await told(local, "view", path="/memories/long.txt")
    assert len(shown) < 61_000 and shown.endswith("view it with view_range [6656, -1].)")


async def test_several_folders_as_one(tmp_path: Path) -> None:
    """M1: in a memory with mounts the tool sees all of them below /memories, and each mount's rights hold."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/travel.md").write_text("# Travel\n")
    (tmp_path / "docs/link.md").symlink_to("travel.md")
    mounts = {"team/": Mount(tmp_path / "team"), "docs/": Mount(tmp_path / "docs", access="read")}
    async with open_memory(tmp_path / "home", mounts=mounts) as opened:
        commands = MemoryCommands(opened.folder)
        await told(commands, "create", path="/memories/team/plan.txt", file_text="step 1")
        await told(commands, "create", path="/memories/own.txt", file_text="mine")
        shown = await told(commands, "view", path="/memories")
        assert [line.split("\t")[1] for line in shown.splitlines()[1:]] == [
            *("/memories", "/memories/docs", "/memories/docs/link.md", "/memories/docs/travel.md"),
            *("/memories/own.txt", "/memories/team", "/memories/team/plan.txt"),
        ]
        await told(commands, "str_replace", path="/memories/team/plan.txt", old_str="1", new_str="2")
        for path in ("/memories/docs/travel.md", "/memories/docs/link.md", "/memories/docs"):
            assert "can only be read here" in await told(commands, "delete", path=path)
        assert await told(commands, "delete", path="/memories/team") == "Successfully deleted /memories/team"
    assert visible(tmp_path / "docs") == {"travel.md": b"# Travel\n"} and visible(tmp_path / "team") == {}
    assert visible(tmp_path / "home") == {"own.txt": b"mine"}
