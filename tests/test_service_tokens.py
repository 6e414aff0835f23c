"""The file of tokens: it holds only hashes, and what is not in it lets nobody in."""

from __future__ import annotations

import json
import logging
import os
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from command import environment, mdmemory

from mdmemory.errors import ConfigError, InvalidArguments
from mdmemory.service import tokens
from mdmemory.service.tokens import TokenFile, hash_of, new_token, parse_line, revoke
from mdmemory.service.users import Limits, User

ALICE = hash_of("alice's")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the tokens stand."""
    return tmp_path / "tokens"


async def test_a_new_token_is_known_and_only_its_hash_is_kept(file: Path) -> None:
    """The file is its owner's alone, and what stands in it opens nothing."""
    token = new_token(file, "alice", "read-only", "per-minute=60")
    known = TokenFile(file, Limits(at_once=3))
    assert await known(token) == User("alice", read_only=True, limits=Limits(per_minute=60, at_once=3))
    assert token not in file.read_text() and len(token) > 40
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for other in (token[:-1], token + "x", token.upper(), hash_of(token), "", file.read_text().split()[0], "\udc80"):
        assert await known(other) is None


async def test_a_line_that_goes_is_revoked_within_a_second(file: Path) -> None:
    """Neither a restart nor another size of the file is needed: a name that is exchanged is seen as well."""
    token, other = new_token(file, "alice"), new_token(file, "bob")
    known = TokenFile(file, Limits())
    assert await known(token) == User("alice") and await known(other) == User("bob")
    file.write_text(file.read_text().replace(hash_of(token), hash_of("nobody's")))
    known._looked -= tokens.LOOK_S
    assert await known(token) is None and await known(other) == User("bob")
    assert revoke(file, "bob") == 1 and revoke(file, "bob") == 0
    known._looked -= tokens.LOOK_S
    assert await known(other) is None
    file.unlink()
    known._looked -= tokens.LOOK_S
    assert await known("nobody's") is None
    with pytest.raises(ConfigError, match="can't be read"):
        known.check()
    back = new_token(file, "carol")
    known._looked -= tokens.LOOK_S
    assert await known(back) == User("carol")


async def test_a_token_runs_out(file: Path) -> None:
    """The day after `until`, UTC, it is nobody's."""
    today = datetime.now(UTC).date()
    token, old = new_token(file, "alice", f"until={today}"), new_token(file, "alice", f"until={today - timedelta(days=1)}")
    known = TokenFile(file, Limits())
    assert (await known(token) or User("x")).name == "alice" and await known(old) is None


@pytest.mark.parametrize(
    "line",
    [
        "alice\n",
        f"{ALICE}\n",
        f"{ALICE} Alice\n",
        f"{ALICE} ../bob\n",
        f"{ALICE} readonly alice\n",
        f"{ALICE} until=soon alice\n",
        f"{ALICE} per-minute=0 alice\n",
        f"{ALICE} per-minute=-1 alice\n",
        f"{ALICE} at-once=many alice\n",
        f"{ALICE} alice read-only\n",
        f"{ALICE.upper()} alice\n",
        f"{ALICE[:-1]} alice\n",
        f"{ALICE} alice",
    ],
)
async def test_a_line_that_can_not_be_read_lets_nobody_in(file: Path, line: str, caplog: pytest.LogCaptureFixture) -> None:
    """At the start it is an error that names the line; later it is logged, and the other lines hold. No hash is said."""
    with pytest.raises((InvalidArguments, ConfigError)) as said:
        parse_line(line)
    assert ALICE[:-1] not in str(said.value)
    token = new_token(file, "bob")
    known = TokenFile(file, Limits())
    known.check()
    assert await known(token) == User("bob")
    file.write_text(f"# ours\n\n{file.read_text()}{line}")
    with pytest.raises(ConfigError, match="line 4"):
        TokenFile(file, Limits()).check()
    known._looked -= tokens.LOOK_S
    with caplog.at_level(logging.WARNING):
        assert await known(token) == User("bob") and await known("alice's") is None
    assert "line 4" in caplog.text and ALICE[:-1] not in caplog.text


def test_people_s_comments_stay(file: Path) -> None:
    """Whoever keeps the file by hand finds it as it was, but for the line that comes or goes."""
    file.write_text(f"# the team\n{ALICE} alice # since May\n# no line end")
    file.chmod(0o640)
    token = new_token(file, "bob")
    assert file.read_text() == f"# the team\n{ALICE} alice # since May\n# no line end\n{hash_of(token)} bob\n"
    assert revoke(file, "alice") == 1
    assert file.read_text() == f"# the team\n# no line end\n{hash_of(token)} bob\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert os.listdir(file.parent) == ["tokens"]


async def test_a_young_file_is_parsed_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While a file is so new that its date may not tell of a change, what is the same in it costs no more than its reading."""
    token = new_token(file, "alice")
    known, parsed = TokenFile(file, Limits()), []
    monkeypatch.setattr(tokens, "parse_line", lambda line, limits: parsed.append(line) or parse_line(line, limits))
    for _ in range(3):
        assert await known(token) == User("alice")
        known._looked -= tokens.LOOK_S
    assert len(parsed) == 1


def test_a_last_line_without_an_end_is_revoked(file: Path) -> None:
    """It lets nobody in as it is, and would do so as soon as another token is put below it."""
    file.write_text(f"{hash_of('b')} bob\n{ALICE} read-only alice")
    assert revoke(file, "alice") == 1
    new_token(file, "carol")
    assert ALICE not in file.read_text() and hash_of("b") in file.read_text()


async def test_a_date_to_come_does_not_have_it_read_for_ever(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that was written while the clock was ahead is read once, like any other."""
    token = new_token(file, "alice")
    later = time.time() + 3600
    os.utime(file, (later, later))
    known = TokenFile(file, Limits())
    for n in range(3):
        with monkeypatch.context() as patched:
            if n:
                patched.setattr(Path, "read_text", lambda *a, **k: pytest.fail("it was read again"))
            assert await known(token) == User("alice")
        known._looked -= tokens.LOOK_S


def test_tokens_made_at_the_same_time_all_stand_in_it(file: Path) -> None:
    """Eight processes add four tokens each, and none is lost."""
    code = "import sys; from pathlib import Path; from mdmemory.service.tokens import new_token\nfor n in range(4): "
    code += "new_token(Path(sys.argv[1]), sys.argv[2])"
    started = [subprocess.Popen([sys.executable, "-c", code, file, f"user{n}"], env=environment()) for n in range(8)]
    assert [process.wait(60) for process in started] == [0] * 8
    assert len(file.read_text().splitlines()) == 32


def test_the_command_prints_a_token_once(tmp_path: Path) -> None:
    """`mdmemory token` prints it, says so in JSON, revokes, and refuses names that no user can have."""
    made = mdmemory("token", "alice", "--tokens", "tokens", "--until", "2030-01-31", "--at-once", "2", cwd=tmp_path)
    assert made.returncode == 0 and made.stdout.startswith("mdm_") and "not shown again" in made.stderr
    line = (tmp_path / "tokens").read_text()
    assert line == f"{hash_of(made.stdout.strip())} until=2030-01-31 at-once=2 alice\n"
    told = json.loads(mdmemory("token", "alice", "--tokens", "tokens", "--json", cwd=tmp_path).stdout)
    assert told["user"] == "alice" and hash_of(told["token"]) in (tmp_path / "tokens").read_text()
    assert mdmemory("token", "Alice", "--tokens", "tokens", cwd=tmp_path).returncode == 2
    assert mdmemory("token", "alice", "--tokens", "none", "--revoke", cwd=tmp_path).returncode == 1
    assert not (tmp_path / "none").exists()
    gone = mdmemory("token", "alice", "--tokens", "tokens", "--revoke", cwd=tmp_path)
    assert gone.stdout == "2 tokens of alice revoked.\n" and (tmp_path / "tokens").read_text() == ""
    assert mdmemory("token", "alice", "--tokens", "tokens", "--revoke", "--json", cwd=tmp_path).returncode == 1
