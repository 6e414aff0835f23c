"""What the list of a large folder costs: no file is read for it, and few rows are sent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from command import note, write
from counting import CountingBackend

from mdmemory.backends.local import LocalBackend
from mdmemory.files.changes import Create
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.memory import Memory, open_memory
from mdmemory.web.app import web_app
from mdmemory.web.site import Site

FILES = 300


@pytest.fixture
async def counted(tmp_path: Path) -> AsyncIterator[tuple[CountingBackend, httpx2.AsyncClient]]:
    """What counts the calls of a folder, and a client of its pages."""
    for number in range(FILES):
        write(
            tmp_path / f"memory/topic-{number % 7}/note-{number}.md", note(f"Note {number}", f"about {number}", "some words " * 20)
        )
    backend = CountingBackend(LocalBackend(tmp_path / "memory"))
    memory = Memory(MemoryFolder(backend))
    await memory.folder.apply([Create("first.md", note("First", "the first").encode())], "person", "begin")
    app = web_app(Site(memory, "token"))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://127.0.0.1") as client:
        for _ in range(3):  # the last look reads what the first two left in doubt
            await client.get("/?page=9")
            await asyncio.sleep(0.6)
        await memory.folder.refresh()
        backend.calls.clear()
        backend.paths.clear()
        yield backend, client
    await memory.close()


async def test_no_unchanged_file_is_read(counted: tuple[CountingBackend, httpx2.AsyncClient]) -> None:
    """The list, its filters, search and the index are known from the last look: no scan, and no memory file is read."""
    backend, client = counted
    for path in ("/", "/?q=words", "/?type=user&folder=topic-1", "/?page=3", "/index", "/new", "/turns", "/"):
        assert (await client.get(path)).status_code == 200
    assert "scan" not in backend.calls and not [path for path in backend.paths if path != "MEMORY.md"]


async def test_few_rows_are_sent(counted: tuple[CountingBackend, httpx2.AsyncClient]) -> None:
    """A page has fifty rows, whatever there is; the pages together have all."""
    _, client = counted
    pages = [(await client.get(f"/?page={number}")).text for number in range(1, 8)]
    assert [page.count("data-row") for page in pages] == [50] * 6 + [1] and len(pages[0]) < 40_000
    assert (await client.get("/?q=words")).text.count("data-row") == 50


async def test_a_change_shows_in_the_next_page(counted: tuple[CountingBackend, httpx2.AsyncClient], tmp_path: Path) -> None:
    """W1: what was kept of a page is not shown when a file has changed, not even right after it was shown."""
    backend, client = counted
    for number in range(5):
        assert f"Changed {number}" not in (await client.get("/")).text
        write(tmp_path / f"memory/topic-0/note-{7 * number}.md", note(f"Changed {number}", "anew"))
        await asyncio.sleep(0.05)  # the system tells within a moment
        assert f"Changed {number}" in (await client.get("/")).text
    assert "scan" not in backend.calls and len(backend.paths) < 20


async def test_two_pages_of_one_look(counted: tuple[CountingBackend, httpx2.AsyncClient]) -> None:
    """A page that is asked for again is the same, and so is one in which only the notice differs."""
    _, client = counted
    first, again, noticed = [(await client.get(path)).text for path in ("/", "/", "/?note=deleted")]
    assert first == again and "Deleted." in noticed and "Deleted." not in (await client.get("/")).text


async def test_one_memory_is_no_memories(tmp_path: Path) -> None:
    """The field for a search counts what there is in words that fit."""
    write(tmp_path / "memory/home.md", note("Home", "where I live"))
    async with open_memory(tmp_path / "memory") as memory:
        transport = httpx2.ASGITransport(web_app(Site(memory, "token")))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            assert 'placeholder="Search 1 memory"' in (await client.get("/")).text
            write(tmp_path / "memory/boat.md", note("Boat", "where it lies"))
            await asyncio.sleep(0.6)
            assert 'placeholder="Search 2 memories"' in (await client.get("/")).text
