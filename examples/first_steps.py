"""Two conversations on one memory: the first saves a file, the second knows. Offline: python examples/first_steps.py FOLDER"""

import asyncio
import sys

import mdmemory

NOTE = """---
name: Where the user lives
description: home city, time zone, local recommendations
type: user
---

Lives in Hangzhou, China (UTC+8).
"""


async def main(folder: str) -> None:
    """Say what a model would say, and print what the memory makes of it."""
    # This model only chooses the files for hints. A real one is named by a string: model="openai:gpt-5-mini"
    model = mdmemory.ScriptedModel([{"files": [{"path": "user/home.md", "reason": "a walk starts from home"}]}])
    async with mdmemory.open_memory(folder, model=model) as memory:
        async with memory.session("monday").turn("Remember that I live in Hangzhou.") as turn:
            saved = await turn.tools.call("Write", {"file_path": "user/home.md", "content": NOTE})
            print(saved.text)
            await turn.finish("I will.")

        async with memory.session("tuesday").turn("Where should I go this evening?") as turn:
            system = await turn.system_prompt("You are a travel guide.")
            print(system[system.index("## Index") :])
            print(await turn.take_hint(wait_s=5))
            await turn.finish("Around West Lake.")
            print(f"\nchosen: {turn.status.chosen}")


asyncio.run(main(sys.argv[1]))
