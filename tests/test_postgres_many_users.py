"""A PostgreSQL database with many users: what one of them does touches their own rows."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import psycopg
import pytest
from database import Server, closing, execute
from folders import memory

from mdmemory import open_memory
from mdmemory.backends.protocol import Put
from mdmemory.files.changes import Create

USERS, FILES = 1_000, 200
COUNTS = """SELECT relname, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0), n_tup_ins + n_tup_upd + n_tup_del
    FROM pg_stat_user_tables WHERE schemaname = 'mdmemory'"""


@pytest.fixture(scope="module")
def crowded(postgres: Server) -> str:
    """A database of 1,000 users with 200 files each, whose owner is no superuser; each user's text says whose it is."""
    url = postgres.kept()
    asyncio.run(fill(url))
    return url


async def fill(url: str) -> None:
    """Write 1,000 folders as commits would, 8 at a time."""
    async with closing(url, "first") as backend:
        await backend.commit("first", [Put("a.md", b"tea\n")])
        line = asyncio.Semaphore(8)

        async def one(user: int) -> None:
            async with line, closing(url, f"users/{user}") as each:
                files = [Put(f"{n // 50}/{n}.md", memory(f"note {n}", f"of user {user}")) for n in range(FILES)]
                await each.commit(f"c{user}", files)

        await asyncio.gather(*map(one, range(USERS)))
    await execute(url, "VACUUM ANALYZE")


async def rows_touched(url: str, work: Any) -> dict[str, tuple[int, int]]:
    """How many rows of each table some work reads and writes, by the server's own statistics."""
    superuser = url.replace("keeper@", "mdmemory@")

    async def counts() -> dict[str, tuple[int, int]]:
        await asyncio.sleep(1.2)  # connections report once a second, and when they end
        return {name: (read, written) for name, read, written in await execute(superuser, COUNTS)}

    before = await counts()
    await work()
    after = await counts()
    return {name: (after[name][0] - before[name][0], after[name][1] - before[name][1]) for name in after}


@pytest.mark.slow
async def test_a_user_among_a_thousand_touches_their_own_rows(crowded: str) -> None:
    """A scan, a turn and a save of one of 1,000 users with 200 files each read no more rows than they have, and cross nothing."""

    async def look() -> None:
        async with closing(crowded, "users/500") as backend:
            found = await backend.scan()
            assert len(found.files) == FILES and all(b"of user 500\n" in head for head in found.heads.values())
            assert not (await backend.scan(found.versions or {})).heads

    touched = await rows_touched(crowded, look)
    assert FILES <= touched["file"][0] <= FILES + 10 and not any(written for _, written in touched.values())

    async def live() -> None:
        async with open_memory(f"{crowded}?folder=users/501") as mine, mine.session("s").turn("What is note 7?") as turn:
            assert "of user 501" in await turn.system_prompt()
            await mine.folder.apply([Create("new.md", memory("new"))], "person", "test")
            await turn.finish("That.")
            assert len(mine.folder.files) == FILES + 1

    touched = await rows_touched(crowded, live)
    assert touched["file"][0] < 6 * FILES and touched["file"][1] < 20 and touched["folder"][0] < 200, touched
    others = "SELECT count(*) FROM mdmemory.folder WHERE name NOT IN ('users/501', 'first') AND (seq, files) <> (1, %s)"
    assert await execute(crowded.replace("keeper@", "mdmemory@"), others, FILES) == [(0,)]


@pytest.mark.slow
async def test_a_save_reads_the_same_pages_whoever_else_there_is(crowded: str) -> None:
    """The pages that a save and a scan read in a database of 200,000 files are about those in one of 200."""
    verbs = (
        "SELECT * FROM mdmemory.commit(%s, 'none', '{put}', '{x.md}', '{*}', '{tea}', '{x}', '{t}')",
        "SELECT * FROM mdmemory.scan(%s, NULL, 0, '{}', '{}', '{}', 16384, NULL)",
    )
    async with closing(crowded, "alone") as backend:
        await backend.commit("c", [Put(f"{n}.md", memory(f"note {n}")) for n in range(FILES)])
    async with await psycopg.AsyncConnection.connect(crowded, autocommit=True) as connection:
        for verb in verbs:
            cost = []
            for folder in ("alone", "users/7", "alone", "users/7"):
                plan = await (await connection.execute(f"EXPLAIN (ANALYZE, BUFFERS) {verb}".encode(), (folder,))).fetchall()
                cost.append(sum(map(int, re.findall(r"(?:hit|read)=(\d+)", plan[1][0]))))
            assert 0 < cost[3] < cost[2] * 1.5 + 50, cost


@pytest.mark.slow
async def test_a_thousand_users_are_kept_apart(postgres: Server, crowded: str) -> None:
    """A role that was given one of a thousand folders finds no other, by name or by any statement."""
    as_user = postgres.new_role("user_9")
    await execute(crowded, "SELECT mdmemory.give('user_9', 'users/9')")
    async with await psycopg.AsyncConnection.connect(as_user(crowded), autocommit=True) as connection:
        for user in (9, *range(10, USERS, 97)):
            await connection.execute("SELECT set_config('mdmemory.folder', %s, false)", (f"users/{user}",))
            found = await (await connection.execute("SELECT count(*) FROM mdmemory.file")).fetchone()
            assert found == (FILES if user == 9 else 0,)
