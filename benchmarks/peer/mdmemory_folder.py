"""mdmemory itself: a search, or with the argument `turn` all that it does for one reply."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from pathlib import Path

from child import serve

from mdmemory import Config, open_memory


class Memory:
    """An open memory, which looks at its folder before each answer; without a journal, as the others keep none."""

    async def build(self, folder: Path) -> None:
        """Open the folder and look at it."""
        (folder / ".mdmemory").mkdir()  # the first save makes it; without it nothing is watched
        self.memory = await AsyncExitStack().enter_async_context(open_memory(folder, config=Config(journal=False)))
        await self.memory.folder.refresh()

    async def ask(self, query: str) -> list[str]:
        """The files that a search finds, or that a hint brings."""
        if "turn" not in sys.argv:
            return [match.path for match in await self.memory.search(query)]
        async with self.memory.session().turn(query) as turn:
            await turn.system_prompt()
            hint = await turn.take_hint()
            await turn.finish("…")
        return [file.path for file in hint.files] if hint else []


if __name__ == "__main__":
    serve(Memory())
