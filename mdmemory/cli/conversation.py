"""A conversation in a terminal, or as lines of JSON: what is said is streamed, what the memory does is shown beside it. Floor 8."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import AsyncExitStack
from typing import Any, Protocol

import click

from mdmemory.cli.chat_loop import ChatModel, Message, run_turn
from mdmemory.cli.terminal import harmless, one_line, opened, print_json
from mdmemory.errors import MdmemoryError
from mdmemory.models import Model

_LABEL = "{:<7}".format  # `agent` and two spaces


class Screen(Protocol):
    """Shows a conversation."""

    def heard(self, text: str) -> None:
        """The user's message."""
        ...

    def said(self, piece: str) -> None:
        """A piece of what the agent says."""
        ...

    def noted(self, kind: str, line: str) -> None:
        """A tool call or a hint."""
        ...

    def ended(self) -> None:
        """The reply is over, or broke off."""
        ...


class PlainScreen:
    """For people: who speaks stands at the left, tools and hints are dimmed."""

    def __init__(self) -> None:
        self._speaking = False

    def heard(self, text: str) -> None:
        """Shown only where it was not typed."""
        click.echo(f"{_LABEL('you')}{harmless(text)}")

    def said(self, piece: str) -> None:
        """Shown at once."""
        click.echo(f"{'' if self._speaking else _LABEL('agent')}{harmless(piece)}", nl=False)
        self._speaking = True

    def noted(self, kind: str, line: str) -> None:
        """On a line of its own."""
        self.ended()
        click.echo(click.style(f"{_LABEL(kind)}{one_line(line)}", dim=True))

    def ended(self) -> None:
        """Ends the line."""
        if self._speaking:
            click.echo()
        self._speaking = False


class JsonScreen:
    """For programs: an object a line, with `session`, `role` (user, assistant, tool, hint) and `text`."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._pieces: list[str] = []

    def heard(self, text: str) -> None:
        """A line."""
        self._print("user", text)

    def said(self, piece: str) -> None:
        """Kept until a tool is called or the reply ends."""
        self._pieces.append(piece)

    def noted(self, kind: str, line: str) -> None:
        """A line."""
        self.ended()
        self._print(kind, line)

    def ended(self) -> None:
        """A line, if anything was said."""
        if self._pieces:
            self._print("assistant", "".join(self._pieces))
        self._pieces.clear()

    def _print(self, role: str, text: str) -> None:
        print_json({"session": self._session_id, "role": role, "text": text}, indent=None)


def converse(
    folder: str,
    session_id: str,
    agent: ChatModel,
    screen: Screen,
    messages: Iterable[str] | None = None,
    selector: Model | str | None = None,
    journal: bool = True,
) -> None:
    """Talk until the messages end, from where the session ended before. Between the replies nothing runs, so that Ctrl-C at the
    prompt just leaves.

    Args:
        messages: what the user says; None reads standard input.
        selector: chooses files for hints.
        journal: whether the conversation is kept.

    Raises:
        MdmemoryError: the memory can't be used, or the model failed and nobody was there to try again.
        KeyboardInterrupt: Ctrl-C, unless it ended a reply and somebody is there to go on.
    """
    logging.getLogger("mdmemory").addHandler(logging.NullHandler())  # the screen shows what went wrong
    typed = messages is None and sys.stdin.isatty()
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        if close := getattr(agent, "close", None):
            stack.push_async_callback(close)
        try:
            memory = runner.run(stack.enter_async_context(opened(folder, selector, journal=journal)))
            runner.run(memory.folder.refresh())
            session = memory.session(session_id)
            history: list[Message] = [dict(message.data) for message in runner.run(session.messages())]
            if typed:
                _greet(folder, len(memory.folder.files))
            for text in _typed(screen) if typed else messages or _piped():
                if text.strip():
                    if not typed:
                        screen.heard(text)
                    _answer(runner, run_turn(session, agent, history, text, screen.said, screen.noted), screen, typed)
        finally:
            runner.run(stack.aclose())


def _answer(runner: asyncio.Runner, turn: Coroutine[Any, Any, str], screen: Screen, typed: bool) -> None:
    """Run a turn; what ends it early is shown to who can type again, and raised otherwise."""
    try:
        runner.run(turn)
    except (MdmemoryError, KeyboardInterrupt) as error:
        screen.ended()
        if not typed:
            raise
        fault = "Interrupted." if isinstance(error, KeyboardInterrupt) else f"Error: {error}"
        click.echo(click.style(one_line(fault), fg="red"), err=True)
    else:
        screen.ended()


def _greet(folder: str, count: int) -> None:
    files = "1 file" if count == 1 else f"{count or 'no'} files"
    click.echo(click.style(f"Memory: {folder}, {files}. Ctrl-C ends a reply, Ctrl-D the conversation.", dim=True), err=True)


def _typed(screen: Screen) -> Iterator[str]:
    """What a person types, with the keys for editing a line that they know from their shell."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401  # its import is what makes input() editable
    prompt = _LABEL("you") if isinstance(screen, PlainScreen) else ""
    while True:
        try:
            yield input(prompt)
        except EOFError:
            if prompt:
                click.echo()
            return


def _piped() -> Iterator[str]:
    return (line.rstrip("\n") for line in sys.stdin)
