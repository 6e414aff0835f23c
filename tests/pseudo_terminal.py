"""A command on a pseudo-terminal: what it shows a person, and what a person types."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from pathlib import Path
from typing import Self

from command import COMMAND, environment

_WHAT_READLINE_SAYS = re.compile(r"\x1b\[\?2004[hl]\r?")  # the switch for pasting, which is no colour
CTRL_C, CTRL_D = "\x03", "\x04"


class Terminal:
    """A running command; a context manager.

    Args:
        columns: the width of the terminal.
        env: variables of the environment, besides those that are there.
    """

    def __init__(self, *arguments: str | Path, cwd: Path, columns: int = 80, **env: str) -> None:
        self._main, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        settings = environment(**{"TERM": "xterm", **env})
        settings.pop("COLUMNS", None)
        self._process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)],
            cwd=cwd,
            env=settings,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # so that Ctrl-C typed here is a signal there
        )
        os.close(terminal)
        self._bytes = b""
        self.shown = ""
        self._waited_for = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        os.close(self._main)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self._main, text.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C as a person does, who has read the question: readline misses what comes just after its prompt."""
        time.sleep(0.5)
        self.type(CTRL_C)

    def wait_for(self, text: str, *, seconds: float = 30) -> str:
        """Look until the text is shown, after what was waited for before; returns what is shown from there to its end."""
        start, ends = self._waited_for, time.monotonic() + seconds
        while (found := self.shown.find(text, start)) < 0:
            assert time.monotonic() < ends and self._look(ends), f"{text!r} was not shown, only:\n{self.shown[start:]}"
        self._waited_for = found + len(text)
        return self.shown[start : self._waited_for]

    def end(self, *, seconds: float = 30) -> int:
        """Wait for the command to end; returns its exit code."""
        ends = time.monotonic() + seconds
        while self._look(ends):
            assert time.monotonic() < ends, f"still running:\n{self.shown}"
        assert "Traceback" not in self.shown, self.shown
        return self._process.wait(10)

    def _look(self, ends: float) -> bool:
        """Take in what comes; False when the command has closed its terminal."""
        if not select.select([self._main], [], [], max(0, ends - time.monotonic()))[0]:
            return True
        data = b""
        with contextlib.suppress(OSError):  # how Linux says that nobody is there any more
            data = os.read(self._main, 65_536)
        self._bytes += data
        self.shown = _WHAT_READLINE_SAYS.sub("", self._bytes.decode("utf-8", "replace").replace("\r\n", "\n"))
        return bool(data)


def screen(*arguments: str | Path, cwd: Path, columns: int = 80, **env: str) -> tuple[int, str]:
    """The exit code of a command and what it showed on a terminal."""
    with Terminal(*arguments, cwd=cwd, columns=columns, **env) as terminal:
        return terminal.end(), terminal.shown
