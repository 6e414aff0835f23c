"""A local folder and one in a PostgreSQL database, kept together."""

from __future__ import annotations

import asyncio
import itertools
import json
import signal
import subprocess
from pathlib import Path

import pytest
from command import COMMAND, environment, mdmemory
from database import Server
from reconciling import TEXT, Two, contents, delete, edit, keep, note, same

from mdmemory.backends.local import LocalBackend
from mdmemory.backends.postgres import PostgresBackend
from mdmemory.care import history
from mdmemory.care.reconcile import Synced, keep_together
from mdmemory.care.reconcile.state import place_of
from mdmemory.cli.reconcile_command import name_of

_numbers = itertools.count()


@pytest.fixture(scope="module")
def url(postgres: Server) -> str:
    """A database for all of these tests."""
    return postgres.new_database()


@pytest.fixture
def folder_url(url: str) -> str:
    """A folder in it for each."""
    return f"{url}?folder=users/{next(_numbers)}"


def two_of(root: Path, url: str) -> Two:
    """The local folder and that of the database."""
    return Two(LocalBackend(root), PostgresBackend.from_url(url))


async def test_a_home_and_a_database(tmp_path: Path, folder_url: str) -> None:
    """What a person edits on the disk and agents keep in the database is on both, merged where both did, with a history of it."""
    two = two_of(tmp_path / "home", folder_url)
    for path, data in {"a.md": note("A"), "crlf.md": b"\xef\xbb\xbfplain\r\nno end", "broken.md": b"---\nname: [\n---\n"}.items():
        (tmp_path / "home").mkdir(exist_ok=True)
        (tmp_path / "home" / path).write_bytes(data)
    await keep(two.there, "b.md", note("B"))
    assert [step[:2] for step in await two.sync()] == [("create", "there"), ("create", "here"), *[("create", "there")] * 2]
    await same(two)
    (tmp_path / "home/a.md").write_bytes(note("A", TEXT.replace("one", "ONE")))
    await keep(two.there, "a.md", note("A", TEXT.replace("three", "THREE")))
    await delete(two.there, "b.md")
    assert await two.sync() == [("merge", "both", "a.md"), ("delete", "here", "b.md")]
    await same(two)
    assert (tmp_path / "home/a.md").read_bytes() == note("A", TEXT.replace("one", "ONE").replace("three", "THREE"))
    event = (await history.events(two.there, limit=1))[0]
    assert event.author == "sync" and event.reason == "sync with mine"
    await two.close()


async def test_nothing_changed_is_one_statement(tmp_path: Path, folder_url: str) -> None:
    """A sync of which nothing comes asks the database once, and reads no file here or there."""
    two = two_of(tmp_path / "home", folder_url)
    await keep(two.there, "b.md", note("B"))
    await two.sync()
    assert await two.sync() == []
    here, there = two.backends
    assert here.calls in (["read"], ["read", "scan"])  # where the system tells what changed, no scan is needed
    assert here.paths == [place_of("other")] and there.calls == ["scan"]
    await two.close()


@pytest.mark.slow
async def test_a_thousand_files_go_in_few_commits(tmp_path: Path, folder_url: str) -> None:
    """A first sync of a thousand files into a database is five commits of two hundred, and three small ones."""
    two = two_of(tmp_path / "home", folder_url)
    (tmp_path / "home").mkdir()
    for number in range(1000):
        (tmp_path / f"home/n{number:04}.md").write_bytes(note(f"N{number}"))
    assert len(await two.sync()) == 1000
    assert two.backends[1].calls.count("commit") <= 8
    await same(two)
    await two.close()


async def test_two_homes_and_an_agent_meet_in_a_database(tmp_path: Path, folder_url: str) -> None:
    """Two people's folders and the agents of the database come to the same, also when they sync at once."""
    one, two = (two_of(tmp_path / name, folder_url) for name in ("ann", "ben"))
    await keep(one.here, "ann.md", note("Ann"))
    await keep(two.here, "ben.md", note("Ben"))
    for number in range(4):
        await asyncio.gather(one.sync(), two.sync(), keep(one.there, f"agent{number}.md", note("Agent")))
        await edit(one.here, "ann.md", note("Ann", f"{number}\n"))
    for each in (one, two, one):
        await each.sync()
    found = await contents(one.here)
    assert found == await contents(two.here) == await contents(one.there) and len(found) == 6
    assert found["ann.md"] == note("Ann", "3\n")
    await one.close()
    await two.close()


async def test_watching_both(tmp_path: Path, folder_url: str) -> None:
    """While it is watched, what changes on either side is on the other soon, and a quiet pair costs no look."""
    two, agent = two_of(tmp_path / "home", folder_url), two_of(tmp_path / "none", folder_url)
    await keep(two.here, "a.md", note("A"))
    told: asyncio.Queue[Synced | str] = asyncio.Queue()
    task = asyncio.create_task(keep_together(two.pair, told.put_nowait))

    async def next_steps() -> list[tuple[str, str, str]]:
        news = await asyncio.wait_for(told.get(), 30)
        assert isinstance(news, Synced)
        return [(step.action, step.side, step.path) for step in news.steps]

    assert await next_steps() == [("create", "there", "a.md")]
    await keep(agent.there, "b.md", note("B"))
    assert await next_steps() == [("create", "here", "b.md")]
    (tmp_path / "home/a.md").write_bytes(note("A", "edited\n"))
    assert await next_steps() == [("update", "there", "a.md")]
    calls = [backend.calls for backend in two.backends]
    before, quiet = -1, 0
    while quiet < 4:  # it looks until nothing is told of, and then no more
        await asyncio.sleep(0.6)
        before, quiet = sum(map(len, calls)), quiet + 1 if before == sum(map(len, calls)) else 0
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    for each in (two, agent):
        await each.close()


def test_the_command(tmp_path: Path, folder_url: str) -> None:
    """`mdmemory sync DIR postgres://…` syncs, says what it did, shows no log-in, and exits with 1 when a person is needed."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home/a.md").write_bytes(note("A"))
    planned = mdmemory("sync", "home", folder_url, "--dry-run", "--json", cwd=tmp_path)
    assert planned.returncode == 0 and json.loads(planned.stdout)["steps"] == [
        {"path": "a.md", "action": "create", "side": "there", "reason": ""}
    ]
    assert not (tmp_path / "home/.mdmemory").exists()
    assert mdmemory("sync", "home", folder_url, cwd=tmp_path).stdout.splitlines()[1].split() == ["create", "there", "a.md"]
    quiet = mdmemory("sync", "home", folder_url.replace("//mdmemory@", "//mdmemory:secret@"), cwd=tmp_path)
    assert quiet.stdout.startswith("Nothing has changed") and "secret" not in quiet.stdout and "mdmemory@" not in quiet.stdout
    (tmp_path / "home/a.md").write_bytes(note("A", "mine\n"))
    mdmemory("remember", "-f", folder_url, "-t", "project", "We ship on Mondays.", cwd=tmp_path)
    assert mdmemory("sync", "home", folder_url, cwd=tmp_path).returncode == 0
    assert (tmp_path / "home/project/we-ship-on-mondays.md").exists()


def test_watching_with_the_command(tmp_path: Path, folder_url: str) -> None:
    """`--watch` prints what it does, and Ctrl-C ends it with 0."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home/a.md").write_bytes(note("A"))
    command = [*COMMAND, "sync", "home", folder_url, "--watch"]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=pipe, stderr=pipe, text=True)
    try:
        assert process.stdout is not None and process.stdout.readline() == "create there a.md\n"
        mdmemory("remember", "-f", folder_url, "-t", "project", "We ship on Mondays.", cwd=tmp_path)
        assert process.stdout.readline() == "create here project/we-ship-on-mondays.md\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0
    finally:
        process.kill()
        process.communicate()


def test_push_and_pull_keep_no_password(tmp_path: Path, folder_url: str) -> None:
    """What they note in the histories, and print, says nothing of who logs in."""
    url = folder_url.replace("//mdmemory@", "//mdmemory:hunter2@")
    (tmp_path / "home").mkdir()
    (tmp_path / "home/a.md").write_bytes(note("A"))
    said = [mdmemory("push", "-f", "home", url, cwd=tmp_path)]
    mdmemory("remember", "-f", folder_url, "-t", "project", "We ship on Mondays.", cwd=tmp_path)
    said += [mdmemory("pull", "-f", "home", url, cwd=tmp_path) for _ in range(2)]
    logs = [mdmemory("log", "-f", place, cwd=tmp_path) for place in ("home", folder_url)]
    assert [done.returncode for done in (*said, *logs)] == [0] * 5 and "pull from postgres://" in logs[0].stdout
    assert "hunter2" not in "".join(done.stdout + done.stderr for done in (*said, *logs))
    assert b"hunter2" not in (tmp_path / "home/.mdmemory/log.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("location", "name"),
    [
        ("postgres:///memories?folder=users/ann", "postgres:///memories?folder=users/ann"),
        (
            "postgresql://ann:secret@db.example:5433/m?sslmode=require&folder=a",
            "postgres://db.example:5433/m?folder=a&sslmode=require",
        ),
        ("memory://", "memory://"),
    ],
)
def test_a_location_is_called_by_one_name(location: str, name: str) -> None:
    """A database is the same one whoever logs in, and the name says no password."""
    assert name_of(location) == name
