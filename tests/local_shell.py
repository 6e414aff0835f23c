"""Shells that are plain processes of this machine: the `CommandShell` of docs/backends/your-own.md, counted."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mdmemory.backends.shell import Completed

KINDS = [name for name in ("dash", "busybox") if shutil.which(name)]
PAGE = Path(__file__).parent.parent / "docs/backends/your-own.md"


def code_of_the_page() -> dict[str, Any]:
    """What the page's `command_shell.py` defines."""
    found = re.search(r"^```python command_shell\.py\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found
    names: dict[str, Any] = {"__name__": "command_shell"}
    exec(compile(found[1], "command_shell.py", "exec"), names)
    return names


CommandShell = code_of_the_page()["CommandShell"]


class LocalShell:
    """Runs commands here, with `sh` and the tools of one kind.

    Args:
        kind: `dash` with the machine's own tools, or `busybox` with its applets.
        place: a folder for a link named `sh`.
        shims: a folder of programs that stand before the machine's own.
    """

    def __init__(self, kind: str, place: Path, shims: Path | None = None) -> None:
        tools = place / f"{kind}-bin"
        tools.mkdir(parents=True, exist_ok=True)
        if not (tools / "sh").exists():
            (tools / "sh").symlink_to(shutil.which(kind) or kind)
        self._shims = shims
        self._shell = CommandShell("env", "-i", f"PATH={tools}:{os.environ['PATH']}")
        self.verbs: list[str] = []

    async def run(self, argv: Sequence[str], stdin: bytes, *, timeout_s: float, max_output_bytes: int) -> Completed:
        """Run a command, as `Shell.run`, and note which verb it was for."""
        self.verbs.append(argv[argv.index("mdmemory") + 1])
        if self._shims is not None:
            argv = [part.replace("PATH=/usr/bin:", f"PATH={self._shims}:/usr/bin:") for part in argv]
        return await self._shell.run(argv, stdin, timeout_s=timeout_s, max_output_bytes=max_output_bytes)

    async def close(self) -> None:
        """Nothing is held."""
        await self._shell.close()
