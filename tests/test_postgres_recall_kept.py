"""What a database keeps for recall where clocks differ, files break, or nothing may be written."""

from __future__ import annotations

import psycopg
import pytest
from database import Server, as_admin
from test_postgres_recall import found, note, place, save, url

from mdmemory import Create, Mount, open_memory
from mdmemory.backends.memory import MemoryBackend
from mdmemory.backends.postgres import PostgresBackend
from mdmemory.backends.protocol import Append, Put
from mdmemory.errors import Unavailable

__all__ = ["place", "url"]


async def test_a_clock_that_is_ahead_hides_nothing(place: str, url: str) -> None:
    """S1: text that was added to a file is found, though the database's clock is ahead of the worker's."""
    async with open_memory(place) as memory:
        await save(memory, board="The board.")
        backend = PostgresBackend.from_url(place)
        await backend.commit("added", [Append("project/board.md", b"A zeppelin came.\n", "")])
        await backend.close()
        with psycopg.connect(as_admin(url), autocommit=True) as connection:
            connection.execute("UPDATE mdmemory.file SET mtime_ns = mtime_ns + 3600000000000 WHERE path = 'project/board.md'")
        assert [m.path for m in await memory.search("zeppelin")] == ["project/board.md"]
    async with open_memory(place) as memory:
        assert [m.path for m in await memory.search("zeppelin")] == ["project/board.md"]


async def test_where_nothing_can_be_kept_all_is_found(postgres: Server) -> None:
    """S1: a read-only database gives the same answers, though of some files nothing is kept; a save says why it can't be."""
    database = postgres.new_database()
    place = f"{database}?folder=users/one"
    files = {f"n{n}.md": note(f"n{n}", f"Ann: a boat?\nBob: a ferry {n}.") for n in range(130)} | {
        "tea.md": note("tea", "Green sencha.")
    }
    puts = [Put(path, data) for path, data in files.items()]
    backend, here = PostgresBackend.from_url(place), MemoryBackend()
    await backend.commit("kept", puts[:30])
    async with open_memory(place) as memory:
        await memory.search("boat")  # of which some is kept
    for each in (backend, here):
        await each.commit("all", puts)
    await backend.close()
    with psycopg.connect(database, autocommit=True) as connection:
        name = database.rpartition("/")[2]
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
    async with open_memory(place) as there, open_memory(here) as memory:
        for query in ("sencha", "boat", "what did Ann say of the ferry 7"):
            one, other = await there.search(query, limit=200), await memory.search(query, limit=200)
            assert sorted(found(one)) == sorted(found(other)) != []
        with pytest.raises(Unavailable, match="read-only"):
            await there.folder.apply([Create("new.md", note("new", "text"))], "person", "test")


async def test_a_file_that_broke_keeps_its_name(place: str) -> None:
    """F4: who knew a file before it broke goes on listing it by its name, though one that did not was first to read it."""
    async with open_memory(place) as one:
        await save(one, tea="Alice drinks sencha.")
        await one.search("sencha")
        backend = PostgresBackend.from_url(place)
        await backend.commit("broke", [Put("project/tea.md", b"---\nname: [\n---\nsencha")])
        await backend.close()
        async with open_memory(place) as two:
            assert [m.path for m in await two.search("sencha")] == ["project/tea.md"]
        (match,) = await one.search("sencha", type="project")
        assert match.name == "tea" and one.folder.files["project/tea.md"].problem is not None


@pytest.mark.parametrize("is_noted", [True, False])
async def test_numbers_that_count_again(is_noted: bool, place: str, url: str) -> None:
    """A worker that ran on while the database went back to an older state knows nothing of the words of a number's first use."""
    backend = PostgresBackend.from_url(place)
    async with open_memory(place) as one:
        await backend.commit("first", [Put("tea.md", note("tea", "zeppelin"))])
        await backend.commit("second", [Put("tea.md", note("tea", "boat zeppelin"))])
        assert (await one.search("boat"))[0].score > 0.99
        folder = place.partition("folder=")[2]
        with psycopg.connect(as_admin(url), autocommit=True) as connection:
            connection.execute("UPDATE mdmemory.folder SET seq = 1, life = gen_random_uuid() WHERE name = %s", [folder])
        await backend.commit("again", [Put("tea.md", note("tea", "harbour zeppelin"))])
        if is_noted:
            async with open_memory(place) as two:
                await two.search("harbour")
        assert await one.search("boat") == [] and (await one.search("harbour zeppelin"))[0].score > 0.99
    await backend.close()


async def test_what_is_kept_can_be_emptied_at_any_time(place: str, url: str) -> None:
    """S1: a worker that runs on finds everything by its next search, and keeps it again for all."""
    async with open_memory(place) as one, open_memory(place) as two:
        await save(one, tea="Alice drinks sencha.", dog="The dog is called Rex.")
        assert found(await one.search("Rex")) == found(await two.search("Rex")) != []
        with psycopg.connect(as_admin(url), autocommit=True) as connection:
            connection.execute("DELETE FROM mdmemory.recall")
        assert [m.path for m in await one.search("Rex")] == ["project/dog.md"]
        assert [m.path for m in await two.search("sencha")] == ["project/tea.md"]
    async with open_memory("memory://", mounts={"team/": Mount(place)}) as memory:
        assert [m.path for m in await memory.search("sencha")] == ["team/project/tea.md"]
        with psycopg.connect(as_admin(url), autocommit=True) as connection:
            connection.execute("DELETE FROM mdmemory.recall")
        assert [m.path for m in await memory.search("sencha")] == ["team/project/tea.md"]
