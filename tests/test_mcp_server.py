"""The MCP server, asked by the official client over both transports and both generations of the protocol."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command import COMMAND, environment, note, write
from folders import log_of, visible
from mcp import Client
from mcp.client.subscriptions import ResourceUpdated
from mcp.shared.exceptions import MCPError
from mcp_clients import MODES, called, connected, over_http, over_stdio, refused, serving, text_of
from mcp_types import TextResourceContents

from mdmemory import open_memory
from mdmemory.backends.memory import MemoryBackend
from mdmemory.backends.protocol import HEAD_BYTES, Scan, Version
from mdmemory.errors import Unavailable
from mdmemory.files.memory_file import parse
from mdmemory.mcp_server.server import mcp_server

TEA = note("Tea", "what the user drinks; hot drinks", "Drinks green tea, no sugar.")
INDEX = "- [Home](user/home.md) — where the user lives\n- [Plain](döc.md) — A plain file.\n"
READ = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
CHANGE = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True, "openWorldHint": False}
BOTH = pytest.mark.parametrize("mode", MODES)


@BOTH
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_conversation(transport: str, mode: str, folder: Path) -> None:
    """V8: a client lists and calls the tools; what it writes is indexed, found, quoted, and in the history under its name."""
    write(folder / "user/home.md", note("Home", "where the user lives", "Lives in Hangzhou."))
    async with connected(transport, folder, mode) as client:
        assert "- [Home](user/home.md) — where the user lives" in (client.instructions or "")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        hints = {
            name: tool.annotations.model_dump(by_alias=True, exclude_none=True) for name, tool in tools.items() if tool.annotations
        }
        assert hints == {
            **dict.fromkeys(("Read", "Search", "recall"), READ),
            **dict.fromkeys(("Write", "Delete"), CHANGE),
            "Edit": {**CHANGE, "idempotentHint": False},
            "Add": {**CHANGE, "destructiveHint": False},
        }
        assert "Created user/tea.md." in await called(client, "Write", file_path="user/tea.md", content=TEA)
        assert "     7\tDrinks green tea" in await called(client, "Read", file_path="user/tea.md")
        await called(client, "Edit", file_path="user/tea.md", old_string="no sugar", new_string="with honey")
        found = await client.call_tool("Search", {"keywords": ["hot drinks"]})
        assert found.structured_content["files"][0]["path"] == "user/tea.md" and "user/tea.md" in text_of(found)
        recalled = await client.call_tool("recall", {"query": "green tea"})
        assert [(quote["path"], quote["line"], quote["text"]) for quote in recalled.structured_content["passages"]] == [
            ("user/tea.md", 7, "Drinks green tea, with honey.")
        ]
        assert "user/tea.md, line 7: Tea, 20" in text_of(recalled) and "\n> Drinks green tea, with honey." in text_of(recalled)
        await called(client, "Add", thinking="a trip", content="Flies to Kunming in May.")
        await called(client, "Delete", file_path="user/home.md")
    assert set(visible(folder)) == {"MEMORY.md", "user/tea.md", "project/flies-to-kunming-in-may.md"}
    authors = {entry["author"] for entry in log_of(folder) if "author" in entry}
    assert authors - {"outside"} == {f"agent:test-{transport}"}


@BOTH
async def test_resources_and_prompts(mode: str, folder: Path) -> None:
    """V8: memory files and the index are resources with their times and sizes, and three prompts are filled in."""
    write(folder / "user/home.md", note("Home", "where the user lives", "Lives in Hangzhou."))
    write(folder / "döc.md", "# Plain\n\nA plain file.\n")
    async with over_stdio(folder, mode) as client:
        listed = (await client.list_resources()).resources
        assert [(item.uri, item.title) for item in listed] == [
            ("mdmemory:///MEMORY.md", None),
            ("mdmemory:///d%C3%B6c.md", "Plain"),
            ("mdmemory:///user/home.md", "Home"),
        ]
        assert listed[2].size == (folder / "user/home.md").stat().st_size and listed[2].annotations
        assert (await client.list_resource_templates()).resource_templates[0].uri_template == "mdmemory:///{+path}"
        read = {item.uri: (await client.read_resource(item.uri)).contents[0] for item in listed}
        texts = {uri: content.text for uri, content in read.items() if isinstance(content, TextResourceContents)}
        assert texts["mdmemory:///MEMORY.md"] == INDEX
        assert texts["mdmemory:///d%C3%B6c.md"] == "# Plain\n\nA plain file.\n"
        prompts = (await client.list_prompts()).prompts
        assert [(prompt.name, len(prompt.arguments or [])) for prompt in prompts] == [("recall", 1), ("remember", 1), ("review", 0)]
        asked = {"recall": {"query": "Hangzhou"}, "remember": {"what": "I moved.\n> twice"}, "review": {}}
        said = {name: str((await client.get_prompt(name, given)).messages[0].content) for name, given in asked.items()}
    assert "> Lives in Hangzhou." in said["recall"] and r"\n> I moved.\n> > twice" in said["remember"]
    assert "> - [Home](user/home.md)" in said["review"] and "no line for this file" in said["review"]


async def test_more_resources_than_a_page(folder: Path) -> None:
    """Of 1,101 files each is on one of three pages."""
    for number in range(1_101):
        write(folder / f"{number:04}.md", f"# Note {number}\n")
    async with open_memory(folder) as memory, Client(mcp_server(memory)) as client:
        uris, cursor = [], None
        while (page := await client.list_resources(cursor=cursor)).resources:
            uris += [item.uri for item in page.resources]
            if (cursor := page.next_cursor) is None:
                break
    assert uris == ["mdmemory:///MEMORY.md", *(f"mdmemory:///{number:04}.md" for number in range(1_101))]


async def test_replacing_a_file_without_a_session(folder: Path) -> None:
    """E2: over HTTP without sessions a file is replaced only by who gives the etag of what is there; else it is shown."""
    write(folder / "a.md", note("A", "one", "Old."))
    new, newer = note("A", "one", "New."), note("A", "one", "Newer.")
    with serving(folder) as url:
        async with over_http(url) as client:
            assert "there with other content" in await refused(client, "Write", file_path="a.md", content=new)
            etag = (await called(client, "Read", file_path="./a.md")).rpartition("(etag ")[2].rstrip(")")
            await called(client, "Write", file_path="a.md", content=new, etag=etag)
            assert "New." in await refused(client, "Write", file_path="a.md", content=newer, etag=etag)
            assert "other content" in await refused(client, "Write", file_path="a.md", content=newer, etag="")
        async with over_http(url, "legacy") as client, over_http(url, "legacy") as other:
            assert "(etag" not in await called(client, "Read", file_path="a.md")
            assert "other content" in await refused(other, "Write", file_path="a.md", content=newer)  # it has not read it
            await called(client, "Write", file_path="a.md", content=newer)
    assert "Newer." in (folder / "a.md").read_text()


async def test_two_clients_at_once(folder: Path) -> None:
    """E1, E3: two clients of one server and one of another edit one file and add others at the same time; nothing is lost."""
    write(folder / "n.md", note("N", "numbers", "".join(f"old {n};\n\n" for n in range(18))))

    async def work(client: Client, numbers: range) -> None:
        for n in numbers:
            await called(client, "Edit", file_path="n.md", old_string=f"old {n};", new_string=f"new {n};")
            await called(client, "Add", thinking="", content=f"Number {n} is done.")

    with serving(folder) as url:
        async with over_http(url) as one, over_http(url, "legacy") as two, over_stdio(folder) as three:
            await asyncio.gather(work(one, range(6)), work(two, range(6, 12)), work(three, range(12, 18)))
    files = visible(folder)
    assert [n for n in range(18) if f"new {n};" not in files["n.md"].decode()] == []
    assert len(files) == 20 and files["MEMORY.md"].decode().count("\n") == 19


@pytest.mark.slow
def test_killed_in_the_middle_of_a_write(folder: Path) -> None:
    """E5: the server is killed by force while it saves; each file is whole or not there, and the index agrees with them."""
    dice = random.Random(7)
    for attempt in range(5):
        process = subprocess.Popen(
            [*COMMAND, "mcp", str(folder)], env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder.parent
        )
        assert process.stdin and process.stdout
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        send(process, {"id": 0, "method": "initialize", "params": hello})
        process.stdout.readline()
        send(process, {"method": "notifications/initialized"})
        for n in range(30):
            content = note(f"Note {attempt}-{n}", "one of many", "word " * 4_000)
            call = {"name": "Write", "arguments": {"file_path": f"{attempt}/{n}.md", "content": content}}
            send(process, {"id": n + 1, "method": "tools/call", "params": call})
        process.stdout.readline()  # one is saved
        time.sleep(dice.uniform(0, 0.05))
        process.kill()
        process.communicate()
    assert asyncio.run(whole(folder)) >= 5


def send(process: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    """Write a message of JSON-RPC to the server."""
    assert process.stdin
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    process.stdin.flush()


async def whole(folder: Path) -> int:
    """How many files there are, all of them whole and each with its line in the index."""
    async with open_memory(folder) as memory:
        await memory.folder.refresh()
        paths = list(memory.folder.files)
        index = await memory.folder.index_file() or ""
    for path in paths:
        assert parse(path, (folder / path).read_bytes()).body.count("word") == 4_000
    assert sorted(line.partition("](")[2].partition(")")[0] for line in index.splitlines()) == sorted(paths)
    return len(paths)


HOSTILE: list[tuple[str, Any]] = [
    ("Read", {"file_path": "../../etc/passwd"}),
    ("Read", {"file_path": "/etc/passwd"}),
    ("Read", {"file_path": "a\0b.md"}),
    ("Read", {}),
    ("Read", {"file_path": ["a"]}),
    ("Read", {"file_path": "x" * 100_000}),
    ("Read", {"file_path": ".mdmemory/log.jsonl"}),
    ("Write", {"file_path": "a.md", "content": "\ud800"}),
    ("Write", {"file_path": "a.md", "content": "no frontmatter"}),
    ("Write", {"file_path": "a.md", "content": "x", "etag": {"a": 1}}),
    ("Write", {"file_path": "journal/2026/01/x.md", "content": TEA}),
    ("Write", {"file_path": "home.md", "content": TEA, "etag": ""}),
    ("Edit", {"file_path": "home.md", "old_string": "", "new_string": "x"}),
    ("Delete", {"file_path": "MEMORY.md"}),
    ("Search", {"keywords": [["a"]]}),
    ("Search", {"keywords": ["a"], "filters": {"nonsense": 1}}),
    ("Search", {"keywords": ["a"], "limit": -1}),
    ("recall", {"query": "x", "filters": {"where": {"and": {"or": 7}}}}),
    ("recall", {"query": 7}),
    ("recall", {"query": "lives", "max_tokens": 1}),
    ("Add", {"thinking": "", "content": " "}),
]


@BOTH
async def test_hostile_arguments(mode: str, folder: Path) -> None:
    """V8: whatever is called, the answer is an error that shows no host path, nothing changes, and the server goes on."""
    write(folder / "home.md", note("Home", "where the user lives"))
    before = visible(folder)
    async with open_memory(folder) as memory, Client(mcp_server(memory), mode=mode) as client:
        for name, arguments in HOSTILE:
            assert str(folder.parent) not in await refused(client, name, **arguments), (name, arguments)
        for method, given in [
            (client.call_tool, "rm"),
            (client.get_prompt, "nothing"),
            (client.get_prompt, "recall"),
            (client.read_resource, "file:///etc/passwd"),
            (client.read_resource, "mdmemory:///../x.md"),
            (client.read_resource, "mdmemory:///.mdmemory/log.jsonl"),
            (client.read_resource, "mdmemory:///journal/x.md"),
            (client.read_resource, "mdmemory:///no.md"),
        ]:
            with pytest.raises(MCPError) as caught:
                await method(given)
            assert str(folder.parent) not in str(caught.value)
        assert (
            await called(client, "recall", query="zebra") == "No memory has these words. Try others, or Read . for the list of all."
        )
        await called(client, "Read", file_path="home.md")
    assert visible(folder) == before


async def test_a_memory_that_is_only_read(folder: Path) -> None:
    """With --read-only the tools that write are not offered, and calling one all the same is refused."""
    write(folder / "home.md", note("Home", "where the user lives"))
    async with over_stdio(folder, "auto", "--read-only") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["Read", "Search", "recall"]
        assert "not allowed" in await refused(client, "Delete", file_path="home.md")
        assert "not change it" in (client.instructions or "")
    assert list(visible(folder)) == ["home.md"]


async def test_several_folders_as_one(folder: Path) -> None:
    """M1: with a file of settings the server serves mounts too, each under its prefix, and tells what changes in them."""
    write(folder.parent / "team/plan.md", note("Plan", "what the team does next", "Ship it.", kind="project"))
    write(folder.parent / "mdmemory.yaml", "location: memory\nmounts:\n  team/:\n    location: team\n    access: read\n")
    async with over_stdio(folder, "auto", "--config", "mdmemory.yaml") as client:
        assert "(team/plan.md)" in (client.instructions or "") and "`team/`: read only" in (client.instructions or "")
        assert "Ship it." in await called(client, "recall", query="next for the team")
        assert "can only be read here" in await refused(client, "Delete", file_path="team/plan.md")
        uri = "mdmemory:///team/plan.md"
        assert uri in [item.uri for item in (await client.list_resources()).resources]
        async with client.listen(resource_subscriptions=[uri]) as changes, asyncio.timeout(20):
            write(folder.parent / "team/plan.md", note("Plan", "what the team does next", "Wait.", kind="project"))
            assert (await anext(aiter(changes))) == ResourceUpdated(uri=uri)


class Failing(MemoryBackend):
    """A backend whose scans fail from some moment on."""

    error: Exception | None = None

    async def scan(self, known: Mapping[str, Version] = {}, *, head_bytes: int = HEAD_BYTES) -> Scan:
        """Look, or fail."""
        if self.error:
            raise self.error
        return await super().scan(known, head_bytes=head_bytes)


@pytest.mark.parametrize("error", [Unavailable("the disk is away"), OSError(5, "bad", "/srv/secret/place")], ids=["ours", "other"])
async def test_failures_tell_nothing_of_the_host(error: Exception) -> None:
    """A memory that can't be looked at is said to the client in our words, and an error of the system without its text."""
    backend = Failing()
    async with open_memory(backend) as memory, Client(mcp_server(memory), mode="legacy") as client:
        backend.error = error
        with pytest.raises(MCPError, match=r"disk is away|its log says why") as caught:
            await client.list_resources()
    assert "/srv" not in str(caught.value)
