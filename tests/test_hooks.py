"""The hooks of coding agents, as those call them: a process each, JSON in, JSON out."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command import WITHOUT_RIGHTS, Finished, environment, mdmemory, note, write
from conversations import memory, reply
from journaling import said_in
from openai_server import Answer, OpenAIServer

from mdmemory.hooks.events import MAX_CHARS

BODY = "> Lives in Hangzhou."
LOADED = """
import sys
from mdmemory.__main__ import main
sys.argv = ["mdmemory", "hook", "user-prompt", "-f", sys.argv[1]]
main()
print(*sorted(sys.modules), file=sys.stderr)
"""
LOADED_AT_MOST, OURS_AT_MOST = 420, 90


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with one memory file."""
    write(tmp_path / "memory/home.md", note("Home", "city, walks", "Lives in Hangzhou."))
    return tmp_path / "memory"


def call(event: str, folder: Path, **given: Any) -> Finished:
    """Call a hook as Claude Code does."""
    names = {"session-start": "SessionStart", "user-prompt": "UserPromptSubmit", "stop": "Stop"}
    text = json.dumps({"session_id": "s1", "hook_event_name": names[event], **given})
    return mdmemory("hook", event, "-f", folder, cwd=folder.parent, stdin=text)


def context(done: Finished) -> str:
    """What the agent's model is given."""
    assert done.returncode == 0 and done.stderr == ""
    answer = json.loads(done.stdout)
    return str(answer["hookSpecificOutput"]["additionalContext"]) if answer else ""


def ask(folder: Path, prompt: str = "Any walks in my city?", **given: Any) -> str:
    """The hint for a prompt."""
    return context(call("user-prompt", folder, prompt=prompt, **given))


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "compact"])
def test_a_session_starts_with_instructions_and_index(root: Path, source: str) -> None:
    """AM2: and with where the files are, since the agent's own tools take whole paths."""
    told = context(call("session-start", root, source=source))
    assert "- [Home](home.md) — city, walks" in told and "When to save" in told
    assert f"The memory's folder is {root}" in told
    assert not (root / ".mdmemory").exists() and not (root / "MEMORY.md").exists()


@pytest.mark.parametrize("word", ["walk", "散步"])
def test_an_index_that_is_long_is_cut_to_what_the_agent_shows(root: Path, word: str) -> None:
    """I7: of a longer answer Claude Code gives its model the beginning alone; the newest files stay, and the rest is told of."""
    for number in range(200):
        write(root / f"{number:03}.md", note(f"Note {number:03}", f"{word} " * 20))
    told = context(call("session-start", root))
    assert MAX_CHARS * 0.8 < len(told) <= MAX_CHARS and f"The memory's folder is {root}" in told
    assert told.count("](") < 200 and "entries not shown" in told


def test_a_prompt_is_given_a_hint_once_a_session(root: Path) -> None:
    """H1, H5: each file once while it does not change; after compaction it may come again, and another session has its own."""
    assert BODY in ask(root) and ask(root) == ""
    assert BODY in ask(root, session_id="s2")
    write(root / "home.md", note("Home", "city, walks", "Lives in Suzhou."))
    assert "> Lives in Suzhou." in ask(root) and ask(root) == ""
    context(call("session-start", root, source="resume"))
    assert ask(root) == ""
    context(call("session-start", root, source="compact"))
    assert "> Lives in Suzhou." in ask(root)
    assert ask(root, "What is the weather like?", session_id="s3") == ""


def test_what_is_remembered_is_disposable(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lies in the cache folder, for its owner alone; damaged or deleted it is made anew, and what is old is cleared away."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(root.parent / "cache"))
    ask(root)
    [state] = (root.parent / "cache/mdmemory/hooks").iterdir()
    assert state.stat().st_mode & 0o777 == 0o600 and state.stat().st_size < 500
    for damage in ("", "[1]", '{"shown": 1}', '{"unknown": {}}', "{"):
        state.write_text(damage)
        assert BODY in ask(root) and ask(root) == ""
    old = state.with_name("0" * 32 + ".json")
    old.write_text("{}")
    os.utime(old, (time.time() - 40 * 86_400,) * 2)
    kept = state.with_name("mine.json")
    kept.write_text("{}")
    os.utime(kept, (0, 0))
    assert BODY in ask(root, session_id="s2") and not old.exists() and kept.exists()
    shutil.rmtree(state.parent)
    state.parent.write_text("no folder")
    assert BODY in ask(root) and BODY in ask(root)


@pytest.mark.parametrize("text", [b"", b"[]", b'{"a":', b'{"a": "\xff"}', b"[" * 100_000])
def test_what_is_no_json_stops_no_agent(root: Path, text: bytes) -> None:
    """The answer is empty, and why stands on standard error."""
    command = [sys.executable, "-m", "mdmemory", "hook", "stop", "-f", str(root)]
    done = subprocess.run(command, input=text, env=environment(), capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == b"mdmemory hook stop: the agent sent no JSON object\n"


@pytest.mark.parametrize("event", ["session-start", "user-prompt", "stop"])
def test_fields_that_are_missing_or_odd_stop_no_agent(root: Path, event: str) -> None:
    """Any JSON object is answered."""
    for text in ("{}", '{"session_id": 5, "prompt": null, "transcript_path": 7, "source": {}, "hook_event_name": []}'):
        done = mdmemory("hook", event, "-f", root, cwd=root, stdin=text)
        assert (done.returncode, done.stderr) == (0, "")
    done = mdmemory("hook", event, "-f", root, cwd=root, stdin='{"session_id": "../../etc", "transcript_path": "/nope"}')
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("event", ["session-start", "user-prompt", "stop"])
def test_a_memory_that_is_missing_or_unreadable_stops_no_agent(root: Path, event: str) -> None:
    """The answer is empty, and why stands on standard error, without a path of the host."""
    done = call(event, root.parent / "nothing", prompt="walks in my city")
    assert (done.returncode, done.stdout) == (0, "") and "there is no memory folder" in done.stderr
    given = json.dumps({"session_id": "s1", "hook_event_name": "X", "prompt": "walks in my city"})
    root.chmod(0)
    done = mdmemory("hook", event, "-f", root, cwd=root.parent, stdin=given, prefix=WITHOUT_RIGHTS)
    root.chmod(0o700)
    assert (done.returncode, done.stdout) == (0, "") and str(root) not in done.stderr and done.stderr.count("\n") == 1


def test_a_call_that_is_wrong_is_never_a_block(tmp_path: Path) -> None:
    """Agents take the exit code 2 for an order to stop, so it is 1."""
    for arguments in (["nope"], [], ["stop", "--nope"], ["--config", "emacs"]):
        done = mdmemory("hook", *arguments, cwd=tmp_path, stdin="{}")
        assert done.returncode == 1 and done.stdout == "" and "Error: " in done.stderr


def test_which_folder(root: Path) -> None:
    """--folder, that of a file with settings, MDMEMORY_FOLDER, or ./memory; without an event's name the answer is plain text."""
    given = '{"prompt": "walks in my city"}'
    settings = root.parent / "memory.yaml"
    settings.write_text(f"location: {root}\nhint_max_files: 0\n")
    assert BODY in mdmemory("hook", "user-prompt", cwd=root.parent, stdin=given).stdout
    assert BODY in mdmemory("hook", "user-prompt", cwd=root, stdin=given, MDMEMORY_FOLDER=str(root)).stdout
    assert mdmemory("hook", "user-prompt", "--config", settings, cwd=root, stdin=given).stdout == ""
    assert mdmemory("hook", "user-prompt", cwd=root, stdin=given, MDMEMORY_CONFIG=str(settings)).stdout == ""
    settings.write_text("hint_max_files: -1\n")
    done = mdmemory("hook", "user-prompt", "--config", settings, cwd=root, stdin=given)
    assert done.returncode == 0 and "memory.yaml, line 1: hint_max_files" in done.stderr


def test_the_stop_puts_what_was_said_into_the_journal(root: Path) -> None:
    """C8: prompts and reply, once however often the hook runs."""
    (root.parent / "rollout.jsonl").write_text('{"type": "response_item", "payload": {"role": "user"}}\n')  # of another agent
    other = {"transcript_path": str(root.parent / "rollout.jsonl"), "turn_id": "t1"}
    ask(root, "First.", **other)
    for _ in range(2):
        assert context(call("stop", root, last_assistant_message="One.", **other)) == ""
    ask(root, "Second.")
    ask(root, "And third.")
    context(call("stop", root, last_assistant_message="Two."))
    said = [("user", "First."), ("assistant", "One."), ("user", "Second."), ("user", "And third."), ("assistant", "Two.")]
    assert said_in(root, "s1") == said


def test_gemini_tells_prompt_and_reply_at_once(root: Path) -> None:
    """A hint that an agent put into the prompt is no part of what was said."""
    prompt = f"Hello\n<memory-hint>\n{BODY}\n</memory-hint>"
    context(call("stop", root, hook_event_name="AfterAgent", prompt=prompt, prompt_response="Hi."))
    assert said_in(root, "s1") == [("user", "Hello"), ("assistant", "Hi.")]


def test_cursor_has_names_of_its_own(root: Path) -> None:
    """It takes context at the start alone; a prompt is let through, and kept for the journal."""

    def answer(event: str, **given: str) -> Any:
        text = json.dumps({"conversation_id": "c1", **given})
        return json.loads(mdmemory("hook", event, "-f", root, cwd=root, stdin=text).stdout)

    started = answer("session-start", hook_event_name="sessionStart")
    assert "- [Home](home.md)" in started["additional_context"]
    assert answer("user-prompt", hook_event_name="beforeSubmitPrompt", prompt="Walks in my city?") == {"continue": True}
    assert answer("stop", hook_event_name="afterAgentResponse", text="By the lake.") == {}
    assert said_in(root, "c1") == [("user", "Walks in my city?"), ("assistant", "By the lake.")]


def test_with_a_model_memories_are_drawn_at_the_stop(root: Path) -> None:
    """A1: when enough was said; a model that fails is told of, and what was said is in the journal."""
    settings = root.parent / "memory.yaml"
    settings.write_text(f"location: {root}\nextract_every: 2\n")
    mended: list[bool] = []

    def draw(request: Any) -> Answer:
        drawn = json.dumps(reply(memory("Tea", "Likes tea.", path="user/tea.md")))
        return Answer(drawn) if mended else Answer("broken", status=401)

    with OpenAIServer(draw) as server:
        env = {"MDMEMORY_MODEL": f"openai:m@{server.base_url}", "OPENAI_API_KEY": "none", "MDMEMORY_CONFIG": str(settings)}
        given = {"session_id": "s1", "prompt": "I like tea.", "prompt_response": "Noted."}
        text = json.dumps({"hook_event_name": "AfterAgent", **given})
        failed = mdmemory("hook", "stop", cwd=root, stdin=text, **env)
        assert failed.returncode == 0 and "only in the journal" in failed.stderr
        assert said_in(root, "s1") == [("user", "I like tea."), ("assistant", "Noted.")]
        mended.append(True)
        done = mdmemory("hook", "stop", cwd=root, stdin=text, **env)
        assert (done.stderr, done.stdout) == ("", "{}\n") and "Likes tea." in (root / "user/tea.md").read_text()
        settings.write_text(f"location: {root}\nextract_every: 1\nwrite_back: off\n")
        mdmemory("hook", "stop", cwd=root, stdin=text.replace("Noted.", "Yes."), **env)
        assert len(server.requests) == 2
    assert said_in(root, "s1")[3:] == [("assistant", "Yes.")]


def test_the_prompts_hook_imports_only_what_it_needs(root: Path) -> None:
    """An agent waits for it at every prompt: no click, no numpy, no model's client, nothing of sessions, tools or write-back."""
    given = '{"session_id": "s1", "prompt": "walks in my city"}'
    command = [sys.executable, "-c", LOADED, str(root)]
    done = subprocess.run(command, input=given, env=environment(), capture_output=True, encoding="utf-8", check=True)
    assert BODY in done.stdout
    loaded = done.stderr.split()
    ours = {name for name in loaded if name.startswith("mdmemory")}
    assert {"click", "numpy.linalg", "openai", "anthropic", "watchdog", "pydantic", "httpx"}.isdisjoint(loaded)
    others = {"cli", "memory", "settings", "agent.session", "agent.tools", "agent.extractor"}
    assert {f"mdmemory.{name}" for name in others}.isdisjoint(ours)
    assert len(ours) <= OURS_AT_MOST and len(loaded) <= LOADED_AT_MOST, "benchmarks/hook.py says whether that is too much"


def test_help_names_the_events(tmp_path: Path) -> None:
    """`mdmemory --help` lists the command, whose own help says what the exit codes mean."""
    assert "hook " in mdmemory("--help", cwd=tmp_path).stdout
    text = mdmemory("hook", "--help", cwd=tmp_path).stdout
    assert "session-start|user-prompt|stop" in text and "Exit codes" in text
