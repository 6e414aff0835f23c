"""A person edits a file while an agent works on it; both are kept. Offline: python examples/person_and_agent.py FOLDER"""

import asyncio
import sys
from pathlib import Path

import mdmemory

NOTE = """---
name: Release plan
description: dates and owners of the next release
type: project
---

Freeze: June 3
Release: June 10

Owner: Priya
"""


async def main(folder: str) -> None:
    """Let both write, first on different lines and then on the same one."""
    file = Path(folder, "plan.md")
    async with mdmemory.open_memory(folder) as memory:
        agent = memory.session("planning").turn("The freeze is two days later.")
        async with agent as turn:
            await turn.tools.call("Write", {"file_path": "plan.md", "content": NOTE})

            file.write_text(file.read_text().replace("Priya", "Priya, with Sam"))  # in an editor, say
            edit = {"file_path": "plan.md", "old_string": "Freeze: June 3", "new_string": "Freeze: June 5"}
            print((await turn.tools.call("Edit", edit)).text)
            print(file.read_text().partition("---\n\n")[2])

            file.write_text(file.read_text().replace("June 10", "June 12"))
            edit = {"file_path": "plan.md", "old_string": "Release: June 10", "new_string": "Release: June 17"}
            print((await turn.tools.call("Edit", edit)).text)


asyncio.run(main(sys.argv[1]))
