"""`mdmemory extract`, the real process, with a model over real HTTP; `remember` and `forget` stand in a transcript."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from command import Finished, mdmemory
from conversations import memory, reply
from openai_server import OpenAIServer
from pseudo_terminal import Terminal

from mdmemory import open_memory

HOME = memory("Home", "Lives in Hangzhou.", path="user/home.md")
TEA = memory("Tea", "Green tea, with honey.", action="update", path="tea.md")
OLD_TEA = "---\nname: Tea\ndescription: about Tea\ntype: user\n---\n\nGreen tea.\n"


def talk(root: Path) -> None:
    """A conversation on disk, and a memory file."""
    root.mkdir()
    (root / "tea.md").write_text(OLD_TEA)

    async def hold() -> None:
        async with open_memory(root) as opened:
            await (await opened.session("monday").turn("I live in Hangzhou and take honey with green tea.", id="m")).finish("OK.")

    asyncio.run(hold())


def extract(server: OpenAIServer, *options: str, cwd: Path) -> Finished:
    """Run the command."""
    model = f"openai:test-model@{server.base_url}"
    return mdmemory("extract", "--model", model, "--session", "monday", *options, cwd=cwd)


def test_a_dry_run_shows_a_diff(tmp_path: Path) -> None:
    """M1: `extract --dry-run` shows what would be written as `diff -u` does, with the reasons, and writes nothing."""
    talk(tmp_path / "memory")
    with OpenAIServer([json.dumps(reply(HOME, TEA))] * 2) as server:
        done = extract(server, "--dry-run", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "--- /dev/null\n+++ b/user/home.md\n" in done.stdout and "+Lives in Hangzhou.\n" in done.stdout
        assert "--- a/tea.md\n+++ b/tea.md\n" in done.stdout and "-Green tea.\n+Green tea, with honey.\n" in done.stdout
        assert "created  user/home.md  it was said" in done.stdout
        assert (tmp_path / "memory/tea.md").read_text() == OLD_TEA and not (tmp_path / "memory/user").exists()
        shown = json.loads(extract(server, "--dry-run", "--json", cwd=tmp_path).stdout)
    assert [outcome["status"] for outcome in shown["outcomes"]] == ["created", "updated"]
    assert sorted(shown["diff"]) == ["tea.md", "user/home.md"]


def test_what_is_left_over_is_drawn_once(tmp_path: Path) -> None:
    """M1: `extract` takes what a session has left over, and the second time there is nothing."""
    talk(tmp_path / "memory")
    with OpenAIServer([json.dumps(reply(HOME, TEA))]) as server:
        done = extract(server, cwd=tmp_path)
        assert done.stdout == "WHAT     FILE          WHY\ncreated  user/home.md  it was said\nupdated  tea.md        it was said\n"
        assert extract(server, cwd=tmp_path).stdout == "Nothing was said since the last time.\n"
    assert (tmp_path / "memory/user/home.md").exists() and "with honey" in (tmp_path / "memory/tea.md").read_text()


@pytest.mark.slow
def test_what_is_drawn_waits_where_the_settings_say_so(tmp_path: Path) -> None:
    """M1, P1: `extract` says that nothing is saved yet, `review` where it is from, and accepts, edits or rejects it."""
    talk(tmp_path / "memory")
    (tmp_path / "memory.yaml").write_text("location: memory\nextract: propose\n")
    settings = ("--config", "memory.yaml")
    with OpenAIServer([json.dumps(reply(HOME, TEA, memory("Sweet", "Likes honey.", path="sweet.md")))] * 2) as server:
        done = extract(server, "--dry-run", *settings, cwd=tmp_path)
        assert "+Lives in Hangzhou." in done.stdout and "nothing is saved yet: 3 proposals would wait for a yes" in done.stderr
        assert mdmemory("review", *settings, cwd=tmp_path).stdout == "Nothing waits.\n"
        done = extract(server, *settings, cwd=tmp_path)
        assert "created  user/home.md  it was said" in done.stdout
        assert "nothing is saved yet: 3 proposals wait for a yes in `mdmemory review --config memory.yaml`" in done.stderr
        assert extract(server, *settings, cwd=tmp_path).stdout == "Nothing was said since the last time.\n"
    listed = mdmemory("review", cwd=tmp_path).stdout.splitlines()
    assert listed[0].split() == ["ID", "SINCE", "FROM", "WHAT", "WHY,", "OR", "WHY", "NOT"]
    assert [line.split("  ", 2)[2].split("  ")[0].strip() for line in listed[1:]] == ["conversation monday"] * 3
    home, tea, sweet = (line.split()[0] for line in listed[1:])
    shown = mdmemory("review", home, cwd=tmp_path).stdout
    assert "from conversation monday\n" in shown and "+source: monday#m\n" in shown
    found = json.loads(mdmemory("review", home, "--json", cwd=tmp_path).stdout)
    assert (found["kind"], found["from"], found["sources"]) == ("add", "conversation monday", {})
    assert mdmemory("review", home, "--accept", cwd=tmp_path).stdout.startswith(f"Accepted {home}, as event ")
    done = mdmemory("review", tea, "--edit", cwd=tmp_path, EDITOR="sed -i 's/with honey/with much honey/'")
    assert done.stdout == f"Edited {tea}; it waits to be accepted.\n"
    assert mdmemory("review", tea, "--accept", cwd=tmp_path).returncode == 0
    assert mdmemory("review", sweet, "--reject", cwd=tmp_path).stdout == f"Rejected {sweet}; the files stay as they are.\n"
    assert "with much honey" in (tmp_path / "memory/tea.md").read_text() and not (tmp_path / "memory/sweet.md").exists()
    assert "source: monday#m\n" in (tmp_path / "memory/user/home.md").read_text()
    assert "agent:monday/extractor" in mdmemory("log", cwd=tmp_path).stdout


def test_what_can_not_be_drawn_is_an_error(tmp_path: Path) -> None:
    """M1: an unknown session, a model that talks nonsense or is not there: one line, exit code 1, and nothing is taken."""
    talk(tmp_path / "memory")
    with OpenAIServer(["I'd rather not.", json.dumps(reply(HOME))]) as server:
        model = f"openai:test-model@{server.base_url}"
        done = mdmemory("extract", "--model", model, "--session", "x", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (1, "") and "There is no conversation 'x'" in done.stderr
        done = extract(server, cwd=tmp_path)
        assert done.returncode == 1 and "Error: The reply is not a JSON object" in done.stderr
        assert "created  user/home.md" in extract(server, cwd=tmp_path).stdout
    assert mdmemory("extract", "--session", "x", "--model", "gpt", cwd=tmp_path).returncode == 1


def test_forgetting_asks_which_and_whether(tmp_path: Path) -> None:
    """D3: on a terminal `forget` shows the files that share the words, and asks; what is not confirmed stays, Ctrl-C ends it."""
    trains, seats = (tmp_path / f"memory/project/prefers-{name}.md" for name in ("trains-to-planes", "window-seats-on-trains"))
    for text in ("Prefers trains to planes", "Prefers window seats on trains"):
        mdmemory("remember", text, cwd=tmp_path)
    with Terminal("forget", "trains", cwd=tmp_path, NO_COLOR="1") as terminal:
        assert "project/prefers-window-seats-on-trains.md" in terminal.wait_for("Which one")
        terminal.type("1\r")
        terminal.wait_for("Forget project/prefers-")
        terminal.type("n\r")
        assert terminal.end() == 1
    for keys in ("1\r", ""):  # Ctrl-C at either question
        with Terminal("forget", "trains", cwd=tmp_path, NO_COLOR="1") as terminal:
            terminal.wait_for("Which one")
            terminal.type(keys)
            terminal.wait_for("[y/N]: " if keys else ": ")
            terminal.interrupt()
            assert terminal.end() == 1 and "Aborted!" in terminal.shown
    assert trains.exists() and seats.exists()
    with Terminal("forget", "window", cwd=tmp_path, NO_COLOR="1") as terminal:
        terminal.wait_for("Forget project/prefers-window-seats-on-trains.md?")
        terminal.type("y\r")
        assert terminal.end() == 0 and "Forgot project/prefers-window-seats-on-trains.md." in terminal.shown
    assert trains.exists() and not seats.exists()
