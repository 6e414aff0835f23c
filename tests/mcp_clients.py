"""The official MCP client on the real server: a process of its own, over stdin and stdout or over HTTP."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx2
from command import COMMAND, environment
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, Implementation

MODES = ("auto", "legacy")
"""The protocol from 2026 on, which has no sessions over HTTP, and that up to 2025."""


@contextmanager
def serving(folder: Path, *options: str, **env: str) -> Iterator[str]:
    """The URL of a server over HTTP, on a free port."""
    command = [*COMMAND, "mcp", str(folder), "--http", "0", *options]
    process = subprocess.Popen(command, env=environment(**env), stderr=subprocess.PIPE, encoding="utf-8", cwd=folder.parent)
    try:
        assert process.stderr is not None
        found = re.search(r"http://\S+/mcp", process.stderr.readline())
        assert found
        yield found[0]
    finally:
        process.terminate()
        assert "Traceback" not in process.communicate(timeout=10)[1]


@asynccontextmanager
async def over_http(url: str, mode: str = "auto", *, token: str = "", **options: Any) -> AsyncIterator[Client]:
    """A client of a server over HTTP."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http:
        info = Implementation(name="test http", version="1")
        async with Client(streamable_http_client(url, http_client=http), mode=mode, client_info=info, **options) as client:
            yield client


@asynccontextmanager
async def over_stdio(folder: Path, mode: str = "auto", *arguments: str, **options: Any) -> AsyncIterator[Client]:
    """A client of a server that it starts itself."""
    started = StdioServerParameters(
        command=sys.executable, args=[*COMMAND[1:], "mcp", str(folder), *arguments], env=environment(), cwd=folder.parent
    )
    async with Client(started, mode=mode, client_info=Implementation(name="test stdio", version="1"), **options) as client:
        yield client


@asynccontextmanager
async def connected(transport: str, folder: Path, mode: str, **options: Any) -> AsyncIterator[Client]:
    """A client over `http` or `stdio`."""
    if transport == "stdio":
        async with over_stdio(folder, mode, **options) as client:
            yield client
    else:
        with serving(folder) as url:
            async with over_http(url, mode, **options) as client:
                yield client


def text_of(result: CallToolResult) -> str:
    """The text of a tool's result."""
    return "\n".join(block.text for block in result.content if block.type == "text")


async def called(client: Client, name: str, **arguments: Any) -> str:
    """The text of a call that must succeed."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, text_of(result)
    return text_of(result)


async def refused(client: Client, name: str, **arguments: Any) -> str:
    """The text of a call that must not."""
    result = await client.call_tool(name, arguments)
    assert result.is_error, text_of(result)
    return text_of(result)
