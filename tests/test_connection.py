"""What the adapters are made of, without any framework."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from command import REPOSITORY, environment
from journaling import said_in

from mdmemory import Memory, open_memory
from mdmemory.adapters import bridge
from mdmemory.adapters.connection import Connection, text_of
from mdmemory.errors import ConfigError

HOME = "---\nname: Home\ndescription: city, walks\ntype: user\n---\n\nLives in Hangzhou.\n"
PARTS = [{"text": "a"}, {"image": 1}, {"text": "b"}]
NO_ADAPTERS = {"__init__", "bridge", "connection"}  # what they are made of
ADAPTERS = sorted(path for path in (REPOSITORY / "mdmemory/adapters").glob("*.py") if path.stem not in NO_ADAPTERS)


@pytest.fixture
def home(folder: Path) -> Path:
    """A memory file."""
    folder.mkdir()
    (folder / "home.md").write_text(HOME)
    return folder


@pytest.mark.parametrize("adapter", ADAPTERS, ids=[path.stem for path in ADAPTERS])
def test_an_adapter_has_at_most_100_lines(adapter: Path) -> None:
    """An adapter translates, and has no logic of its own."""
    assert len(adapter.read_text(encoding="utf-8").splitlines()) <= 100


def test_every_framework_has_an_extra_a_page_an_example_and_tests() -> None:
    """What tests/frameworks tries can be installed, is explained, and shown."""
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = [path.stem.removeprefix("test_") for path in (REPOSITORY / "tests/frameworks").glob("test_*.py")]
    index = (REPOSITORY / "docs/adapters/index.md").read_text(encoding="utf-8")
    for name in names:
        assert name.replace("_", "-") in extras and f"]({name}.md)" in index
        assert (REPOSITORY / f"docs/adapters/{name}.md").exists() and (REPOSITORY / f"examples/with_{name}.py").exists()
        assert (REPOSITORY / f"mdmemory/adapters/{name}.py").exists()
    used = {name for path in ADAPTERS for name in re.findall(r'with extra\("([\w-]+)"\)', path.read_text(encoding="utf-8"))}
    assert names and used == {name.replace("_", "-") for name in names} | {"anthropic"}  # whose tool is tried in this folder


def test_a_missing_framework_is_named_with_its_extra() -> None:
    """Importing an adapter without its framework says what to install."""
    code = "import sys; sys.modules['pydantic_ai'] = None; import mdmemory.adapters.pydantic_ai"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, encoding="utf-8", check=False)
    assert done.stderr.rstrip().endswith('There is no pydantic_ai. Install it: pip install "mdmemory[pydantic-ai]"')


async def test_hints_are_put_back_where_they_stood(home: Path, memory: Memory) -> None:
    """For a framework that forgets them: in each later call of the conversation, by whichever adapter, behind the same message."""
    run = await Connection(memory, "one", "", {}).begin("Any walks in my city?", is_first=True)
    first = await run.hinted(["system", "walks?"], str)
    assert first[:2] == ["system", "walks?"] and "> Lives in Hangzhou." in first[2]
    assert await run.hinted(["system", "walks?", "call", "result"], str) == [*first, "call", "result"]
    await run.finish("By the lake.")
    later = await Connection(memory, "one", "", {}).begin("Thanks for the walks in my city.")
    assert await later.hinted(["system", "walks?", "By the lake.", "thanks"], str) == [*first, "By the lake.", "thanks"]
    assert await later.hinted(["another agent's", "view"], str) == ["another agent's", "view"]
    assert await later.hinted([], str) == []


async def test_a_conversation_that_begins_anew_is_told_again(home: Path, memory: Memory) -> None:
    """What earlier runs were shown is not in the context of a run without earlier messages."""
    for _ in range(2):
        run = await Connection(memory, "one", "", {}).begin("Any walks in my city?", is_first=True)
        assert "> Lives in Hangzhou." in (await run.hinted(["walks?"], str))[1]
        await run.finish("By the lake.")


async def test_calls_are_noted_with_the_memorys_own_names(home: Path, memory: Memory) -> None:
    """C8: calls made together are one message; a prefix is not kept, since the memory knows its answers by the tools' names."""
    run = await Connection(memory, "one", "m_", {}).begin("Hello")
    run.called([("1", "m_Read", "{}")], "I look.")
    run.called([("2", "m_other", "{}")])
    run.answered("1", "read")
    run.answered("2", "other")
    await run.finish("Done.")
    _, called, *_ = await memory.session("one").messages()
    assert [call["function"]["name"] for call in called.data["tool_calls"]] == ["Read", "m_other"] and called.text == "I look."
    assert [role for role, _ in said_in(home, "one")] == ["user", "assistant", "tool", "tool", "assistant"]
    assert Connection(memory, None, "m_", {}).tools[0].name == "m_Read"
    assert (await run.call("m_Read", {"file_path": "home.md"})).text.endswith("Lives in Hangzhou.")


async def test_a_block_that_fails_ends_the_run(home: Path, memory: Memory) -> None:
    """The user's message is in the journal, and no reply."""
    run = await Connection(memory, "one", "", {}).begin("Hello")
    with pytest.raises(ZeroDivisionError):
        async with run:
            raise ZeroDivisionError
    assert said_in(home, "one") == [("user", "Hello")]


async def test_a_synchronous_call_wants_the_bridge(memory: Memory) -> None:
    """A memory of the event loop can't be waited for on it."""
    connection = Connection(memory, None, "", {})
    with pytest.raises(ConfigError, match=r"bridge\.open_memory"):
        connection.run(connection.begin("Hello"))


def test_a_bridged_memory_serves_calls_of_either_kind(home: Path) -> None:
    """Without an event loop, and on one after the other; a failure comes out as it is, and nothing is left running."""
    with bridge.open_memory(home) as memory:
        connection = Connection(memory, "one", "", {})
        run = connection.run(connection.begin("Any walks in my city?"))
        assert "> Lives in Hangzhou." in asyncio.run(run.hint()) and asyncio.run(run.hint()) == ""
        with pytest.raises(ZeroDivisionError), run:
            raise ZeroDivisionError
        with pytest.raises(ConfigError, match="mode"):
            bad = Connection(memory, None, "", {"mode": "all"})  # type: ignore[typeddict-item]  # as a program may pass it
            connection.run(bad.begin("Hello"))
    assert said_in(home, "one") == [("user", "Any walks in my city?")]


async def test_a_cancelled_wait_cancels_what_is_done_on_the_bridge(home: Path) -> None:
    """A host that gives up waiting leaves nothing running on the other loop."""
    ended = asyncio.Event()
    here = asyncio.get_running_loop()

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            here.call_soon_threadsafe(ended.set)

    with bridge.entered(open_memory(home)) as (to, _):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(to.wait(work()), 0.05)
        await asyncio.wait_for(ended.wait(), 10)


@pytest.mark.parametrize(("content", "text"), [("a", "a"), (PARTS, "a\nb"), (None, ""), ([], "")])
def test_the_text_of_a_message(content: object, text: str) -> None:
    """Text, or the parts that have one."""
    assert text_of(content) == text
