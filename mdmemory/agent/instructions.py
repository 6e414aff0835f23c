"""What an agent is told of its memory, at the top of its system prompt. Floor 4."""

from __future__ import annotations

from mdmemory.folder.any_folder import Folder
from mdmemory.render import render


async def instructions(folder: Folder) -> str:
    """How to use the memory, and its index as of the last `refresh`."""
    index = await folder.prompt_index()
    return render(
        "instructions",
        folder.config.prompts_dir,
        types=folder.types,
        places=folder.places,
        index=index.text.strip(),
        can_write=not folder.is_read_only,
    )
