"""What open pages are told, and what a page that does not listen costs."""

from __future__ import annotations

import asyncio
from pathlib import Path

from command import note, write

from mdmemory.memory import open_memory
from mdmemory.web.news import MAX_WAITING, News


async def test_a_page_that_takes_nothing_is_kept_no_more_than_so_much(tmp_path: Path) -> None:
    """Its stream ends after a bound, so that what waits for it does not grow without one; who listens hears all."""
    write(tmp_path / "memory/home.md", note("Home", "where I live"))
    async with open_memory(tmp_path / "memory") as memory:
        news = News(memory.folder)
        stalled, heard = news.stream(), news.stream()
        await anext(stalled)
        await anext(heard)
        for number in range(MAX_WAITING + 20):
            news._tell([f"n{number}.md"], is_journal=False)
            assert f"n{number}.md" in await anext(heard)
        assert [event async for event in stalled] == []
        await heard.aclose()
        await asyncio.sleep(0)
        assert not news.is_full and not news._listeners
