"""`mdmemory database` on a real server, as its owner and others call it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from command import Finished, mdmemory
from database import Server, execute


@pytest.fixture(scope="module")
def url(postgres: Server) -> str:
    """A database with nothing in it, whose owner is no superuser."""
    return postgres.kept()


def database(*arguments: str, cwd: Path) -> Finished:
    """Run the command."""
    return mdmemory("database", *arguments, cwd=cwd)


@pytest.mark.slow
def test_an_owner_lets_others_in_and_out(postgres: Server, url: str, tmp_path: Path) -> None:
    """Set-up, give, a save by whom it was given to, show, take: each says what is so, and what is refused."""
    as_ann, as_ben = postgres.new_role("ann"), postgres.new_role("ben")
    folder = f"{url}?folder=users/ann"
    assert "makes its tables" in database("give", folder, "ann", cwd=tmp_path).stderr
    for _ in range(2):
        assert database("set-up", url, cwd=tmp_path).stdout == "The database is set up.\n"
    assert database("give", folder, "ann", cwd=tmp_path).stdout == "ann may open users/ann.\n"
    saved = mdmemory("remember", "-f", as_ann(folder), "Lives in Hangzhou.", cwd=tmp_path)
    assert saved.returncode == 0, saved.stderr
    assert "Lives in Hangzhou" in mdmemory("ls", "-f", as_ann(folder), cwd=tmp_path).stdout
    refused = mdmemory("ls", "-f", as_ben(folder), cwd=tmp_path)
    assert refused.returncode == 1 and "no right to this memory" in refused.stderr and "127.0.0.1" not in refused.stderr
    shown = database("show", folder, cwd=tmp_path).stdout.splitlines()
    assert shown[0].split() == ["users/ann", "THERE", "AT", "MOST"] and shown[1].split() == ["files", "2", "20,000"]
    assert shown[-2:] == ["ROLE  WAS GIVEN", "ann   users/ann"]
    mine = json.loads(database("show", as_ann(folder), "--json", cwd=tmp_path).stdout)
    assert mine["files"] == 2 and mine["roles"] is None
    assert "no right" in database("show", as_ben(folder), cwd=tmp_path).stderr
    for arguments in (("give", as_ann(f"{url}?folder=users/"), "ann"), ("limit", as_ann(folder), "--files", "9")):
        assert "no right" in database(*arguments, cwd=tmp_path).stderr
    assert database("take", folder, "ann", cwd=tmp_path).stdout == "ann may no longer open users/ann.\n"
    assert mdmemory("ls", "-f", as_ann(folder), cwd=tmp_path).returncode == 1


def test_prefixes_and_who_still_may(postgres: Server, url: str, tmp_path: Path) -> None:
    """A prefix gives all below it; a role that keeps it is named when one folder of it is taken."""
    postgres.new_role("cleo")
    database("set-up", url, cwd=tmp_path)
    assert database("give", f"{url}?folder=teams/", "cleo", cwd=tmp_path).stdout == "cleo may open all folders below teams/.\n"
    still = database("take", f"{url}?folder=teams/red", "cleo", cwd=tmp_path)
    assert still.returncode == 1 and "still may open teams/red, as it was given teams/" in still.stdout
    assert "cleo  teams/" in database("show", f"{url}?folder=teams/", cwd=tmp_path).stdout
    assert "no folder teams/red" in database("show", f"{url}?folder=teams/red", cwd=tmp_path).stderr
    assert "has no role nobody-here" in database("give", f"{url}?folder=teams/", "nobody-here", cwd=tmp_path).stderr
    for wrong in ("", "/", "a//", "../"):
        assert "no name of a folder" in database("give", f"{url}?folder={wrong}", "cleo", cwd=tmp_path).stderr


def test_an_owner_limits_a_folder(url: str, tmp_path: Path) -> None:
    """A limit holds from the next save on, the other one stays, and the message says what is the most."""
    folder = f"{url}?folder=users/dan"
    database("set-up", url, cwd=tmp_path)
    assert database("limit", folder, "--files", "3", cwd=tmp_path).stdout == "users/dan may have 3 files.\n"
    assert json.loads(database("limit", folder, "--bytes", "90000", "--json", cwd=tmp_path).stdout)["max_bytes"] == 90_000
    codes = [mdmemory("remember", "-f", folder, f"Thing {n}.", cwd=tmp_path) for n in range(3)]
    assert [done.returncode for done in codes] == [0, 0, 1] and "3 files and 90000 bytes are the most" in codes[-1].stderr
    assert asyncio.run(
        execute(url.replace("keeper@", "mdmemory@"), "SELECT files FROM mdmemory.folder WHERE name = 'users/dan'")
    ) == [(3,)]


def test_what_is_no_database(tmp_path: Path) -> None:
    """Another URL is refused in words, and a password in one that can't be read is in no message."""
    assert "not the URL of a PostgreSQL database" in database("set-up", "docker://image", cwd=tmp_path).stderr
    done = database("set-up", "postgres://u:top%ZZsecret@127.0.0.1/db", cwd=tmp_path)
    assert done.returncode == 1 and "can't be read" in done.stderr and "secret" not in done.stderr
