"""A journal that can't be written never breaks a reply, and what was said is written when it can be."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from children import NOBODY, end, open_folder, start
from journaling import journal_of, said_in, talk

from mdmemory import Config, open_memory
from mdmemory.backends.local import LocalBackend
from mdmemory.backends.protocol import Op
from mdmemory.errors import InvalidPath, Unavailable

HOME = "---\nname: Home\ndescription: city of the user\ntype: user\n---\n\nLives in Hangzhou.\n"
CALL = {"id": "call_1", "type": "function", "function": {"name": "Read", "arguments": '{"file_path": "home.md"}'}}
CALLING = {"role": "assistant", "content": None, "tool_calls": [CALL]}


class Flaky(LocalBackend):
    """Fails to commit while it is told to."""

    broken = False

    async def commit(self, commit_id: str, ops: Sequence[Op]) -> Mapping[str, str]:
        """Fail, or commit."""
        if self.broken:
            raise Unavailable("Could not save: the disk is full; nothing was written. Mend that and try again.")
        return await super().commit(commit_id, ops)


async def test_what_could_not_be_written_is_written_later(tmp_path: Path) -> None:
    """R6: on a full disk the reply completes and the status says it once; with the next message everything is there, in order."""
    backend = Flaky(tmp_path)
    async with open_memory(backend) as memory:
        await talk(memory, "s", ("one", "1"))
        backend.broken = True
        async with memory.session("s").turn("two") as turn:
            await turn.finish("2")
        assert str(turn.status.degraded).startswith("degraded: the conversation is not in the journal yet")
        assert str(turn.status.degraded).count("degraded") == 1 and "the disk is full" in str(turn.status.degraded)
        backend.broken = False
        async with memory.session("s").turn("three") as turn:
            await turn.finish("3")
        assert turn.status.degraded is None
        backend.broken = True
        await talk(memory, "s", ("four", "4"))
        backend.broken = False
    expected = [
        (role, text)
        for n, word in enumerate(["one", "two", "three", "four"], 1)
        for role, text in (("user", word), ("assistant", str(n)))
    ]
    assert said_in(tmp_path, "s") == expected


class Slow(LocalBackend):
    """Takes its time to commit."""

    async def commit(self, commit_id: str, ops: Sequence[Op]) -> Mapping[str, str]:
        """Commit, after and before a while."""
        await asyncio.sleep(0.05)
        try:
            return await super().commit(commit_id, ops)
        finally:
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("after_s", [0.02, 0.09])
async def test_ends_of_turns_that_are_cancelled(tmp_path: Path, after_s: float) -> None:
    """R6: two replies whose ends are cancelled, one while it writes and one while it waits for that, are kept, each once."""
    async with open_memory(Slow(tmp_path)) as memory:
        session = memory.session("s")
        turns = [await session.turn(text) for text in ("one", "two")]
        ends = [asyncio.create_task(turn.finish(reply)) for turn, reply in zip(turns, ("1", "2"), strict=True)]
        await asyncio.sleep(after_s)
        for each in reversed(ends):
            each.cancel()
        assert {type(found) for found in await asyncio.gather(*ends, return_exceptions=True)} == {asyncio.CancelledError}
        await talk(memory, "s", ("three", "3"))
    assert [text for _, text in said_in(tmp_path, "s")] == ["one", "two", "1", "2", "three", "3"]
    assert journal_of(tmp_path, "s").count(b"<!-- end ") == 6


def test_a_folder_that_can_only_be_read_does_not_break_the_reply() -> None:
    """R6: in a folder without the right to write, the reply completes, hints are given, and the status says degraded."""

    async def reply(root: Path) -> None:
        async with open_memory(root) as memory, memory.session("s").turn("In which city is home?") as turn:
            assert "Home" in await turn.system_prompt()
            assert "Hangzhou" in str(await turn.take_hint())
            await turn.finish("In Hangzhou.")
        assert "degraded: " in str(turn.status.degraded) and "read-only" in str(turn.status.degraded)
        assert str(root) not in str(turn.status.degraded)

    with open_folder() as root:
        (root / "home.md").write_text(HOME)
        root.chmod(0o555)
        assert end(start(lambda: asyncio.run(reply(root)), uid=NOBODY)) == 0
        assert os.listdir(root) == ["home.md"]


async def test_a_folder_that_comes_back_gets_what_was_said(tmp_path: Path) -> None:
    """R6: what was said while the folder was away is written when it is there again."""
    root, away = tmp_path / "memory", tmp_path / "away"
    async with open_memory(root, config=Config(watch=False)) as memory:
        await talk(memory, "s", ("one", "1"))
        root.rename(away)
        await talk(memory, "s", ("two", "2"))
        away.rename(root)
        await talk(memory, "s", ("three", "3"))
    assert [text for _, text in said_in(root, "s")] == ["one", "1", "two", "2", "three", "3"]


async def test_a_turn_that_breaks_off_leaves_what_was_done(tmp_path: Path) -> None:
    """A turn that ends with an error, or is cancelled, leaves what was said and recorded up to then."""
    async with open_memory(tmp_path) as memory:
        with pytest.raises(RuntimeError):
            async with memory.session("s").turn("Hello") as turn:
                turn.record(CALLING)
                raise RuntimeError("the model is down")

        async def cut_short() -> None:
            async with memory.session("s").turn("Again") as turn:
                turn.record({"role": "assistant", "content": "Let me"})
                await asyncio.sleep(60)

        task = asyncio.create_task(cut_short())
        await asyncio.sleep(0.2)
        task.cancel()
        await asyncio.wait([task])
    assert said_in(tmp_path, "s") == [("user", "Hello"), ("assistant", ""), ("user", "Again"), ("assistant", "Let me")]


async def test_what_no_journal_can_hold_is_left_out_and_said(tmp_path: Path) -> None:
    """Half a character in a message costs that message only, and a session whose name is too long for a file is refused."""
    async with open_memory(tmp_path) as memory:
        async with memory.session("s").turn("Hello") as turn:
            turn.record({"role": "assistant", "content": "\ud83d"})
            await turn.finish("Hi")
        assert "surrogate" in str(turn.status.degraded)
        with pytest.raises(InvalidPath, match="bytes"):
            memory.session("x" * 300)
    assert said_in(tmp_path, "s") == [("user", "Hello"), ("assistant", "Hi")]
