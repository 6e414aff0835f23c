"""`mdmemory chat` as a person has it: typed on a terminal, interrupted, and left."""

from __future__ import annotations

import time
from pathlib import Path

from command import note, write
from openai_server import Answer, OpenAIServer
from pseudo_terminal import CTRL_C, CTRL_D, Terminal

SLOW = Answer("So many words, " * 50, chunk_delay_s=0.05)


def talk(server: OpenAIServer, cwd: Path, *options: str) -> Terminal:
    """A conversation on a terminal without colours."""
    return Terminal("chat", "--model", f"openai:m@{server.base_url}", *options, cwd=cwd, NO_COLOR="1")


def test_a_person_talks_and_leaves_with_ctrl_d(tmp_path: Path) -> None:
    """A greeting says how to leave, each message gets its reply, what the memory does stands beside it, and Ctrl-D ends with 0."""
    write(tmp_path / "memory/tea.md", note("Tea", "which tea the user drinks", "Longjing."))
    with (
        OpenAIServer(lambda request: f"You said {request['messages'][-1]['content'][:5]}") as server,
        talk(server, tmp_path) as terminal,
    ):
        assert "Memory: memory, 1 file. Ctrl-C ends a reply, Ctrl-D the conversation." in terminal.wait_for("you    ")
        terminal.type("你好，世界\r")
        assert "agent  You said 你好，世界\n" in terminal.wait_for("agent  You said 你好，世界\nyou    ")
        terminal.type("Which tea?\r")
        assert "hint   tea.md\n" in terminal.wait_for("agent  You said <memo\nyou    ")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
        assert terminal.shown.endswith("you    \n")


def test_a_line_can_be_edited_as_in_a_shell(tmp_path: Path) -> None:
    """Backspace takes away one character, also a wide one, and the arrow up brings the last message back."""
    with OpenAIServer(lambda request: f"<{request['messages'][-1]['content']}>") as server, talk(server, tmp_path) as terminal:
        terminal.wait_for("you    ")
        terminal.type("你好好\x7f\r")
        terminal.wait_for("agent  <你好>")
        terminal.wait_for("you    ")
        terminal.type("\x1b[A\r")
        terminal.wait_for("agent  <你好>\nyou    ")
        terminal.type(CTRL_D)
        assert terminal.end() == 0


def test_ctrl_c_ends_the_reply_and_then_the_conversation(tmp_path: Path) -> None:
    """The first Ctrl-C stops a reply, the conversation goes on; one at the prompt leaves with exit code 130."""
    with OpenAIServer([SLOW, Answer("Fine.")]) as server, talk(server, tmp_path) as terminal:
        terminal.wait_for("you    ")
        terminal.type("Tell me a story\r")
        terminal.wait_for("many words,")
        terminal.type(CTRL_C)
        assert "Interrupted.\n" in terminal.wait_for("you    ")
        terminal.type("Shorter\r")
        terminal.wait_for("agent  Fine.\nyou    ")
        time.sleep(0.3)  # between its prompt and its wait for keys, readline misses signals; no person is that fast
        terminal.type(CTRL_C)
        assert terminal.end() == 130
    assert terminal.shown.count("So many") < 50


def test_a_failed_reply_leaves_the_person_in_the_conversation(tmp_path: Path) -> None:
    """An endpoint's error is one red line, and the next message is tried again."""
    with (
        OpenAIServer([Answer("the model is not loaded", status=400), Answer("Here I am.")]) as server,
        Terminal("chat", "--model", f"openai:m@{server.base_url}", cwd=tmp_path) as terminal,
    ):
        terminal.wait_for("you    ")
        terminal.type("Hello?\r")
        assert "\x1b[31mError: openai:m: " in terminal.wait_for("you    ")
        terminal.type("Hello?\r")
        terminal.wait_for("agent  Here I am.\nyou    ")
        terminal.type(CTRL_D)
        assert terminal.end() == 0


def test_json_on_a_terminal_is_only_json(tmp_path: Path) -> None:
    """With --json a typed conversation prints no prompt between the objects."""
    with OpenAIServer(["Hi!"]) as server, talk(server, tmp_path, "--json", "--session", "s") as terminal:
        terminal.wait_for("the conversation.\n")
        terminal.type("Hello\r")
        assert terminal.wait_for('"Hi!"}\n').endswith('\n{"session": "s", "role": "assistant", "text": "Hi!"}\n')
