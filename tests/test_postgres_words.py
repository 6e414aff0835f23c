"""What is said when a PostgreSQL database fails: true, of use, and without hosts, users or passwords."""

from __future__ import annotations

import logging
import time

import pytest
from agent_calls import ROLE
from database import Server, closing, execute

from mdmemory import open_memory
from mdmemory.backends.protocol import Put
from mdmemory.errors import ConfigError, MdmemoryError, Unavailable

SECRET = "hush-hush"
HIDDEN = (
    SECRET,
    "127.0.0.1",
    "localhost",
    "keeper",
    "mdmemory@",
    "postgresql:",
    "users/ann",
    "test_",
    "port",
    "psycopg",
)


def with_password(url: str) -> str:
    """The URL with a password, which a server that trusts everybody ignores."""
    return url.replace("@", f":{SECRET}@")


def wrong_urls(url: str) -> dict[str, str]:
    """Addresses that don't work, each with a password, by what is wrong."""
    good = with_password(url)
    return {
        "no such database": good.replace("/test_", "/none_"),
        "no such role": good.replace("keeper", "nobody_there"),
        "nothing listens": "postgres://keeper:hush-hush@127.0.0.1:1/db",
        "no such host": "postgres://keeper:hush-hush@no-such-host.invalid/db",
        "a bad escape": good.replace(SECRET, f"{SECRET}%ZZ"),
        "an option that is none": f"{good}?{SECRET}=1",
        "a port that is none": "postgres://keeper:hush-hush@127.0.0.1:x/db",
    }


@pytest.mark.parametrize("wrong", wrong_urls(""))
async def test_an_address_that_does_not_work(
    postgres: Server, wrong: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is told apart as far as it helps; no text names host, user or address, and no log the password."""
    monkeypatch.setattr("mdmemory.backends.postgres_pool.GIVE_UP_S", 0.3)
    caplog.set_level(logging.DEBUG)
    async with closing(wrong_urls(postgres.kept())[wrong], "users/ann") as backend:
        for attempt in (backend.scan(), backend.read({"a.md": None}), backend.commit("c", [Put("a.md", b"x")])):
            with pytest.raises(MdmemoryError) as caught:
                await attempt
            assert not [word for word in HIDDEN if word in str(caught.value)], caught.value
    kind = Unavailable if wrong in ("nothing listens", "no such host", "a port that is none") else ConfigError
    assert isinstance(caught.value, kind) and SECRET not in caplog.text


async def test_a_refused_log_in_is_not_tried_for_long(postgres: Server) -> None:
    """A wrong password or name is said at once, as trying again would not help."""
    began = time.monotonic()
    async with closing(wrong_urls(postgres.kept())["no such role"], "users/ann") as backend:
        with pytest.raises(ConfigError, match="refuses the log-in"):
            await backend.scan()
    assert time.monotonic() - began < 5


async def test_what_a_model_sees_of_a_failing_database(
    postgres: Server, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tools, hints and turns say that the memory can't be had, and go on, without a word of where it is."""
    monkeypatch.setattr("mdmemory.backends.postgres_pool.GIVE_UP_S", 0.3)
    caplog.set_level(logging.DEBUG)
    url = postgres.kept()
    async with open_memory(f"{with_password(url)}?folder=users/ann") as memory:
        assert not (await memory.tools.call("Write", {"file_path": "a.md", "content": ROLE})).is_error
        breaks = {
            "DROP FUNCTION mdmemory.read": "Read",
            "ALTER TABLE mdmemory.file RENAME TO elsewhere": "Write",
            "DROP SCHEMA mdmemory CASCADE": "Delete",
        }
        for statement, tool in breaks.items():
            await execute(url, statement)
            more = {"content": ROLE} if tool == "Write" else {}
            answer = await memory.tools.call(tool, {"file_path": "b.md" if tool == "Write" else "a.md", **more})
            assert answer.is_error and not [word for word in HIDDEN if word in answer.text], answer.text
        async with memory.session("s").turn("What is my role?") as turn:
            seen = [await turn.system_prompt(), str(await turn.take_hint()), *turn.status.degraded]
            await turn.finish("I can't say.")
        assert turn.status.degraded and not [word for word in HIDDEN for text in seen if word in text and word != "port"]
    assert SECRET not in caplog.text
