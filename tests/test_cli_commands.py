"""The commands as a whole: their help, what is imported for them, and that each is shown in a session."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from command import REPOSITORY, environment, mdmemory

from mdmemory.cli import main
from mdmemory.cli.commands import SECTIONS

NAMES = [name for section in SECTIONS.values() for name in section]


@pytest.mark.parametrize("name", NAMES)
def test_the_list_says_what_the_command_says_of_itself(name: str) -> None:
    """The line of `mdmemory --help` is the first sentence of the command's own help, which has a paragraph more to say."""
    command = main.get_command(click.Context(main), name)
    assert command is not None and command.name == name
    about = next(section[name][1] for section in SECTIONS.values() if name in section)
    assert command.get_short_help_str(200) == about
    assert isinstance(command, click.Group) or "as_json" in {parameter.name for parameter in command.params}


def test_help_imports_no_command() -> None:
    """A list of what there is costs nothing but click."""
    code = (
        "import sys; from mdmemory.cli import main; main(['--help'], standalone_mode=False); print([*sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment())
    assert "Make a memory folder" in done.stdout
    assert not [name for name in eval(done.stderr) if name.startswith("mdmemory.cli.") and name.endswith("_command")]
    assert "mdmemory.memory" not in done.stderr


@pytest.mark.parametrize("name", sorted({*NAMES} - {"chat", "serve", "watch"}))
def test_every_command_is_shown_in_a_session(name: str) -> None:
    """But for those that run until they are stopped, and have tests of their own, each stands in a transcript."""
    sessions = "".join(path.read_text() for path in (REPOSITORY / "tests/transcripts").glob("*.txt"))
    assert f"mdmemory {name}" in sessions


def test_a_typing_error_is_answered_with_the_way_to_the_list(tmp_path: Path) -> None:
    """A command that there is not is said to be none, with exit code 2."""
    done = mdmemory("serach", "x", cwd=tmp_path)
    assert done.returncode == 2 and "No such command 'serach'" in done.stderr and "--help" in done.stderr


def completed(line: str, tmp_path: Path, shell: str = "bash") -> str:
    """What click answers a shell that completes the last word of a line."""
    words = line.split(" ")
    last = words[-1] if shell == "fish" else str(len(words) - 1)
    env = {"_MDMEMORY_COMPLETE": f"{shell}_complete", "COMP_WORDS": line, "COMP_CWORD": last}
    code = "from mdmemory.cli import main; main(prog_name='mdmemory')"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment(**env), capture_output=True, text=True)
    return done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_paths(tmp_path: Path, shell: str) -> None:
    """Commands, and the paths of memory files by their beginning or their name's; no journal, nothing hidden."""
    for path in ("user/home.md", "project/plan.md", "journal/2026/11/plan.md", ".git/plan.md", "plan.txt"):
        (tmp_path / "memory" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "memory" / path).write_text("x")
    assert "search" in completed("mdmemory sea", tmp_path, shell)
    assert "user/home.md" in completed("mdmemory show user/", tmp_path, shell)
    assert completed("mdmemory edit pl", tmp_path, shell).count("plan.md") == 1
    script = mdmemory("completion", shell, cwd=tmp_path).stdout
    assert (
        "_MDMEMORY_COMPLETE" in script
        and json.loads(mdmemory("completion", shell, "--json", cwd=tmp_path).stdout)["shell"] == shell
    )


def test_the_script_for_bash_is_one_that_bash_takes(tmp_path: Path) -> None:
    """Bash itself loads it, and asks it for what `mdmemory rem` may become."""
    (tmp_path / "mdmemory").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mdmemory "$@"\n')
    (tmp_path / "mdmemory").chmod(0o755)
    asked = 'eval "$(mdmemory completion bash)"; COMP_WORDS=(mdmemory rem) COMP_CWORD=1; _mdmemory_completion mdmemory'
    env = environment(PATH=f"{tmp_path}:/usr/bin:/bin")
    done = subprocess.run(
        ["bash", "-c", f'{asked}; echo "${{COMPREPLY[@]}}"'], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.stdout.strip() == "remember", done.stderr


def test_the_page_of_the_commands_is_up_to_date(tmp_path: Path) -> None:
    """docs/cli.md says what the commands say."""
    done = subprocess.run(
        [sys.executable, REPOSITORY / "scripts/write-cli-page", "--check"], env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
