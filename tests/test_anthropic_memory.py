"""The Anthropic memory tool through the real SDK: over a real wire, from threads, and without the faults of the SDK's own tool."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from anthropic import Anthropic, AsyncAnthropic
from anthropic.lib.tools import ToolError
from anthropic_server import AnthropicServer
from anthropic_suite import run
from children import end, start
from folders import everything, memory, visible
from openai_server import Answer

from mdmemory import open_memory
from mdmemory.adapters.anthropic_memory import AsyncMemoryTool, MemoryTool, open_memory_tool

ASK: Any = {"model": "claude-x", "max_tokens": 100, "messages": [{"role": "user", "content": "Remember: I like tea."}]}
BETA = "context-management-2025-06-27"


def call(**given: Any) -> Answer:
    """An answer of the model that calls the tool."""
    return Answer(calls=[("memory", given)])


SCRIPT = [
    call(command="create", path="/memories/tea.md", file_text=memory("Tea", "likes tea").decode()),
    call(command="view", path="/memories/coffee.md"),
    "Noted.",
]


def results(server: AnthropicServer) -> list[tuple[str, bool]]:
    """The text of each tool result that the server was sent, and whether it was an error."""
    blocks = [message["content"][0] for request in server.requests for message in request.json["messages"][-1:]]
    told = [(block["content"], block.get("is_error", False)) for block in blocks if isinstance(block, dict)]
    return [(content if isinstance(content, str) else content[0]["text"], is_error) for content, is_error in told]


TOLD = [
    ("File created successfully at: /memories/tea.md", False),
    ("The path /memories/coffee.md does not exist. Please provide a valid path.", True),
]


@pytest.fixture
async def tool(folder: Path) -> AsyncIterator[AsyncMemoryTool]:
    """The tool on a memory of this disk whose folder is there."""
    folder.mkdir()
    async with open_memory(folder) as opened:
        yield AsyncMemoryTool(opened)


@pytest.fixture
def sync_tool(folder: Path) -> Iterator[MemoryTool]:
    """The same for a client that doesn't await."""
    with open_memory_tool(folder) as tool:
        yield tool


async def test_the_tool_runner_of_a_client_that_awaits(tool: AsyncMemoryTool, folder: Path) -> None:
    """V8: declared by its type, the tool is called over a real wire; results and errors go back, and the file is indexed."""
    with AnthropicServer(SCRIPT) as server:
        async with AsyncAnthropic(base_url=server.base_url, api_key="none") as client:
            last = await client.beta.messages.tool_runner(**ASK, betas=[BETA], tools=[tool]).until_done()
    assert server.requests[0].json["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert last.content[0].text == "Noted." and results(server) == TOLD
    assert visible(folder)["MEMORY.md"] == "- [Tea](tea.md) — likes tea\n".encode()


def test_the_tool_runner_of_a_client_that_does_not_await(sync_tool: MemoryTool, folder: Path) -> None:
    """V8: the same with the plain client; the memory lives on a loop of its own."""
    with AnthropicServer(SCRIPT) as server, Anthropic(base_url=server.base_url, api_key="none") as client:
        last = client.beta.messages.tool_runner(**ASK, betas=[BETA], tools=[sync_tool]).until_done()
    assert last is not None and results(server) == TOLD and set(visible(folder)) == {"MEMORY.md", "tea.md"}


def test_forty_threads_and_a_second_process(sync_tool: MemoryTool, folder: Path) -> None:
    """E1: 40 of 40 replacements from threads are kept, while another process makes 10 of its own (the SDK's tool kept 5)."""
    lines = [f"old {n};" for n in range(50)]
    sync_tool.call({"command": "create", "path": "/memories/n.txt", "file_text": "\n".join(lines)})

    def replace(tool: MemoryTool, n: int) -> str:
        given = {"command": "str_replace", "path": "/memories/n.txt", "old_str": f"old {n};", "new_str": f"new {n};"}
        return tool.call(given)

    def ten() -> None:
        with open_memory_tool(folder) as tool:
            for n in range(40, 50):
                replace(tool, n)

    other = start(ten)
    with ThreadPoolExecutor(40) as threads:
        list(threads.map(lambda n: replace(sync_tool, n), range(40)))
    assert end(other) == 0
    assert visible(folder)["n.txt"].decode().split("\n") == [f"new {n};" for n in range(50)]


async def refused(tool: AsyncMemoryTool, folder: Path, **given: Any) -> str:
    """The text of the error; nothing may have changed, and no path of the host may show."""
    before = everything(folder)
    with pytest.raises(ToolError) as caught:
        await tool.call(given)
    assert everything(folder) == before and str(folder) not in str(caught.value)
    str(caught.value).encode()
    return str(caught.value)


@pytest.mark.parametrize(
    "path", ["/memoriesXYZ/a.md", "memories/a.md", "/etc/passwd", "", "/memories/../memories/a", "/memories/a/../../b"]
)
async def test_only_memories_is_the_root(tool: AsyncMemoryTool, folder: Path, path: str) -> None:
    """V8: not taken over: `/memoriesXYZ/a.md` was accepted."""
    text = await refused(tool, folder, command="create", path=path, file_text="x")
    assert "Path must start with /memories" in text or "would escape /memories" in text


async def test_new_str_may_be_left_out(tool: AsyncMemoryTool, folder: Path) -> None:
    """V8: not taken over: an omitted `new_str` raised TypeError. It deletes the text."""
    await tool.call({"command": "create", "path": "/memories/a.txt", "file_text": "one two"})
    await tool.call({"command": "str_replace", "path": "/memories/a.txt", "old_str": " two"})
    assert visible(folder)["a.txt"] == b"one"


@pytest.mark.parametrize("data", ["né".encode("latin-1"), "n".encode("utf-16"), b"a\0b"], ids=["latin-1", "utf-16", "nul"])
async def test_other_encodings(tool: AsyncMemoryTool, folder: Path, data: bytes) -> None:
    """F3: not taken over: Latin-1 or UTF-16 raised UnicodeDecodeError. The file is left as it is, and the answer says so."""
    (folder / "a.txt").write_bytes(data)
    for more in (
        {"command": "view"},
        {"command": "str_replace", "old_str": "n"},
        {"command": "insert", "insert_line": 0, "insert_text": "x"},
    ):
        assert "left as it is" in await refused(tool, folder, path="/memories/a.txt", **more)


@pytest.mark.parametrize("text", ["half \ud800 of one", "nul \0"], ids=["surrogate", "nul"])
async def test_what_is_no_text(tool: AsyncMemoryTool, folder: Path, text: str) -> None:
    """F3: not taken over: a lone surrogate in create left an empty file."""
    for command in ({"command": "create", "file_text": text}, {"command": "insert", "insert_line": 0, "insert_text": text}):
        await refused(tool, folder, path="/memories/new.txt", **command)
    await refused(tool, folder, command="create", path=f"/memories/{text}.txt", file_text="x")
    await refused(tool, folder, command="str_replace", path="/memories/new.txt", old_str=text)


@pytest.mark.parametrize(
    "path", ["/memories/a\0b", f"/memories/{'x' * 300}", "/memories/a.txt/b", "/memories/.git/config", "/memories/a\nb"]
)
async def test_names_that_can_not_be(tool: AsyncMemoryTool, folder: Path, path: str) -> None:
    """N1: not taken over: NUL, a 300-character name and a file used as a folder raised raw exceptions, some with host paths."""
    await tool.call({"command": "create", "path": "/memories/a.txt", "file_text": "x"})
    for given in ({"command": "create", "file_text": "x"}, {"command": "view"}, {"command": "delete"}):
        await refused(tool, folder, path=path, **given)
    await refused(tool, folder, command="rename", old_path="/memories/a.txt", new_path=path)


async def test_a_folder_renamed_into_itself(tool: AsyncMemoryTool, folder: Path) -> None:
    """N2: not taken over: renaming a directory into itself left stray directories."""
    await tool.call({"command": "create", "path": "/memories/d/a.txt", "file_text": "x"})
    assert "into itself" in await refused(tool, folder, command="rename", old_path="/memories/d", new_path="/memories/d/e/f")
    assert [path.name for path in folder.iterdir() if not path.name.startswith(".")] == ["d"]


async def test_links_are_deleted_and_not_followed(tool: AsyncMemoryTool, folder: Path, tmp_path: Path) -> None:
    """N3: not taken over: deleting a link in the folder deleted its target, and a dangling link could not be deleted."""
    (tmp_path / "outside.txt").write_text("secret")
    (folder / "a.txt").write_text("kept")
    (folder / "d").mkdir()
    for name, target in {"in": "a.txt", "out": "../outside.txt", "gone": "nothing", "d/up": "../a.txt", "d/far": "/etc"}.items():
        (folder / name).symlink_to(target)
    listing = await tool.call({"command": "view", "path": "/memories"})
    assert [line.split("\t/memories")[1] for line in listing.splitlines()[1:]] == ["", "/a.txt", "/d", "/d/up", "/gone", "/in"]
    for given in ({"command": "view"}, {"command": "str_replace", "old_str": "secret"}, {"command": "create", "file_text": "x"}):
        assert "symlink" in await refused(tool, folder, path="/memories/out", **given)
    for path in ("in", "out", "gone", "d"):
        await tool.call({"command": "delete", "path": f"/memories/{path}"})
    assert visible(folder) == {"a.txt": b"kept"} and (tmp_path / "outside.txt").read_text() == "secret"
    assert not [path for path in folder.rglob("*") if path.is_symlink()]


async def test_names_that_look_alike(tool: AsyncMemoryTool, folder: Path) -> None:
    """N1: not taken over: NFC and NFD names coexisted."""
    await tool.call({"command": "create", "path": "/memories/caf\u00e9.txt", "file_text": "x"})
    text = await refused(tool, folder, command="create", path="/memories/cafe\u0301.txt", file_text="y")
    assert "would be taken for caf\u00e9.txt" in text
    await tool.call({"command": "create", "path": "/memories/b.txt", "file_text": "x"})
    await refused(tool, folder, command="rename", old_path="/memories/b.txt", new_path="/memories/CAF\u00c9.txt")


@pytest.mark.parametrize(
    "given",
    [{"command": "view"}, {}, None, "view", {"command": "dance"}, {"command": ["view"]}, {"command": "view", "path": 7},
     {"command": "view", "path": "/memories", "depth": 3}, {"command": "view", "path": "/memories/a", "view_range": ["1", 2]},
     {"command": "create", "path": "/memories/a.md"}, {"command": "str_replace", "path": "/memories/a.md", "old_str": ""}],
)  # fmt: skip
async def test_arguments_that_are_none(tool: AsyncMemoryTool, given: Any) -> None:
    """V8: not taken over: a missing `path` raised AttributeError. The answer says what the command takes."""
    with pytest.raises(ToolError, match=r"^memory"):
        await tool.call(given)


def test_the_memory_is_closed_with_the_tool(folder: Path) -> None:
    """An error in the block goes on, the loop's thread ends, and what was written is there."""
    import threading

    with pytest.raises(ZeroDivisionError), open_memory_tool(folder) as tool:
        tool.call({"command": "create", "path": "/memories/a.txt", "file_text": "x"})
        raise ZeroDivisionError
    assert not [thread for thread in threading.enumerate() if thread.name == "mdmemory bridge"]
    assert visible(folder) == {"a.txt": b"x"}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_sdks_own_tests() -> None:
    """V8: the SDK's 99 tests of its memory tool pass on ours; that they can't be fetched is a failure."""
    done = run()
    sys.stdout.write(done.stdout)
    assert done.returncode == 0 and "99 passed" in done.stdout
