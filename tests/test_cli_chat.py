"""`mdmemory chat`, the real process, over real HTTP with the official client: memory on disk, hints, selector, failures."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

from command import COMMAND, Finished, environment, mdmemory, note, write
from openai_server import Answer, OpenAIServer

HOME = note("Home", "where the user lives; walks, weather, travel", "Lives in Hangzhou.")


def spec(server: OpenAIServer) -> str:
    """The model's name for the command."""
    return f"openai:test-model@{server.base_url}"


def chat(server: OpenAIServer, *options: str, cwd: Path, stdin: str = "", **env: str) -> Finished:
    """Run a conversation to its end."""
    return mdmemory("chat", "--model", spec(server), *options, cwd=cwd, stdin=stdin, **env)


def events(done: Finished) -> list[tuple[str, str]]:
    """Role and text of each line that --json prints."""
    return [(event["role"], event["text"]) for event in map(json.loads, done.stdout.splitlines())]


def agent(request: dict[str, Any]) -> Answer:
    """A model that saves what it is told, and otherwise says what its last message of the user, or the hint, says."""
    last = request["messages"][-1]
    if last["role"] == "user" and last["content"].startswith("Remember"):
        return Answer("I'll save that.", calls=[("Write", {"file_path": "user/home.md", "content": HOME})])
    return Answer("Saved." if last["role"] == "tool" else f"I read: {last['content']}")


def test_a_memory_is_saved_in_one_process_and_known_in_the_next(tmp_path: Path) -> None:
    """AM1, AM3: the agent's tool call writes file and index; a new process has the line in its prompt, and the body as a hint."""
    with OpenAIServer(agent) as server:
        done = chat(server, "--json", "-m", "Remember: I live in Hangzhou.", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert events(done) == [
            ("user", "Remember: I live in Hangzhou."),
            ("assistant", "I'll save that."),
            ("tool", "Write user/home.md"),
            ("assistant", "Saved."),
        ]
        assert (tmp_path / "memory/user/home.md").read_text() == HOME
        done = chat(server, "--json", "-m", "Any walks near where I live?", cwd=tmp_path)
        assert ("hint", "user/home.md") in events(done) and "Lives in Hangzhou." in events(done)[-1][1]
    first, last = server.requests[0].json, server.requests[-1].json
    assert [tool["function"]["name"] for tool in first["tools"]] == ["Read", "Write", "Edit", "Delete", "Search", "Add"]
    assert "The memory is empty." in first["messages"][0]["content"]
    prompt = last["messages"][0]["content"]
    assert "- [Home](user/home.md) — where the user lives" in prompt and "Lives in Hangzhou." not in prompt


def test_a_named_conversation_goes_on_in_the_next_process(tmp_path: Path) -> None:
    """R5, C8: with --session the model gets what was said and done before, tool calls included; another session begins anew."""
    with OpenAIServer(agent) as server:
        chat(server, "--session", "s", "-m", "Remember: I live in Hangzhou.", cwd=tmp_path)
        before = server.requests[-1].json["messages"][1:]
        done = chat(server, "--session", "s", "-m", "Thanks", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        *resumed, thanks = server.requests[-1].json["messages"][1:]
        chat(server, "--session", "t", "-m", "Thanks", cwd=tmp_path)
        other = server.requests[-1].json["messages"][1:]
    assert resumed == [*before, {"role": "assistant", "content": "Saved."}] and len(before) == 3
    assert thanks == {"role": "user", "content": "Thanks"} and len(other) == 1


def test_a_selector_over_the_wire_chooses_the_hint(tmp_path: Path) -> None:
    """AM4: with --selector a second model picks by header what no shared word finds; the agent has it after its first tool call."""
    write(tmp_path / "memory/user/home.md", HOME)

    def selector(request: dict[str, Any]) -> str:
        assert "where the user lives" in request["messages"][-1]["content"]
        return 'Here you are: {"files": [{"path": "user/home.md", "reason": "dinner is near home"}]}'

    looks_first = Answer(calls=[("Read", {"file_path": "MEMORY.md"})], delay_s=2)
    with OpenAIServer([looks_first, Answer("In Hangzhou.")]) as server, OpenAIServer(selector) as choosing:
        done = chat(server, "--selector", spec(choosing), "--json", "-m", "Dinner tonight?", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "") and ("hint", "user/home.md") in events(done)
    texts = [message["content"] or "" for message in server.requests[-1].json["messages"]]
    (hint,) = [text for text in texts if text.startswith("<memory-hint>")]
    assert "dinner is near home" in hint and "> Lives in Hangzhou." in hint


def test_a_selector_that_fails_does_not_break_the_reply(tmp_path: Path) -> None:
    """H4: shared words choose the hint, the reply comes, and one line says what was wrong."""
    write(tmp_path / "memory/user/home.md", HOME)
    with OpenAIServer(agent) as server, OpenAIServer(lambda request: "I'd rather not.") as choosing:
        done = chat(server, "--selector", spec(choosing), "--json", "-m", "Any walks near where I live?", cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == ""
    shown = events(done)
    assert ("hint", "user/home.md") in shown and "Lives in Hangzhou." in dict(shown)["assistant"]
    assert any(role == "hint" and text.startswith("degraded: ") for role, text in shown)


def test_text_is_shown_while_it_comes(tmp_path: Path) -> None:
    """The first words stand there before the reply is complete."""
    slow = Answer("First words, and many more that come later. " * 3, chunk_delay_s=0.05)
    with OpenAIServer([slow]) as server:
        command = [*COMMAND, "chat", "--model", spec(server), "-m", "Hi"]
        child = subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE)
        assert child.stdout is not None
        shown = b""
        while b"agent  First" not in shown:
            piece = child.stdout.read1()  # type: ignore[attr-defined]  # a buffered reader, as Popen gives it
            assert piece, shown
            shown += piece
        assert child.poll() is None and b"later. First words, and many more that come later. \n" not in shown
        shown += child.communicate(timeout=30)[0]
    assert shown.decode() == f"you    Hi\nagent  {slow.content}\n" and child.returncode == 0


def test_a_conversation_can_be_piped_in(tmp_path: Path) -> None:
    """Each line of standard input is a message of one conversation; empty ones are passed over."""
    with OpenAIServer(agent) as server:
        done = chat(server, cwd=tmp_path, stdin="Hello\n\nAnd again\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "you    Hello\nagent  I read: Hello\nyou    And again\nagent  I read: And again\n"
    roles = [message["role"] for message in server.requests[-1].json["messages"]]
    assert roles == ["system", "user", "assistant", "user"]


def test_a_session_is_named_in_the_history(tmp_path: Path) -> None:
    """--session says who the author of the changes was."""
    with OpenAIServer(agent) as server:
        chat(server, "--session", "monday", "-m", "Remember this.", cwd=tmp_path)
    assert '"author":"agent:monday"' in (tmp_path / "memory/.mdmemory/log.jsonl").read_text()


def test_a_refused_tool_call_is_shown_with_the_reason(tmp_path: Path) -> None:
    """AM7: a wrong type goes back to the model with the four that are allowed; people see that nothing was saved."""
    wrong = ("Write", {"file_path": "a.md", "content": note("A", "a", kind="idea")})
    with OpenAIServer([Answer(calls=[wrong]), Answer("I could not save it.")]) as server:
        done = chat(server, "--json", "-m", "Save a", cwd=tmp_path)
    (refusal,) = [text for role, text in events(done) if role == "tool"]
    assert refusal.startswith("Write a.md: ") and not (tmp_path / "memory/a.md").exists()
    answer = server.requests[-1].json["messages"][-1]["content"]
    assert all(kind in answer for kind in ("user", "feedback", "project", "reference"))


def test_a_wrong_key_is_one_line(tmp_path: Path) -> None:
    """401 ends the command with exit code 1 and a line that says whose key is wrong; the key is not in it."""
    with OpenAIServer([Answer("Incorrect API key provided", status=401)]) as server:
        done = chat(server, "-m", "Hi", cwd=tmp_path, OPENAI_API_KEY="sk-of-mine")
    assert done.returncode == 1 and done.stderr.startswith("Error: openai:test-model: ") and done.stderr.count("\n") == 1
    assert "sk-of-mine" not in done.stderr and server.requests[0].headers["authorization"] == "Bearer sk-of-mine"


def test_a_dead_endpoint_is_one_line(tmp_path: Path) -> None:
    """Nobody listens: exit code 1 and a line that names the address; with --json, standard output holds only JSON."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        model = f"openai:x@http://127.0.0.1:{taken.getsockname()[1]}/v1"
        done = mdmemory("chat", "--model", model, "-m", "Hi", "--json", cwd=tmp_path)
    assert done.returncode == 1 and events(done) == [("user", "Hi")]
    assert done.stderr.startswith("Error: ") and "127.0.0.1" in done.stderr and done.stderr.count("\n") == 1


def test_what_an_endpoint_says_cannot_steer_the_terminal(tmp_path: Path) -> None:
    """Control characters in replies and error messages are left out."""
    with OpenAIServer([Answer("red \x1b[31mtext\x07"), Answer("bad \x1b[31mrequest\nindeed", status=400)]) as server:
        done = chat(server, cwd=tmp_path, stdin="One\nTwo\n")
    assert "agent  red [31mtext\n" in done.stdout and "\x1b" not in done.stdout + done.stderr
    assert done.returncode == 1 and done.stderr.count("\n") == 1


def test_ctrl_c_ends_a_piped_conversation(tmp_path: Path) -> None:
    """SIGINT in the middle of a reply is exit code 130 without a traceback when nobody is there to go on."""
    with OpenAIServer([Answer("Never", delay_s=30)]) as server:
        command = [*COMMAND, "chat", "--model", spec(server), "-m", "Hi"]

        child = subprocess.Popen(command, cwd=tmp_path, env=environment(), text=True, stdout=-1, stderr=-1)
        ends = time.monotonic() + 30
        while not server.requests:
            assert time.monotonic() < ends and child.poll() is None
            time.sleep(0.02)
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=20)
    assert (child.returncode, errors.strip()) == (130, "")
