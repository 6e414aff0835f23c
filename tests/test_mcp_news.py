"""What changes in the folder is told to MCP clients: in both generations of the protocol, and over both transports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import note, write
from counting import CountingBackend
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp_clients import called, connected, over_http, serving

from mdmemory.backends.local import LocalBackend
from mdmemory.folder.any_folder import WATCHED_S
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.mcp_server.news import News

HOME = "mdmemory:///user/home.md"
INDEX = "mdmemory:///MEMORY.md"
LIST = "notifications/resources/list_changed"
BOTH = pytest.mark.parametrize("transport", ["stdio", "http"])


class Heard:
    """The notifications that a client got: the URI of each changed resource, or the name of what else was said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    async def __call__(self, message: Any) -> None:
        """Take note of one."""
        self.said.append(str(getattr(message.params, "uri", None) or message.method))


async def until(condition: Callable[[], object], wait_s: float = 20.0) -> None:
    """Wait for something to become true."""
    async with asyncio.timeout(wait_s):
        while not condition():
            await asyncio.sleep(0.02)


@BOTH
@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_who_subscribed_hears_of_a_person_s_edit(transport: str, folder: Path) -> None:
    """V8, W1: in the protocol up to 2025 an edit of a file is told to who subscribed to it, and a new file to all."""
    write(folder / "user/home.md", note("Home", "where the user lives"))
    write(folder / "other.md", note("Other", "something else"))
    heard = Heard()
    async with connected(transport, folder, "legacy", message_handler=heard) as client:
        assert client.server_capabilities.resources and client.server_capabilities.resources.list_changed
        await client.subscribe_resource(HOME)
        write(folder / "other.md", note("Other", "something else", "Changed."))
        write(folder / "user/home.md", note("Home", "where the user lives", "Lives in Suzhou."))
        await until(lambda: HOME in heard.said)
        assert set(heard.said) == {HOME}
        write(folder / "new.md", note("New", "a new file"))
        await until(lambda: LIST in heard.said)
        await client.unsubscribe_resource(HOME)
        await client.subscribe_resource(INDEX)
        heard.said.clear()
        write(folder / "MEMORY.md", "# Memory\n\nMy own words.\n")
        await until(lambda: INDEX in heard.said)
        await called(client, "Edit", file_path="user/home.md", old_string="Suzhou", new_string="Kunming")
        assert HOME not in heard.said


@BOTH
async def test_who_listens_hears_of_it(transport: str, folder: Path) -> None:
    """V8, W1: in the protocol from 2026 on, who listens hears of the files that they named, and of a new one."""
    write(folder / "user/home.md", note("Home", "where the user lives"))
    async with connected(transport, folder, "auto") as client:
        assert client.protocol_version >= "2026"
        async with client.listen(resources_list_changed=True, resource_subscriptions=[HOME]) as changes, asyncio.timeout(20):
            write(folder / "user/home.md", note("Home", "where the user lives", "Lives in Suzhou."))
            assert await anext(aiter(changes)) == ResourceUpdated(uri=HOME)
            write(folder / "new.md", note("New", "a new file"))
            assert await anext(aiter(changes)) == ResourcesListChanged()


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
async def test_one_client_hears_what_another_does(folder: Path) -> None:
    """W1: what one client saves is told to another of the same server at once; who has gone holds up nobody."""
    write(folder / "user/home.md", note("Home", "where the user lives"))
    heard = Heard()
    with serving(folder) as url:
        async with over_http(url, "legacy") as gone:
            await gone.subscribe_resource(HOME)
        async with over_http(url, "legacy", message_handler=heard) as one, over_http(url) as other:
            await one.subscribe_resource(HOME)
            await called(other, "Edit", file_path="user/home.md", old_string="\nHome\n", new_string="\nMoved.\n")
            await until(lambda: HOME in heard.said, 5)
            await called(other, "Delete", file_path="user/home.md")
            await until(lambda: LIST in heard.said, 5)


async def test_while_nobody_listens_the_folder_is_left_alone(folder: Path) -> None:
    """V8, W1: a server with many memories open looks at those to which somebody listens, and at no others."""
    write(folder / "user/home.md", note("Home", "where the user lives"))
    counted = CountingBackend(LocalBackend(folder))
    news = News(MemoryFolder(counted))
    async with news.told():
        await asyncio.sleep(3 * WATCHED_S)
        assert counted.calls.count("scan") == 1
        unsubscribe = news.bus.subscribe(lambda event: None)
        await until(lambda: counted.calls.count("scan") > 1, 5)
        unsubscribe()
        unsubscribe()
        await asyncio.sleep(WATCHED_S)
        scans = counted.calls.count("scan")
        await asyncio.sleep(3 * WATCHED_S)
        assert counted.calls.count("scan") == scans
