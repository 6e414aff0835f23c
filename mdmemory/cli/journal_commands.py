"""`mdmemory journal` and `context`: what was said, and what a model would get of it. Floor 8."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from mdmemory.cli.paging import paged
from mdmemory.cli.tables import print_note, print_table
from mdmemory.cli.terminal import command_on, failure, folder_option, harmless, json_option, opened, print_json, require_folder, run

if TYPE_CHECKING:
    from mdmemory.files.journal import Message
    from mdmemory.memory import Memory


@click.command()
@click.argument("session", required=False)
@folder_option
@click.option("-n", "--last", type=click.IntRange(1), metavar="N", help="Only the last N messages of the session.")
@json_option
@run
async def journal(session: str | None, folder: str, last: int | None, as_json: bool) -> None:
    """List the conversations, or print one.

    SESSION is the name of a conversation, as the list has it. Times are UTC.
    """
    require_folder(folder)
    async with opened(folder) as memory:
        await memory.folder.refresh()
        if session is None:
            await _list(memory, as_json)
            return
        messages = (await memory.folder.journals.messages(session))[-(last or 0) :]
    if not messages:
        raise failure(f"There is no conversation {session!r} in {folder}. `{command_on('journal', folder)}` lists what is there.")
    if as_json:
        print_json([message.as_json(message.at.isoformat()) for message in messages])
        return
    with paged():
        for message in messages:
            click.echo(click.style(f"{message.role} · {message.at:%Y-%m-%d %H:%M:%S}Z", bold=True))
            text = _spoken(message)
            click.echo((harmless(text) if sys.stdout.isatty() else text) + "\n")


async def _list(memory: Memory, as_json: bool) -> None:
    journals = memory.folder.journals
    found = {session: await journals.messages(session) for session in journals.sessions}
    rows = [(session, f"{len(said)}", f"{said[-1].at:%Y-%m-%d %H:%M}", said[0].text) for session, said in found.items() if said]
    if as_json:
        keys = ("session", "messages", "first", "last")
        ends = [(session, len(said), said[0].at.isoformat(), said[-1].at.isoformat()) for session, said in found.items() if said]
        print_json([dict(zip(keys, row, strict=True)) for row in ends])
    elif rows:
        print_table(rows, ("SESSION", "MESSAGES", "LAST", "BEGINS"))
    else:
        click.echo("No conversations yet.")


def _spoken(message: Message) -> str:
    """A message for people; of what is no text, its JSON."""
    import json

    fields = {key: value for key, value in message.data.items() if key not in ("role", "content", "tool_call_id")}
    more = [json.dumps(fields, ensure_ascii=False, indent=2)] if fields else []
    return "\n".join([*([message.text] if message.text else []), *more])


def _of_session(session: str, message: Message) -> dict[str, Any]:
    return {"session": session} | message.as_json(message.at.isoformat()) | {"session": session}


@click.command()
@click.argument("query", nargs=-1)
@folder_option
@click.option("-s", "--session", metavar="ID", help="The conversation whose last messages are shown; without it, all.")
@click.option("-k", "window", type=click.IntRange(0), metavar="N", help="The last N messages  [default: 200]")
@click.option("-n", "--limit", default=5, show_default=True, type=click.IntRange(0), metavar="N", help="At most N older messages.")
@click.option("--tokens", type=click.IntRange(1), metavar="N", help="At most about N tokens in all.")
@json_option
@run
async def context(query: tuple[str, ...], folder: str, as_json: bool, **wanted: Any) -> None:
    """Print what a model would get of conversations.

    These are the last messages, and older ones that share words with QUERY.
    """
    require_folder(folder)
    async with opened(folder) as memory:
        found = await memory.context(
            " ".join(query) or None,
            session=wanted["session"],
            k=wanted["window"],
            top_k=wanted["limit"],
            max_tokens=wanted["tokens"],
        )
    if as_json:
        parts = {"window": found.window, "recalled": found.recalled}
        shown = {name: [_of_session(said.session, said.message) for said in part] for name, part in parts.items()}
        print_json({**shown, "text": str(found), "tokens": found.tokens})
    elif found.window or found.recalled:
        text = str(found)
        click.echo(harmless(text) if sys.stdout.isatty() else text)
        print_note(f"about {found.tokens:,} tokens")
    else:
        click.echo(f"No message fits into {wanted['tokens']} tokens." if wanted["tokens"] else "No messages yet.")
