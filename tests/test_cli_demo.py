"""`mdmemory demo`: two real processes, one folder; it harms nothing that is not its own."""

from __future__ import annotations

import json
from pathlib import Path

from command import Finished, mdmemory, write
from pseudo_terminal import screen

FILES = ["MEMORY.md", "feedback/answers.md", "user/home.md"]


def contents(folder: Path) -> dict[str, bytes]:
    """Every visible file with its bytes."""
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {path: (folder / path).read_bytes() for path in paths if not path.startswith(".")}


def events(done: Finished) -> list[tuple[str | None, str, str]]:
    """Session, role and text of each line."""
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [(line["session"], line["role"], line["text"]) for line in lines]


def test_the_second_process_knows_what_the_first_was_told(tmp_path: Path) -> None:
    """AM1, AM3: one process saves typed files, another, which was told nothing, answers from them; the model is called scripted."""
    told = events(mdmemory("demo", "--json", cwd=tmp_path))
    assert told[0][1] == "demo" and "The model in this demo is scripted" in told[0][2]
    first = [(role, text) for session, role, text in told if session == "demo-1"]
    assert first[1:3] == [("tool", "Write user/home.md"), ("tool", "Write feedback/answers.md")]
    second = [(role, text) for session, role, text in told if session == "demo-2"]
    assert second[1] == ("hint", "user/home.md, feedback/answers.md") and "西湖" in second[2][1]
    assert sorted(contents(tmp_path / "demo-memory")) == FILES
    assert mdmemory("doctor", "-f", "demo-memory", cwd=tmp_path).returncode == 0


def test_a_demo_can_be_run_again(tmp_path: Path) -> None:
    """The second run changes no file, and knows what a person has changed meanwhile."""
    mdmemory("demo", "d", cwd=tmp_path)
    home = tmp_path / "d/user/home.md"
    home.write_text(home.read_text().replace("Hangzhou, China", "Kyoto, Japan"))
    before = contents(tmp_path / "d")
    assert "Kyoto" in mdmemory("demo", "d", cwd=tmp_path).stdout
    assert contents(tmp_path / "d") == before


def test_a_demo_saves_again_what_was_deleted(tmp_path: Path) -> None:
    """When one of its files is gone, the first process writes that one and leaves the other as a person changed it."""
    mdmemory("demo", "d", cwd=tmp_path)
    (tmp_path / "d/feedback/answers.md").unlink()
    home = tmp_path / "d/user/home.md"
    home.write_text(home.read_text().replace("Hangzhou", "Suzhou"))
    told = events(mdmemory("demo", "d", "--json", cwd=tmp_path))
    assert [text for _, role, text in told if role == "tool"] == ["Write feedback/answers.md"]
    assert "Suzhou" in told[-2][2] and "Suzhou" in home.read_text()


def test_a_demo_leaves_other_folders_alone(tmp_path: Path) -> None:
    """A folder that holds anything else is refused in one line, and not a byte changes; an empty one is fine."""
    write(tmp_path / "memory/user/home.md", "mine")
    write(tmp_path / "code/.git/config", "mine")
    for folder in ("memory", "code"):
        before = contents(tmp_path / folder)
        done = mdmemory("demo", folder, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "") and "not from a demo" in done.stderr
        assert contents(tmp_path / folder) == before and not (tmp_path / folder / ".mdmemory").exists()
    (tmp_path / "-empty").mkdir()
    assert mdmemory("demo", "--", "-empty", cwd=tmp_path).returncode == 0
    assert mdmemory("demo", "memory://", cwd=tmp_path).returncode == 2


def test_a_demo_on_a_terminal_shows_who_speaks(tmp_path: Path) -> None:
    """People see both processes, who says what, and what to do next; a pipe that closes early is no traceback."""
    code, shown = screen("demo", cwd=tmp_path, NO_COLOR="1")
    assert code == 0
    lines = shown.splitlines()
    assert [line for line in lines if line.startswith("tool ")] == ["tool   Write user/home.md", "tool   Write feedback/answers.md"]
    assert "hint   user/home.md, feedback/answers.md" in lines and lines[-1].endswith("mdmemory ls -f demo-memory")
