"""Roles of a PostgreSQL database over time: what is given, taken, inherited, dropped, and passed on."""

from __future__ import annotations

import logging

import psycopg
import pytest
from database import Server, as_admin, closing, execute

from mdmemory.backends.protocol import Put
from mdmemory.errors import Unavailable


@pytest.fixture(scope="module")
def url(postgres: Server) -> str:
    """A database whose owner is no superuser, for all of these tests."""
    return postgres.kept()


@pytest.fixture(autouse=True)
async def _set_up(url: str) -> None:
    async with closing(url, "first") as backend:
        await backend.commit("c", [Put("a.md", b"tea\n")])


async def test_a_prefix_gives_what_lies_below(postgres: Server, url: str) -> None:
    """`teams/` gives every folder below, there or not, `teams` itself not; what was taken is gone at once."""
    as_team = postgres.new_role("team")
    await execute(url, "SELECT mdmemory.give('team', 'teams/')")
    async with (
        closing(as_team(url), "teams/red") as red,
        closing(as_team(url), "teams") as above,
        closing(as_team(url), "teams2") as beside,
    ):
        await red.commit("c", [Put("a.md", b"tea\n")])
        for other in (above, beside):
            with pytest.raises(Unavailable, match="no right"):
                await other.scan()
        await execute(url, "SELECT mdmemory.take('team', 'teams/')")
        for attempt in (red.scan(), red.read({"a.md": None}), red.commit("d", [Put("a.md", b"mine\n")])):
            with pytest.raises(Unavailable, match="no right"):
                await attempt


async def test_a_member_has_what_its_group_has(postgres: Server, url: str) -> None:
    """A role that is a member of one that was given a folder may open it, also one that does not inherit."""
    for name in ("staff", "carol"):
        as_role = postgres.new_role(name)
    await execute(postgres.url, "ALTER ROLE carol NOINHERIT")
    await execute(postgres.url, "GRANT staff TO carol")
    await execute(url, "SELECT mdmemory.give('staff', 'staff')")
    await execute(postgres.url, "ALTER ROLE carol INHERIT")
    async with closing(as_role(url), "staff") as backend:
        await backend.commit("c", [Put("a.md", b"tea\n")])


async def test_rights_end_with_the_role(postgres: Server, url: str) -> None:
    """A role that is dropped takes nobody's rights with it, and another of its name has none of its own."""
    as_dora, as_emil = postgres.new_role("dora"), postgres.new_role("emil")
    for name in ("dora", "emil"):
        await execute(url, "SELECT mdmemory.give(%s, %s)", name, f"users/{name}")
    await execute(url.replace("keeper@", "mdmemory@"), "DROP OWNED BY dora")
    await execute(postgres.url, "DROP ROLE dora")
    async with closing(as_emil(url), "users/emil") as backend:
        await backend.commit("c", [Put("a.md", b"tea\n")])
    postgres.new_role("dora")
    await execute(url, "SELECT mdmemory.give('dora', 'elsewhere')")
    async with closing(as_dora(url), "users/dora") as backend:
        with pytest.raises(Unavailable, match="no right"):
            await backend.scan()


async def test_a_role_without_any_right_is_told_so(postgres: Server, url: str) -> None:
    """Whoever may log in and was given nothing is refused in words, at every verb."""
    as_nobody = postgres.new_role("nobody_special")
    async with closing(url, "users/bob") as backend:
        await backend.commit("c", [Put("a.md", b"tea\n")])
    async with closing(as_nobody(url), "users/bob") as backend:
        for attempt in (backend.scan(), backend.read({"a.md": None}), backend.commit("c", [Put("a.md", b"mine\n")])):
            with pytest.raises(Unavailable, match="no right") as caught:
                await attempt
            assert "nobody" not in str(caught.value)


async def test_the_owner_is_kept_to_the_scope(url: str) -> None:
    """Also of the owner, with whom most people log in, a statement sees the one folder that it names."""
    async with closing(url, "users/bob") as backend:
        await backend.commit("c", [Put("a.md", b"tea\n")])
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        assert await (await connection.execute("SELECT * FROM mdmemory.file")).fetchall() == []
        await connection.execute("SELECT set_config('mdmemory.folder', 'users/bob', false)")
        assert {row[0] for row in await (await connection.execute("SELECT name FROM mdmemory.folder")).fetchall()} == {"users/bob"}


async def test_the_tables_go_to_another_owner(postgres: Server) -> None:
    """Where the tables are given to another role, that one opens all folders, and the former owner none."""
    was, now = postgres.new_role("former"), postgres.new_role("heir")
    url = postgres.new_database(owner="former")
    async with closing(was(url), "users/bob") as backend:
        await backend.commit("c", [Put("a.md", b"tea\n")])
    await execute(url, "REASSIGN OWNED BY former TO heir")
    await execute(url, "GRANT ALL ON SCHEMA mdmemory TO former")
    await execute(url, "GRANT ALL ON ALL TABLES IN SCHEMA mdmemory TO former")
    async with closing(now(url), "users/bob") as backend:
        assert (await backend.scan()).heads == {"a.md": b"tea\n"}
    async with closing(was(url), "users/bob") as backend:
        with pytest.raises(Unavailable, match="no right"):
            await backend.scan()


async def test_a_superuser_is_warned(database: str, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever logs in as a superuser learns that only the names keep folders apart."""
    with caplog.at_level(logging.WARNING, "mdmemory"):
        async with closing(as_admin(database), "a") as backend:
            await backend.scan()
    assert [record.levelname for record in caplog.records if "row-level security" in record.message] == ["WARNING"]
