"""What a turn leaves in the journal: what was said and done, word for word, whatever goes wrong around it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from counting import CountingBackend
from journaling import journal_of, said_in, talk

from mdmemory import Config, open_memory, read_only
from mdmemory.backends.local import LocalBackend
from mdmemory.backends.protocol import Op
from mdmemory.files.journal import parse

HOME = "---\nname: Home\ndescription: city of the user\ntype: user\n---\n\nLives in Hangzhou.\n"
CALL = {"id": "call_1", "type": "function", "function": {"name": "Read", "arguments": '{"file_path": "home.md"}'}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}


async def test_a_conversation_survives_a_restart(tmp_path: Path) -> None:
    """R5, V1: three messages in one process are all in the window of the next, word for word."""
    async with open_memory(tmp_path) as memory:
        await talk(memory, "s", ("Hello\r\n", "Hi  "), ("Bye", ""))
    async with open_memory(tmp_path) as memory:
        messages = await memory.session("s").messages(200)
    assert [message.data for message in messages] == [
        {"role": "user", "content": "Hello\r\n"},
        {"role": "assistant", "content": "Hi  "},
        {"role": "user", "content": "Bye"},
    ]


async def test_a_turn_with_tools_resumes_in_order(tmp_path: Path) -> None:
    """C8: user, assistant and tool entries come back as the API takes them, in order, in the next process."""
    result = {"role": "tool", "tool_call_id": "call_1", "content": "     1\tLives in Hangzhou."}
    async with open_memory(tmp_path) as memory, memory.session("s").turn("Where do I live?") as turn:
        turn.record(CALLING)
        turn.record(result)
        await turn.finish("In Hangzhou.")
    async with open_memory(tmp_path) as memory:
        messages = await memory.session("s").messages()
    assert [message.data for message in messages] == [
        {"role": "user", "content": "Where do I live?"},
        CALLING,
        result,
        {"role": "assistant", "content": "In Hangzhou."},
    ]


async def test_a_reply_costs_one_append(tmp_path: Path) -> None:
    """What was recorded and the reply go with one commit that has one append; the user's message goes beside the look."""
    backend = CountingBackend(LocalBackend(tmp_path))
    async with open_memory(backend, config=Config(watch=False)) as memory:
        await talk(memory, "s", ("first", "of the process"))
        turn = await memory.session("s").turn("Where do I live?")
        backend.calls.clear()
        for _ in range(10):
            turn.record(CALLING)
            turn.record({"role": "tool", "tool_call_id": "call_1", "content": "…"})
        await turn.finish("In Hangzhou.")
        assert backend.calls == ["commit"] and len(said_in(tmp_path, "s")) == 2 + 1 + 20 + 1


async def test_what_the_user_said_is_written_while_the_folder_is_looked_at(tmp_path: Path) -> None:
    """The append at a turn's start and the look at the folder run at the same time: neither waits for the other."""

    class Meeting(CountingBackend):
        """From the second turn on, a scan and a commit end only when both have begun."""

        def __init__(self, root: Path) -> None:
            super().__init__(LocalBackend(root))
            self.both: asyncio.Barrier | None = None

        async def scan(self, *args: Any, **more: Any) -> Any:
            """Wait for the commit."""
            if self.both:
                await asyncio.wait_for(self.both.wait(), 5)
            return await super().scan(*args, **more)

        async def commit(self, commit_id: str, ops: Sequence[Op]) -> Mapping[str, str]:
            """Wait for the scan."""
            if self.both:
                await asyncio.wait_for(self.both.wait(), 5)
            return await super().commit(commit_id, ops)

    backend = Meeting(tmp_path)
    async with open_memory(backend, config=Config(watch=False)) as memory:
        await talk(memory, "s", ("Hello", "Hi"))
        backend.both = asyncio.Barrier(2)
        turn = await memory.session("s").turn("Again")
        backend.both = None
        await turn.finish("Yes")
    assert turn.status.degraded is None and len(said_in(tmp_path, "s")) == 4


async def test_hints_are_no_part_of_what_was_said(tmp_path: Path) -> None:
    """P3: a hint that the host records as a message, within one, as a part, or at the end of a tool's answer is left out."""
    (tmp_path / "home.md").write_text(HOME)
    async with open_memory(tmp_path) as memory:
        async with memory.session("s").turn("In which city is home?") as turn:
            hint = str(await turn.take_hint())
            assert "Hangzhou" in hint
            turn.record({"role": "user", "content": hint})
            turn.record({"role": "user", "content": f"In which city is home?\n\n{hint}"})
            turn.record({"role": "user", "content": [{"type": "text", "text": hint}, {"type": "text", "text": "And?"}]})
            turn.record({"role": "tool", "tool_call_id": "c", "content": f"12 °C\n\n{hint}"})
            await turn.finish("In Hangzhou.")
        async with memory.session("s").turn(f"And now?\n\n{hint}") as turn:
            await turn.finish("The same.")
        async with memory.session("t").turn("Which city is home, please?") as turn:
            answer = await turn.tools.call("Read", {"file_path": "home.md"})
            assert "memory-hint" in answer.text
            turn.record({"role": "tool", "tool_call_id": "c", "content": answer.text})
    assert said_in(tmp_path, "s") == [
        ("user", "In which city is home?"),
        ("user", "And?"),
        ("tool", "12 °C"),
        ("assistant", "In Hangzhou."),
        ("user", "And now?"),
        ("assistant", "The same."),
    ]
    assert b"memory-hint" not in journal_of(tmp_path, "s") + journal_of(tmp_path, "t")


async def test_the_memorys_prompt_is_no_part_of_what_was_said(tmp_path: Path) -> None:
    """P3: of a system message that the host records, the memory's own instructions and index are left out."""
    async with open_memory(tmp_path) as memory, memory.session("s").turn("Hello") as turn:
        turn.record({"role": "system", "content": await turn.system_prompt("You are a surveyor.")})
    assert said_in(tmp_path, "s") == [("user", "Hello"), ("system", "You are a surveyor.")]


async def test_what_comes_twice_is_written_once(tmp_path: Path) -> None:
    """A host that also records the user's message and the reply, which the turn knows, leaves each once."""
    async with open_memory(tmp_path) as memory:
        async with memory.session("s").turn("Hello") as turn:
            turn.record({"role": "user", "content": "Hello"})
            turn.record({"role": "assistant", "content": "Hi"})
            await turn.finish("Hi")
            await turn.finish("Hi")
        await talk(memory, "s", ("Hello", "Hi"))
    assert said_in(tmp_path, "s") == [("user", "Hello"), ("assistant", "Hi")] * 2


async def test_a_turn_that_comes_again_changes_nothing(tmp_path: Path) -> None:
    """R2, V1: with an id of its own, a turn saved twice is there once; of another reply the status says that it is not."""
    async with open_memory(tmp_path) as memory, memory.session("s").turn("Hello", id="s-1") as turn:
        turn.record(CALLING)
        await turn.finish("Hi")
    before = journal_of(tmp_path, "s")
    assert [message.id for message in parse(before).messages] == ["s-1", "s-1-1", "s-1-2"]
    for reply in ("Hi", "Good morning"):
        async with open_memory(tmp_path) as memory, memory.session("s").turn("Hello", id="s-1") as turn:
            turn.record(CALLING)
            await turn.finish(reply)
        assert journal_of(tmp_path, "s") == before
        assert (turn.status.degraded is None) == (reply == "Hi")
    assert "s-1-2" in str(turn.status.degraded)


async def test_nothing_is_written_where_that_is_not_wanted(tmp_path: Path) -> None:
    """Without the journal, and in a folder opened as read-only, a turn writes nothing and misses nothing."""
    (tmp_path / "home.md").write_text(HOME)
    for settings in ({"config": Config(journal=False)}, {"policy": read_only}):
        async with open_memory(tmp_path, **settings) as memory:  # type: ignore[arg-type]  # one of its settings
            async with memory.session("s").turn("Hello") as turn:
                turn.record({"role": "assistant", "content": object()})
                await turn.finish("Hi")
            assert turn.status.degraded is None and await memory.session("s").messages() == []
    assert not (tmp_path / "journal").exists()


async def test_the_journal_is_no_memory_and_no_tool_writes_there(tmp_path: Path) -> None:
    """Journals are in no index and no search of memory files; Read shows them, Write, Edit and Delete refuse to touch them."""
    async with open_memory(tmp_path) as memory:
        await talk(memory, "s", ("I collect xylophones", "Nice"))
        [place] = tmp_path.glob("journal/*/*/s.md")
        path = place.relative_to(tmp_path).as_posix()
        before = place.read_bytes()
        await memory.folder.refresh()
        assert memory.folder.files == {} and await memory.search("xylophones") == []
        assert "I collect xylophones" in (await memory.tools.call("Read", {"file_path": path})).text
        for name, arguments in (
            ("Write", {"content": HOME}),
            ("Edit", {"old_string": "Nice", "new_string": "Strange"}),
            ("Delete", {}),
        ):
            result = await memory.tools.call(name, {"file_path": path, **arguments})
            assert result.is_error and "written by conversations only" in result.text
    assert place.read_bytes() == before


async def test_two_memories_share_nothing(tmp_path: Path) -> None:
    """G5: two memories with sessions of one name keep them apart."""
    async with open_memory(tmp_path / "a") as one, open_memory(tmp_path / "b") as other:
        await talk(one, "s", ("Hello", "Hi"))
        assert await other.session("s").messages() == [] and (await other.context("Hello")).window == ()
    assert not (tmp_path / "b").exists()


async def test_a_copied_folder_remembers_the_same(tmp_path: Path) -> None:
    """G4: a copy of the folder gives the same window and finds the same."""
    async with open_memory(tmp_path / "a") as memory:
        await talk(memory, "old", ("The harbour is in Lisbon", "I see"))
        await talk(memory, "s", ("Hello", "Hi"))
        before = str(await memory.context("harbour", session="s"))
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    async with open_memory(tmp_path / "b") as memory:
        assert str(await memory.context("harbour", session="s")) == before and "Lisbon" in before
