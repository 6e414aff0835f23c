"""basic-memory: `reindex --search` of a project, then its search_notes tool in the same process, in its text mode: no model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from basic_memory.mcp.tools import search_notes
from child import serve
from loguru import logger


class Memory:
    """The project `main`, whose folder BASIC_MEMORY_HOME names."""

    async def build(self, folder: Path) -> None:
        """Index the folder, as its command does."""
        logger.remove()
        subprocess.run([Path(sys.executable).with_name("basic-memory"), "reindex", "--search"], stdout=2, check=True)

    async def ask(self, query: str) -> list[str]:
        """The tool's files."""
        found = await search_notes(query=query, project="main", page_size=10, search_type="text", output_format="json")
        return [each["file_path"] for each in found["results"]]


if __name__ == "__main__":
    serve(Memory())
