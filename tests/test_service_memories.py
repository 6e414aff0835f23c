"""The memories that are open in a worker: how many, for how long, and never closed while in use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from conversations import memory, reply
from service_app import until

from mdmemory import Config, ScriptedModel
from mdmemory.errors import Unavailable
from mdmemory.models import Model
from mdmemory.service.memories import Memories
from mdmemory.service.metrics import Metrics
from mdmemory.service.opened import Opened, open_for
from mdmemory.service.serving import Serving
from mdmemory.service.users import User
from mdmemory.settings import Settings

Make = Callable[..., Memories]


class Opening:
    """Opens real memories, and notes which are open, and how often each was opened."""

    def __init__(self, home: Path, model: Model | None = None) -> None:
        settings = Settings(config=Config(extract_every=1, summary_over=0, cache=False))
        self.serving, self.metrics, self.model = Serving(f"{home}/{{user}}", "x" * 40, settings), Metrics(), model
        self.open: list[str] = []
        self.times: dict[str, int] = {}
        self.slow_s, self.fails = 0.0, False

    @asynccontextmanager
    async def __call__(self, user: User) -> AsyncIterator[Opened]:
        """Open one."""
        await asyncio.sleep(self.slow_s)
        if self.fails:
            raise Unavailable("the storage is away")
        async with open_for(user, self.serving, self.model, "csrf", self.metrics) as opened:
            assert user.name not in self.open or user.read_only, "open twice"
            self.open.append(user.name)
            self.times[user.name] = self.times.get(user.name, 0) + 1
            yield opened
            await asyncio.sleep(self.slow_s)
        self.open.remove(user.name)


async def test_a_memory_is_opened_once_for_all_who_ask(tmp_path: Path) -> None:
    """Twenty requests of a user at once share one, and so do later ones; a read-only token has one of its own."""
    opening = Opening(tmp_path)
    opening.slow_s = 0.05
    memories = Memories(opening, 10, 60)

    async def use(user: User) -> Any:
        async with memories.of(user) as opened:
            await asyncio.sleep(0.01)
            return opened.memory

    found = await asyncio.gather(*(use(User("alice")) for _ in range(20)))
    assert len({id(each) for each in found}) == 1 and opening.times == {"alice": 1}
    only_read = await use(User("alice", read_only=True))
    assert only_read is not found[0] and only_read.folder.is_read_only and not found[0].folder.is_read_only
    await memories.close(5)
    assert opening.open == [] and len(memories) == 0


async def test_those_used_longest_ago_are_closed_first(tmp_path: Path) -> None:
    """Of ten that nobody uses three stay; one in use is never closed, however old it is."""
    opening = Opening(tmp_path)
    memories = Memories(opening, 3, 60)
    async with AsyncExitStack() as stack:
        kept = await stack.enter_async_context(memories.of(User("kept")))
        for n in range(10):
            async with memories.of(User(f"user{n}")):
                pass
        await until(lambda: len(opening.open) == 4)
        assert opening.open == ["kept", "user7", "user8", "user9"]
        await kept.memory.folder.refresh()
    async with memories.of(User("user0")):
        pass
    await until(lambda: len(opening.open) == 3)
    assert opening.times["user0"] == 2 and opening.times["kept"] == 1
    await memories.close(5)
    assert opening.open == []


async def test_idle_ones_are_closed_and_come_back(tmp_path: Path) -> None:
    """After a while without use a memory is closed; who comes while it closes gets it anew, and never two of it."""
    opening = Opening(tmp_path)
    opening.slow_s = 0.1
    memories = Memories(opening, 10, 0.2)
    async with memories.of(User("alice")):
        await asyncio.sleep(0.6)
        assert opening.open == ["alice"]
    for _ in range(3):
        place = memories._places[("alice", False)]
        await until(lambda place=place: place.leave.is_set())
        async with memories.of(User("alice")):
            assert opening.open == ["alice"]
    assert opening.times["alice"] == 4
    await memories.close(5)


async def test_one_that_still_writes_stays(tmp_path: Path) -> None:
    """A session that draws memories in the background keeps its memory open; it is closed when that is done."""

    async def slow(messages: Any) -> Any:
        await asyncio.sleep(1.0)
        return (
            reply(memory("Harbour", "The boat lies in Lisbon.")) if "long-term memory" in messages[0]["content"] else {"files": []}
        )

    opening = Opening(tmp_path, ScriptedModel([slow] * 9))
    memories = Memories(opening, 0, 0.1)
    async with memories.of(User("alice")) as opened:
        turn = await opened.memory.session("monday", mode="agent").turn("The boat lies in Lisbon.")
        await turn.finish("I see.")
    assert opened.memory.is_busy
    await asyncio.sleep(0.5)
    assert opening.open == ["alice"]
    await until(lambda: opening.open == [])
    assert any("Lisbon" in path.read_text() for path in (tmp_path / "alice").glob("user/*.md"))
    await memories.close(5)


async def test_one_that_can_not_be_opened_is_tried_again(tmp_path: Path) -> None:
    """All who wait are told why; the next request tries anew."""
    opening = Opening(tmp_path)
    opening.fails, opening.slow_s = True, 0.05
    memories = Memories(opening, 10, 60)

    async def use() -> None:
        async with memories.of(User("alice")):
            pass

    results = await asyncio.gather(use(), use(), use(), return_exceptions=True)
    assert [type(result) for result in results] == [Unavailable] * 3 and len(memories) == 0
    opening.fails = False
    await use()
    assert opening.times == {"alice": 1}
    await memories.close(5)
    with pytest.raises(Unavailable, match="about to end"):
        await use()


async def test_one_that_does_not_close_holds_nothing_up(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The end has a bound, and what was given up is logged."""
    opening = Opening(tmp_path)
    memories = Memories(opening, 10, 60)
    async with memories.of(User("alice")):
        opening.slow_s = 30
    async with asyncio.timeout(5):
        await memories.close(0.2)
    assert "could not be closed" in caplog.text
