"""`mdmemory timeline`, `fact` and `wake-up`: what is known of an entity, and of the user. Floor 8."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from mdmemory.cli.completing import complete_path
from mdmemory.cli.tables import print_note, print_table
from mdmemory.cli.terminal import command_on, failure, folder_option, harmless, json_option, opened, print_json, require_folder, run

if TYPE_CHECKING:
    from mdmemory.files.facts import Fact
    from mdmemory.folder.facts import Event


@click.command()
@click.argument("entity")
@folder_option
@click.option("--as-of", metavar="DAY", help="Only what held on that day, such as 2024-05-17.")
@json_option
@run
async def timeline(entity: str, folder: str, as_of: str | None, as_json: bool) -> None:
    """Show what is known of a person or thing over time.

    ENTITY is the path, name or alias of a file, or any name that links, tags and facts use. What has no date comes first.
    """
    from dataclasses import asdict

    require_folder(folder)
    async with opened(folder) as memory:
        events = await memory.timeline(entity, as_of=as_of)
    if as_json:
        print_json([asdict(event) for event in events])
    elif events:
        print_table([(_when(event), _where(event), _what(event)) for event in events], ("WHEN", "WHERE", "WHAT"), whole=True)
    else:
        click.echo(f"Nothing is known of {entity}{f' as of {as_of}' if as_of else ''}.")


def _when(event: Event) -> str:
    if event.valid_from == event.valid_until:
        return event.valid_from or ""
    end = event.valid_until if event.valid_until or event.kind != "fact" else ""
    return " ".join(filter(None, (event.valid_from, "→" if end is not None else "", end)))


def _where(event: Event) -> str:
    return event.path if event.line is None else f"{event.path}:{event.line}"


def _what(event: Event) -> str:
    said = {"link": "speaks of it: ", "tag": "has its tag: "}.get(event.kind, "") + event.text
    return f"{said} (contradicts: {', '.join(event.contradicts)})" if event.contradicts else said


@click.command()
@click.argument("path", metavar="FILE", shell_complete=complete_path)
@click.argument("predicate")
@click.argument("value")
@folder_option
@click.option("--from", "valid_from", metavar="DATE", help="The first year, month or day of it.")
@click.option("--until", "valid_until", metavar="DATE", help="The last one; of a fact that is there and open, too.")
@click.option("--ends", is_flag=True, help="End what FILE has open under PREDICATE; needs --from.")
@json_option
@run
async def fact(path: str, predicate: str, value: str, folder: str, ends: bool, as_json: bool, **dates: str | None) -> None:
    """Add a fact to a memory file, or end one.

    For example: mdmemory fact people/ann.md "works at" "[[Acme]]" --from 2024-01
    """
    from dataclasses import asdict

    from mdmemory.backends.protocol import etag_of
    from mdmemory.errors import NotThere
    from mdmemory.files.changes import Replace
    from mdmemory.files.facts import Fact, facts_of, fold, read_value

    require_folder(folder)
    wanted = Fact("", predicate, *read_value(value), dates["valid_from"], dates["valid_until"], path)
    async with opened(folder) as memory:
        try:
            data = await memory.folder.read(path)
        except NotThere:
            raise failure(f"There is no {path} in {folder}. `{command_on('ls', folder)}` lists what is there.") from None
        changed = _with(data, wanted, ends)
        applied = await memory.folder.apply([Replace(path, changed, etag_of(data), data)], "person", "fact")
    after = next(item.after for item in applied.files if item.path == path) or b""
    said = [each for each in facts_of(path, after) if fold(each.predicate) == fold(predicate)]
    if as_json:
        print_json([asdict(each) for each in said])
    else:
        lines = after.decode().split("\n")
        print_table([(str(line), lines[line - 1]) for line in dict.fromkeys(each.line for each in said)], ("LINE", path))


def _with(data: bytes, wanted: Fact, ends: bool) -> bytes:
    """The file with the fact in it, or with its end."""
    from mdmemory.errors import InvalidArguments
    from mdmemory.files.facts import add_fact, end_fact, facts_of, fold

    if ends and wanted.valid_from is None:
        raise InvalidArguments("--ends needs --from: the date until which the other fact held")
    there = [
        each for each in facts_of(wanted.path, data) if fold(each.predicate) == fold(wanted.predicate) and not each.valid_until
    ]
    same = [each for each in there if (each.object, each.link) == (wanted.object, wanted.link)]
    if same and wanted.valid_until:
        return end_fact(data, same[0], wanted.valid_until)
    for each in there if ends else ():
        data = end_fact(data, each, wanted.valid_from or "")
    return add_fact(data, wanted)


@click.command("wake-up")
@folder_option
@click.option("--tokens", default=600, show_default=True, type=click.IntRange(1), metavar="N", help="At most about N tokens.")
@json_option
@run
async def wake_up(folder: str, tokens: int, as_json: bool) -> None:
    """Print what to know before the first message.

    That is who the user is and what helps most, cut to a budget; beside it stands what all files and conversations would take.
    """
    from mdmemory.backends.protocol import File
    from mdmemory.render import estimate_tokens

    require_folder(folder)
    async with opened(folder) as memory:
        text = await memory.wake_up(tokens)
        found = await memory.folder.read_many(list(memory.folder.files))
        journals = memory.folder.journals
        said = [message.text for session in journals.sessions for message in await journals.messages(session)]
    files = [file.data.decode("utf-8", "replace") for file in found.values() if isinstance(file, File)]
    taken, in_files, in_talk = (sum(map(estimate_tokens, texts)) for texts in ([text], files, said))
    if as_json:
        print_json({"text": text, "tokens": taken, "tokens_of_files": in_files, "tokens_of_conversations": in_talk})
    elif text:
        click.echo(harmless(text) if sys.stdout.isatty() else text)
        times = f"{(in_files + in_talk) / taken:.1f} times as many"
        print_note(f"about {taken:,} tokens; the memory files have {in_files:,} and the conversations {in_talk:,}, {times}")
    else:
        click.echo(f"No memory file fits into {tokens} tokens." if found else "No memory files yet.")
