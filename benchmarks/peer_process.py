"""The environments of the peers, and the processes that answer in them."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "peer"
ENVIRONMENTS = Path(sys.prefix) / "peers"
PATIENCE_S = 600


class Failed(Exception):
    """A peer can't be installed, or did not answer; with the reason."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a peer used and found.

    Args:
        opened: how often it opened a Markdown file.
        found: paths for each query.
    """

    cpu_s: float
    opened: int
    found: list[list[str]]


def python_of(name: str, needs: Sequence[str], least: tuple[int, int]) -> Path:
    """The Python of the environment that has these requirements, made or renewed when it lacks them; ours for none.

    Raises:
        Failed: with pip's last word.
    """
    if not needs:
        return Path(sys.executable)
    base = _python_from(least)
    place = ENVIRONMENTS / name
    python, stamp, wanted = place / "bin" / "python", place / "installed", f"{base} {' '.join(needs)}"
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"installing {needs[0]} …", file=sys.stderr, flush=True)
        shutil.rmtree(place, ignore_errors=True)
        _run([base, "-m", "venv", "--without-pip", str(place)])
        _run([sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--disable-pip-version-check", *needs])
        stamp.write_text(wanted)
    return python


def version_of(python: Path, distribution: str) -> str:
    """The installed version."""
    name = distribution.partition("[")[0].partition(">")[0]
    code = f"from importlib.metadata import version; print(version({name!r}))"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "?"


def _python_from(least: tuple[int, int]) -> str:
    if sys.version_info >= least:
        return sys.executable
    wanted = f"import sys; sys.exit(sys.version_info < {least})"
    on_path = filter(None, (shutil.which(f"python3.{minor}") for minor in range(least[1], 20)))
    for python in (*on_path, *map(str, sorted(Path.home().glob(".pyenv/versions/3.*/bin/python")))):
        if subprocess.run([python, "-c", wanted], capture_output=True, check=False).returncode == 0:
            return python
    raise Failed(f"it needs Python {least[0]}.{least[1]} or newer, and there is none here")


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise Failed(lines[-1] if lines else f"exit code {done.returncode}")


class Process:
    """A peer that answers about its own copy of some notes, in `notes`, with a home of its own and no network to ask for models."""

    def __init__(self, python: Path, script: Sequence[str], notes: Path, *, is_ours: bool) -> None:
        self._place = tempfile.TemporaryDirectory()
        home = Path(self._place.name)
        self.notes, self._log = home / "work" / "notes", home / "log"
        shutil.copytree(notes, self.notes)
        env = {**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "HF_HUB_OFFLINE": "1"}
        env |= {"BASIC_MEMORY_HOME": str(self.notes), "LOGFIRE_IGNORE_NO_CONFIG": "1"}
        if not is_ours:
            env.pop("PYTHONPATH", None)
        with self._log.open("w") as log:
            command = [str(python), str(SCRIPTS / script[0]), *script[1:]]
            pipe = subprocess.PIPE
            self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=log, text=True, env=env, cwd=home)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._place.cleanup()

    def build(self) -> Answer:
        """Index the notes."""
        return self._do({"do": "build", "folder": str(self.notes)})

    def ask(self, queries: Sequence[str]) -> Answer:
        """Answer."""
        return self._do({"do": "ask", "queries": queries})

    def _do(self, command: object) -> Answer:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(command) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Failed(self._last_words()) from None
        if not select.select([self._process.stdout], [], [], PATIENCE_S)[0]:
            raise Failed(f"no answer within {PATIENCE_S} s")
        line = self._process.stdout.readline()
        if not line:
            raise Failed(self._last_words())
        return Answer(**json.loads(line))

    def _last_words(self) -> str:
        self._process.wait(10)
        lines = self._log.read_text(errors="replace").split("\n")
        return next((line for line in reversed(lines) if line.strip()), "it said nothing").replace(self._place.name, "…")
