"""The real command, as a process of its own, away from the repository."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
COMMAND = [sys.executable, "-m", "mdmemory"]
# Root may read everything; without these capabilities it is a user like any other.
WITHOUT_RIGHTS = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] if os.getuid() == 0 else []
Finished = subprocess.CompletedProcess[str]


def environment(**more: str) -> dict[str, str]:
    """The environment, in which Python finds the package from any folder, and no proxy stands before the loopback."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY), "NO_PROXY": "127.0.0.1", **more}


def mdmemory(*arguments: str | Path, cwd: Path, stdin: str = "", prefix: Sequence[str] = (), **env: str) -> Finished:
    """Run the command to its end; none may end in a traceback.

    Args:
        prefix: a command that runs it.
        env: variables of the environment, besides those that are there.
    """
    command = [*prefix, *COMMAND, *map(str, arguments)]
    done = subprocess.run(
        command, cwd=cwd, input=stdin, env=environment(**env), capture_output=True, encoding="utf-8", timeout=60, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


def write(path: Path, text: str | bytes) -> None:
    """Write a file as an editor would, with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())


def note(name: str, description: str, body: str = "", *, kind: str = "user") -> str:
    """The text of a memory file."""
    return f"---\nname: {name}\ndescription: {description}\ntype: {kind}\n---\n\n{body or name}\n"
