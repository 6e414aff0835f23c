"""Write-back in sessions: when memories are drawn from a conversation, and what happens when that fails."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from agent_calls import call
from conversations import memory, reply
from counting import CountingBackend
from folders import visible

from mdmemory import Config, ScriptedModel, Session, open_memory, read_only
from mdmemory.backends.local import LocalBackend
from mdmemory.errors import ConfigError
from mdmemory.files.journal import MARK
from mdmemory.files.memory_file import parse

HOME = memory("Home", "Lives in Hangzhou.", path="user/home.md")
EVERY_TURN = Config(extract_every=1)


class Extractor(ScriptedModel):
    """Keeps the prompts in which it was asked what to remember."""

    def __init__(self, replies: Any) -> None:
        super().__init__(replies)
        self.asked: list[str] = []


def extractor(*replies: Any, delay_s: float = 0, picks: str = "") -> Extractor:
    """A model that gives these replies when it is asked what to remember.

    Args:
        delay_s: before each.
        picks: the file that it chooses for hints.
    """
    left = list(replies)

    async def answer(messages: Any) -> Any:
        if "long-term memory" not in messages[0]["content"]:
            return {"files": [{"path": picks, "reason": "r"}] if picks else []}
        model.asked.append(messages[0]["content"])
        await asyncio.sleep(delay_s)
        made = left.pop(0) if left else reply()
        if isinstance(made, Exception):
            raise made
        return made

    model = Extractor([answer] * 200)
    return model


async def say(session: Session, text: str, answer: str = "OK.") -> Any:
    """A whole turn."""
    turn = await session.turn(text)
    await turn.take_hint()
    await turn.finish(answer)
    return turn


def memories(root: Path) -> list[str]:
    """The memory files on disk."""
    return [path for path in visible(root) if path != "MEMORY.md" and not path.startswith("journal/")]


@pytest.mark.parametrize("write_back", ["off", "awaited", "background"])
@pytest.mark.parametrize("mode", ["auto", "agent", "both"])
async def test_retrieval_and_write_back_are_two_switches(tmp_path: Path, mode: Any, write_back: Any) -> None:
    """A1: `auto` has hints and no Search, `agent` Search and no hints, `both` both; each with each write-back."""
    (tmp_path / "tea.md").write_text("---\nname: Tea\ndescription: what the user drinks\ntype: user\n---\n\nGreen tea.\n")
    model = extractor(reply(HOME), picks="tea.md")
    async with open_memory(tmp_path, model=model, config=EVERY_TURN) as opened:
        session = opened.session("s", mode=mode, write_back=write_back)
        turn = await session.turn("What tea do I drink in Hangzhou, where I live?")
        hint = await turn.take_hint(wait_s=5)
        assert (hint is not None) == (mode != "agent") and ("Search" in turn.tools.names) == (mode != "auto")
        await turn.finish("Green tea.")
        if write_back == "awaited":
            assert memories(tmp_path) == ["tea.md", "user/home.md"]
    assert memories(tmp_path) == (["tea.md"] if write_back == "off" else ["tea.md", "user/home.md"])
    assert len(model.asked) == (0 if write_back == "off" else 1) and turn.status.degraded is None


async def test_in_the_background_the_reply_comes_first(tmp_path: Path) -> None:
    """A4: `finish` returns with the reply journaled by one commit and no model asked; `close` waits for what is drawn."""
    backend = CountingBackend(LocalBackend(tmp_path))
    model = extractor(reply(HOME), delay_s=0.2)
    async with open_memory(backend, model=model, config=EVERY_TURN) as opened:
        session = opened.session("s")
        turn = await session.turn("I live in Hangzhou.")
        backend.calls.clear()
        await turn.finish("Noted.")
        assert model.asked == [] and backend.calls == ["commit"] and memories(tmp_path) == []
        await session.close()
        assert memories(tmp_path) == ["user/home.md"] and session.status.outcomes[0].status == "created"
        assert session.status.model_calls == 1 and session.status.degraded is None


async def test_a_failure_shows_and_is_tried_again(tmp_path: Path) -> None:
    """A4, M1: prose or an error instead of JSON shows in the status of turn and session; the next turn takes all that was said."""
    model = extractor("I could not find anything.", OSError("no route"), reply(HOME))
    async with open_memory(tmp_path, model=model, config=EVERY_TURN) as opened:
        session = opened.session("s", write_back="awaited")
        first = await say(session, "I live in Hangzhou.")
        assert "only in the journal: The reply is not a JSON object" in str(first.status.degraded)
        second = await say(session, "Hello?")
        assert "no route" in str(second.status.degraded) and "no route" in str(session.status.degraded)
        assert memories(tmp_path) == []
        third = await say(session, "Are you there?")
        assert third.status.degraded is None and session.status.degraded is None
    assert memories(tmp_path) == ["user/home.md"] and "I live in Hangzhou." in model.asked[2]


async def test_a_background_failure_shows_in_its_turn(tmp_path: Path) -> None:
    """A4: what fails after the reply is in the status of that turn and of the session once `close` has waited for it."""
    async with open_memory(tmp_path, model=extractor("no"), config=EVERY_TURN) as opened:
        session = opened.session("s")
        turn = await say(session, "I live in Hangzhou.")
        assert turn.status.degraded is None
        await session.close()
        assert "only in the journal" in str(turn.status.degraded) and "only in the journal" in str(session.status.degraded)


async def test_closing_waits_only_so_long(tmp_path: Path) -> None:
    """A4: a model that never answers holds up neither the reply nor, beyond its bound, the end; nothing is lost."""
    config = Config(extract_every=1, extract_timeout_s=0.1)
    async with open_memory(tmp_path, model=extractor(delay_s=600), config=config) as opened:
        await say(opened.session("s"), "I live in Hangzhou.")
        began = time.monotonic()
    assert time.monotonic() - began < 5
    async with open_memory(tmp_path, model=extractor(reply(HOME)), config=EVERY_TURN) as opened:
        await say(opened.session("s"), "Hello again.")
    assert memories(tmp_path) == ["user/home.md"]


async def test_fifteen_messages_are_one_extraction(tmp_path: Path) -> None:
    """V5: every 15 messages one call of the model, whatever else is said; the count goes on over a restart, nothing comes twice."""
    model = extractor(reply(HOME), reply())
    for number in range(16):  # two messages a turn; each in a process's life of its own, as far as the journal goes
        async with open_memory(tmp_path, model=model) as opened:
            await say(opened.session("s"), f"Fact {number}.", f"Noted {number}.")
        assert len(model.asked) == (number + 1) // 8
    first, second = (prompt.split("## New messages")[1] for prompt in model.asked)
    assert all(f"Fact {number}." in first and f"Fact {number}." not in second for number in range(8))
    assert all(f"Fact {number}." in second for number in range(8, 16))


async def test_a_long_conversation_gets_a_summary(tmp_path: Path) -> None:
    """V5: over the threshold a summary file links the entries it is about, without a call of its own; the raw text stays."""
    model = extractor(*(reply(summary=f"They talked about subject {number}.") for number in range(6)))
    config = Config(extract_every=2, summary_over=4)
    async with open_memory(tmp_path, model=model, config=config) as opened:
        session = opened.session("s", write_back="awaited")
        for number in range(3):
            assert memories(tmp_path) == []
            await say(session, f"Subject {number}, please.")
        (path,) = memories(tmp_path)
        summary = parse(path, (tmp_path / path).read_bytes())
        assert path == "project/conversations/s.md" and summary.header.type == "project"
        assert [f"subject {number}" in summary.body for number in range(3)] == [True] * 3
        (tmp_path / path).write_text((tmp_path / path).read_text().replace("subject 1", "subject one, said a person"))
        await say(session, "Subject 3, please.")
        longer = parse(path, (tmp_path / path).read_bytes())
        assert "subject one, said a person" in longer.body and "subject 1" not in longer.body and "subject 3" in longer.body
        link = longer.body.split("](")[1].split(")")[0]
        journal = (tmp_path / path).parent.joinpath(link).resolve()
        assert journal.is_relative_to(tmp_path / "journal") and "Subject 0, please." in journal.read_text()
        await call(opened.tools, "Delete", file_path=path)
        await say(session, "Subject 4, please.")
    body = (tmp_path / path).read_text() if (tmp_path / path).exists() else ""
    assert "subject 0" not in body and len(model.asked) == 5


async def test_a_switch_that_there_is_not_is_refused(tmp_path: Path) -> None:
    """A1: a misspelt mode or write-back is refused with those there are."""
    settings: list[dict[str, Any]] = [{"mode": "static"}, {"write_back": "always"}]
    async with open_memory(tmp_path) as opened:
        for setting in settings:
            with pytest.raises(ConfigError, match='"auto", "agent" or "both"; write_back is "off"'):
                opened.session("s", **setting)


def test_without_the_scanner_no_model_is_asked(tmp_path: Path) -> None:
    """M1: where secrets are to be found and the scanner is not installed, the status says what to do, and no call is wasted."""
    code = (
        "import asyncio, sys; sys.modules['detect_secrets'] = None\n"
        "from mdmemory import Config, ScriptedModel, open_memory\n"
        "async def main():\n"
        "    model = ScriptedModel([])\n"
        "    async with open_memory(sys.argv[1], model=model, config=Config(extract_every=1)) as memory:\n"
        "        turn = await memory.session('s', write_back='awaited').turn('I live in Hangzhou.')\n"
        "        await turn.finish('OK.')\n"
        "        print(len(model.calls), turn.status.degraded)\n"
        "asyncio.run(main())"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("0 degraded: ") and "pip install 'mdmemory[extract]'" in done.stdout


async def test_each_session_writes_back_its_own(tmp_path: Path) -> None:
    """A7: two sessions at once on one memory: each one's facts come from its own journal and name its own entries."""

    async def draw(messages: Any, *, schema: Any = None) -> Any:
        text = messages[0]["content"]
        if "long-term memory" not in text:
            return {"files": []}
        await asyncio.sleep(0.05)
        name = "Ann" if "I am Ann" in text else "Bob"
        assert not ("I am Ann" in text and "I am Bob" in text)
        return reply(memory(name, f"{name} was here.", path=f"user/{name.lower()}.md"))

    async with open_memory(tmp_path, model=draw, config=EVERY_TURN) as opened:
        await asyncio.gather(*(say(opened.session(name), f"I am {name}.") for name in ("Ann", "Bob")))
    for name in ("Ann", "Bob"):
        path = f"user/{name.lower()}.md"
        (source,) = parse(path, (tmp_path / path).read_bytes()).header.source
        assert source.startswith(f"{name}#")


async def test_nothing_is_drawn_where_nothing_may_be_written(tmp_path: Path) -> None:
    """A1: without a model, or in a read-only folder, write-back is off however it is set."""
    async with open_memory(tmp_path, config=EVERY_TURN) as opened:
        turn = await say(opened.session("s", write_back="awaited"), "I live in Hangzhou.")
        assert turn.status.degraded is None
    model = extractor(reply(HOME))
    async with open_memory(tmp_path, model=model, config=EVERY_TURN, policy=read_only) as opened:
        turn = await say(opened.session("s", write_back="awaited"), "I live in Hangzhou.")
        assert turn.status.degraded is None and "Add" not in turn.tools.names
    assert memories(tmp_path) == [] and model.asked == []


async def test_recalling_a_note_makes_no_second_one(tmp_path: Path) -> None:
    """X1, P3: over fifty turns that recall one note, extraction sees neither hint nor what Read answered, and one note stays."""
    (tmp_path / "home.md").write_text("---\nname: Home\ndescription: where the user lives\ntype: user\n---\n\nLives in Hangzhou.\n")
    model = extractor(*[reply(memory("Echo", "The user lives in Hangzhou!", 2))] * 50, picks="home.md")
    async with open_memory(tmp_path, model=model, config=EVERY_TURN) as opened:
        session = opened.session("s", write_back="awaited")
        blocks = 0
        for number in range(50):
            turn = await session.turn(f"Where do I live? ({number})")
            hint = await turn.take_hint(wait_s=5)
            blocks += hint is not None
            if hint is not None:
                turn.record({"role": "user", "content": str(hint)})
            result = await call(turn.tools, "Read", file_path="home.md")
            calls = [{"id": "c", "type": "function", "function": {"name": "Read", "arguments": "{}"}}]
            turn.record({"role": "assistant", "content": None, "tool_calls": calls})
            turn.record({"role": "tool", "tool_call_id": "c", "content": result})
            await turn.finish("In Hangzhou.")
    assert memories(tmp_path) == ["home.md"] and blocks == 1 and len(model.asked) == 50
    assert not any("<memory-hint>" in text or "name: Home" in text for text in model.asked)


async def test_what_is_deleted_in_the_conversation_is_not_drawn_from_it(tmp_path: Path) -> None:
    """D3: the agent saves a fact, the user has it forgotten, and extraction of the same conversation does not bring it back."""
    model = extractor(reply(HOME))
    async with open_memory(tmp_path, model=model, config=Config(extract_every=4)) as opened:
        session = opened.session("s", write_back="awaited")
        turn = await session.turn("I live in Hangzhou.")
        content = "---\nname: Home\ndescription: city\ntype: user\n---\n\nHangzhou.\n"
        await call(turn.tools, "Write", file_path="user/home.md", content=content)
        await turn.finish("Saved.")
        turn = await session.turn("Forget where I live.")
        await call(turn.tools, "Delete", file_path="user/home.md")
        await turn.finish("Done.")
        assert len(model.asked) == 1 and [outcome.status for outcome in session.status.outcomes] == ["dropped"]
    assert memories(tmp_path) == []


async def test_the_marks_are_no_part_of_what_was_said(tmp_path: Path) -> None:
    """M1: where extraction stands is told by an entry of the journal that neither the window nor a search shows."""
    async with open_memory(tmp_path, model=extractor(reply(summary="Quokkas were discussed.")), config=EVERY_TURN) as opened:
        session = opened.session("s", write_back="awaited")
        await say(session, "Tell me about marsupials.")
        every = await opened.folder.journals.messages("s")
        assert [message.role for message in every] == ["user", "assistant", MARK]
        assert [message.role for message in await session.messages()] == ["user", "assistant"]
        assert await opened.folder.journals.search("quokkas") == []
