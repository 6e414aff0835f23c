"""The command as people and scripts use it: what it prints where, its exit codes, and what goes wrong in real folders."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from command import COMMAND, WITHOUT_RIGHTS, environment, mdmemory, note, write

from mdmemory.cli.commands import SECTIONS

GROUPS = ("database", "eval")  # whose commands print JSON, and they themselves nothing


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A working folder whose `memory` has two files and their index."""
    write(tmp_path / "memory/user/home.md", note("Home", "where the user lives", "Lives in Hangzhou."))
    write(tmp_path / "memory/style.md", note("Style", "how code is reviewed", "Kindly.", kind="feedback"))
    assert mdmemory("init", cwd=tmp_path).returncode == 0
    return tmp_path


def as_json(*arguments: str, cwd: Path) -> Any:
    """What a command that must succeed prints as JSON."""
    done = mdmemory(*arguments, "--json", cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_help_fits_a_terminal_of_80_columns(tmp_path: Path) -> None:
    """The list of commands says each one's purpose whole, and every command has a page of its own."""
    done = mdmemory("--help", cwd=tmp_path, COLUMNS="80")
    assert done.stdout.startswith("Usage: mdmemory [OPTIONS] COMMAND")
    sections = done.stdout.partition("\nMemories:")[2]
    assert "..." not in sections and max(map(len, done.stdout.splitlines())) <= 80
    commands = [name for section in SECTIONS.values() for name in section]
    assert {*commands} <= {line.split()[0] for line in sections.splitlines() if line.startswith("  ")}
    for command in commands:
        page = mdmemory(command, "-h", cwd=tmp_path)
        assert (
            page.returncode == 0 and f"Usage: mdmemory {command}" in page.stdout and ("--json" in page.stdout or command in GROUPS)
        )


def test_init_makes_a_folder_that_is_well(tmp_path: Path) -> None:
    """A new memory is an index and nothing else, and doctor finds nothing in it; a second init changes no byte."""
    assert as_json("init", "new", cwd=tmp_path) == {"folder": "new", "created": True, "files": 0}
    index = tmp_path / "new/MEMORY.md"
    before = index.read_bytes()
    assert mdmemory("doctor", "-f", "new", cwd=tmp_path).stdout == "Nothing is wrong.\n"
    assert as_json("init", "new", cwd=tmp_path) == {"folder": "new", "created": False, "files": 0}
    assert index.read_bytes() == before and [path.name for path in (tmp_path / "new").glob("[!.]*")] == ["MEMORY.md"]


def test_init_takes_in_the_notes_that_are_there(tmp_path: Path) -> None:
    """A folder of notes becomes a memory: each gets its line in the index, and no note is touched."""
    write(tmp_path / "notes/cats.md", "# Cats\n\nThey purr.\n")
    assert as_json("init", "notes", cwd=tmp_path)["files"] == 1
    assert (tmp_path / "notes/MEMORY.md").read_text() == "# Memory\n\n- [Cats](cats.md) — They purr.\n"
    assert (tmp_path / "notes/cats.md").read_text() == "# Cats\n\nThey purr.\n"


def test_ls_lists_the_newest_first_and_by_type(home: Path) -> None:
    """A row a file, newest first; a type leaves only its files."""
    os.utime(home / "memory/user/home.md", (0, 0))
    files = as_json("ls", cwd=home)["files"]
    assert [file["path"] for file in files] == ["style.md", "user/home.md"]
    assert files[1]["modified"] == "1970-01-01T00:00:00+00:00"
    assert [file["path"] for file in as_json("ls", "-t", "user", cwd=home)["files"]] == ["user/home.md"]
    assert mdmemory("ls", "-t", "project", cwd=home).stdout == "No memory files of type project.\n"


def test_show_gives_the_bytes_of_the_file(home: Path) -> None:
    """Piped, a file comes out byte for byte, whatever its encoding and line ends; as JSON, in its parts."""
    write(home / "memory/latin.md", b"caf\xe9\r\n")
    done = subprocess.run([*COMMAND, "show", "latin.md"], cwd=home, env=environment(), capture_output=True, check=True)
    assert done.stdout == b"caf\xe9\r\n"
    shown = as_json("show", "user/home.md", cwd=home)
    assert (shown["name"], shown["type"], shown["body"].strip()) == ("Home", "user", "Lives in Hangzhou.")
    assert "not UTF-8" in as_json("show", "latin.md", cwd=home)["problem"]
    assert as_json("show", "MEMORY.md", cwd=home)["body"].startswith("# Memory\n")


def test_show_takes_a_path_as_the_shell_completes_it(home: Path) -> None:
    """`memory/user/home.md`, from the working folder, names the file too."""
    assert mdmemory("show", "memory/user/home.md", cwd=home).stdout == mdmemory("show", "./user/home.md", cwd=home).stdout != ""


def test_search_and_prompt_speak_json(home: Path) -> None:
    """AM2: scripts get scores with their reasons, and the system prompt with the hint, whose body only the hint has."""
    (match,) = as_json("search", "where", "do", "I", "live", cwd=home)
    assert match["path"] == "user/home.md" and 0 < match["score"] <= 1 and match["explain"]["terms"]
    prompt = as_json("prompt", "-m", "where do I live?", cwd=home)
    assert "where the user lives" in prompt["system_prompt"] and "Hangzhou" not in prompt["system_prompt"]
    assert "Hangzhou" in prompt["hint"] and [file["path"] for file in prompt["hint_files"]] == ["user/home.md"]
    assert as_json("prompt", cwd=home)["hint"] is None


def test_the_folder_can_come_from_the_environment(home: Path, tmp_path: Path) -> None:
    """MDMEMORY_FOLDER names the folder for every command, and --folder wins over it."""
    (tmp_path / "elsewhere").mkdir()
    for command in (["ls"], ["search", "lives"], ["show", "user/home.md"], ["prompt"], ["doctor"]):
        done = mdmemory(*command, cwd=tmp_path / "elsewhere", MDMEMORY_FOLDER=str(home / "memory"))
        assert done.returncode == 0 and done.stdout
    done = mdmemory("ls", "-f", ".", cwd=tmp_path / "elsewhere", MDMEMORY_FOLDER=str(home / "memory"))
    assert done.stdout == "No memory files yet.\n"


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "memory-evil/../..", "a\x1bb", "a//b", ".git/config", "x" * 300, "a\nb"])
def test_a_path_that_no_memory_may_have_is_refused(home: Path, path: str) -> None:
    """N1: the answer is one line that names no place of this machine, and the exit code is that of wrong use."""
    done = mdmemory("show", "--", path, cwd=home)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "is not a usable path" in done.stderr and str(home) not in done.stderr and "\x1b" not in done.stderr


def test_wrong_use_is_answered_with_the_usage(tmp_path: Path) -> None:
    """An unknown command, option or model is exit code 2 and says what is there."""
    models = (["--model", "gpt"], ["--model", "anthropic:claude-x"], ["--model", "openai:x", "--selector", "gpt"])
    for arguments in (["lst"], ["ls", "--what"], ["search"], ["chat"], *(["chat", *model] for model in models)):
        done = mdmemory(*arguments, cwd=tmp_path)
        assert done.returncode == 2 and done.stdout == "" and "Error: " in done.stderr


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Nothing is made by looking: the message says how to make the folder, quoted for the shell."""
    for command in (["ls"], ["show", "x.md"], ["search", "x"], ["prompt"], ["doctor"], ["doctor", "--fix"]):
        done = mdmemory(*command, "-f", "no such", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "") and "`mdmemory init 'no such'`" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    """Every command says so in one line, and the file stays."""
    write(tmp_path / "file", "mine")
    chat = ["chat", "--model", "openai:x@http://127.0.0.1:9/v1", "-m", "hi"]
    for command in (["ls"], ["show", "x.md"], ["search", "x"], ["prompt"], ["doctor"], chat):
        done = mdmemory(*command, "-f", "file", cwd=tmp_path)
        assert done.returncode == 1 and done.stdout == "" and done.stderr.startswith("Error: 'file' is not a folder")
    assert [mdmemory(command, "file", cwd=tmp_path).returncode for command in ("init", "demo")] == [1, 1]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_that_cannot_be_looked_into_is_not_an_empty_one(home: Path) -> None:
    """D1, I6: without the right to read, every command says in one line that it could not look, and changes nothing."""
    before = {path: path.read_bytes() for path in (home / "memory").rglob("*.md")}
    (home / "memory").chmod(0)
    chat = ["chat", "--model", "openai:x@http://127.0.0.1:9/v1", "-m", "hi"]
    for command in (["ls"], ["show", "style.md"], ["search", "a"], ["prompt"], ["doctor"], ["doctor", "--fix"], chat, ["init"]):
        done = mdmemory(*command, cwd=home, prefix=WITHOUT_RIGHTS)
        assert (done.returncode, done.stdout) == (1, ""), done
        assert re.fullmatch(r"Error: .*could not look.*\n", done.stderr), done.stderr
    (home / "memory").chmod(0o755)
    assert {path: path.read_bytes() for path in (home / "memory").rglob("*.md")} == before


def test_a_reader_that_leaves_early_gets_no_traceback(tmp_path: Path) -> None:
    """`mdmemory ls | head -n 1` on 1,000 files ends quietly, and in time."""
    for number in range(1000):
        write(tmp_path / f"memory/{number:04}.md", note(f"Note {number}", "one of very many " * 5))
    began = time.monotonic()
    for command in ("ls", "ls --json", "prompt", "doctor", "search many"):
        shell = f"set -o pipefail; {' '.join(COMMAND)} {command} | head -n 1"
        done = subprocess.run(["bash", "-c", shell], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
        assert len(done.stdout.splitlines()) == 1 and "Traceback" not in done.stderr and "Broken" not in done.stderr, done.stderr
        assert done.returncode in (0, 1)
    assert time.monotonic() - began < 60
    assert len(as_json("ls", cwd=tmp_path)["files"]) == 1000


def test_an_output_that_is_not_utf_8_gets_escapes(home: Path) -> None:
    """Where the output can't take a character, it is escaped, and JSON stays JSON."""
    write(home / "memory/name.md", note("大明科技 🎉", "公司"))
    done = mdmemory("ls", "--json", cwd=home, PYTHONIOENCODING="ascii")
    assert done.stdout.isascii() and json.loads(done.stdout)["files"][0]["name"] == "大明科技 🎉"
    done = mdmemory("ls", cwd=home, PYTHONIOENCODING="latin-1")
    assert done.returncode == 0 and "\\u5927" in done.stdout
