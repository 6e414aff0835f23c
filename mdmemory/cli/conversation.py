"""A conversation in a terminal: what the agent says is streamed, what its memory does is shown dimmed. Floor 7."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator

import click

from mdmemory.agent.session import Session
from mdmemory.cli.chat_loop import ChatModel, Message, run_turn
from mdmemory.errors import MdmemoryError, ModelError


async def converse(session: Session, agent: ChatModel, messages: Iterable[str] | None = None) -> int:
    """Talk until the input ends.

    Args:
        messages: what the user says; None reads standard input.

    Returns:
        The exit code: 1 when the model failed and nobody was there to try again.
    """
    history: list[Message] = []
    interactive = messages is None and sys.stdin.isatty()
    if interactive:
        click.echo(click.style("Ctrl-D ends the conversation.", dim=True))
    lines = iter(messages) if messages is not None else _typed(interactive)
    while True:
        text = await asyncio.to_thread(next, lines, None)
        if text is None:
            return 0
        if not text.strip():
            continue
        if not interactive:
            click.echo(f"{click.style('you', bold=True)}   {text}")
        click.echo(click.style("agent ", bold=True), nl=False)
        try:
            await run_turn(session, agent, history, text, _say, _note)
        except ModelError as error:
            click.echo(click.style(f"\n{error}", fg="red"), err=True)
            if not interactive:
                return 1
        except MdmemoryError as error:
            click.echo(click.style(f"\n{error}", fg="red"), err=True)
        click.echo()


def _typed(interactive: bool) -> Iterator[str]:
    """Lines from standard input, after a prompt when a person types them."""
    while True:
        if interactive:
            click.echo(click.style("you   ", bold=True), nl=False)
        line = sys.stdin.readline()
        if not line:
            return
        yield line.rstrip("\n")


def _say(text: str) -> None:
    click.echo("".join(char for char in text if char in "\n\t" or char.isprintable()), nl=False)


def _note(kind: str, text: str) -> None:
    click.echo(click.style(f"[{kind}: {text}] ", dim=True), nl=False)
