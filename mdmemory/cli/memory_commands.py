"""`mdmemory remember`, `forget` and `extract`: what goes into a memory and out of it. Floor 7."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from mdmemory.cli.completing import complete_path
from mdmemory.cli.tables import print_diff, print_note, print_table
from mdmemory.cli.terminal import (
    asking,
    command_on,
    failure,
    folder_option,
    json_option,
    one_line,
    opened,
    print_json,
    refuse_file,
    require_folder,
    run,
)

if TYPE_CHECKING:
    from mdmemory.folder.any_folder import Folder

FOUND = 5  # files that a query of `forget` may bring up


@click.command()
@click.argument("text", nargs=-1, required=True)
@folder_option
@click.option("-t", "--type", "kind", metavar="TYPE", help="user, feedback, project or reference; project unless given.")
@json_option
@run
async def remember(text: tuple[str, ...], folder: str, kind: str | None, as_json: bool) -> None:
    """Save a text as a new memory file.

    Its first line becomes the title and the file's name; the text itself is kept word for word. With - it is read from standard
    input.
    """
    from mdmemory.agent.adding import from_content
    from mdmemory.folder.known import listed_as

    refuse_file(folder)
    content = sys.stdin.read() if text == ("-",) else " ".join(text)
    async with opened(folder) as memory:
        await memory.folder.refresh()
        change = from_content(memory.folder, content, kind)
        applied = await memory.folder.apply([change], "person", "remember")
        name = listed_as(change.path, memory.folder.files[change.path]).name
    if as_json:
        print_json({"path": change.path, "name": name, "created": applied.commit_id is not None})
    elif applied.commit_id is None:
        click.echo(f"{change.path} says that already.")
    else:
        click.echo(f"Saved {one_line(change.path)}.")
    for warning in applied.warnings:
        print_note(warning)


@click.command()
@click.argument("what", nargs=-1, required=True, shell_complete=complete_path)
@folder_option
@click.option("--all", "whole", is_flag=True, help="WHAT is a folder or a mount: delete every memory file below it.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask.")
@json_option
@run
async def forget(what: tuple[str, ...], folder: str, whole: bool, yes: bool, as_json: bool) -> None:
    """Delete a memory file, or with --all a whole folder of them.

    WHAT is its path as `ls` has it, or words: then the files that share them are shown to choose from. Its line in the index
    goes too, and what it was drawn from in conversations is never drawn again. A journal keeps what was said, and the history
    the file: `undo` brings it back, `purge` forgets it for good.
    """
    from mdmemory.files.changes import Delete

    require_folder(folder)
    typed = sys.stdin.isatty() and not as_json
    async with opened(folder) as memory:
        await memory.folder.refresh()
        path = " ".join(what) if whole else await _chosen(memory.folder, " ".join(what), folder, typed=typed)
        about = f"all below {path}" if whole else path
        if not yes and not typed:
            raise failure(f"Nobody is there to ask whether to forget {about}. Say --yes.")
        if not yes:
            with asking():
                click.confirm(f"Forget {one_line(about)}?", abort=True)
        if whole:
            count = await memory.clear(path, reason="forget")
        else:
            await memory.folder.apply([Delete(path)], "person", "forget")
    if as_json:
        print_json({"forgotten": path, "files": count} if whole else {"forgotten": path})
    elif whole:
        click.echo(f"Forgot {'1 file' if count == 1 else f'{count:,} files'} below {one_line(path)}.")
    else:
        click.echo(f"Forgot {one_line(path)}.")


async def _chosen(memory: Folder, what: str, folder: str, *, typed: bool) -> str:
    """The file that is meant: by its path, as the only match, or as the person who types says."""
    path = what.removeprefix("./")
    if path in memory.files:
        return path
    matches = await memory.search(what, limit=FOUND)
    if not matches:
        raise failure(f"No memory file is called {what!r} or shares a word with it. `{command_on('ls', folder)}` lists them.")
    if len(matches) == 1:
        return matches[0].path
    if not typed:
        raise failure(f"Several memory files share its words: {', '.join(match.path for match in matches)}. Give the path of one.")
    rows = [(str(number), match.path, f"{match.name} — {match.description}") for number, match in enumerate(matches, 1)]
    print_table(rows, ("NO", "FILE", "ABOUT"))
    with asking():
        number: int = click.prompt("Which one", type=click.IntRange(1, len(matches)))
    return matches[number - 1].path


@click.command()
@folder_option
@click.option("--session", required=True, metavar="ID", help="The conversation, as `mdmemory journal` lists it.")
@click.option(
    "--model",
    envvar="MDMEMORY_MODEL",
    show_envvar=True,
    required=True,
    metavar="SPEC",
    help="openai:NAME, anthropic:NAME, or with an address openai:NAME@http://host:port/v1.",
)
@click.option("--dry-run", is_flag=True, help="Show as a diff what would be written, and write nothing.")
@json_option
@run
async def extract(folder: str, session: str, model: str, dry_run: bool, as_json: bool) -> None:
    """Draw memories from a conversation.

    The model sees what was said since the last time, and the memory files nearest to it. A dry run asks it once; the answer may
    differ the next time. Where the settings say `extract: propose`, what it draws waits for a person: `mdmemory review`.
    """
    from dataclasses import asdict

    from mdmemory.agent import extractor
    from mdmemory.agent.write_back import WriteBack
    from mdmemory.care.history import unified
    from mdmemory.folder.any_folder import home_only

    require_folder(folder)
    async with opened(folder, model) as memory:
        await memory.folder.refresh()
        messages = await memory.folder.journals.messages(session)
        if not messages:
            raise failure(f"There is no conversation {session!r}. `{command_on('journal', folder)}` lists them.")
        assert memory.model is not None
        if dry_run:
            found = await extractor.extract(home_only(memory.folder), memory.model, session, messages, dry_run=True)
            extractions = [found] if found else []
        else:
            extractions = await WriteBack(memory.folder, session, memory.model).run()
    outcomes = [outcome for extraction in extractions for outcome in extraction.outcomes]
    if as_json:
        diffs = {item.path: unified(item.path, item.before, item.after) for extraction in extractions for item in extraction.files}
        print_json({"outcomes": [asdict(outcome) for outcome in outcomes], "diff": diffs})
        return
    for item in (item for extraction in extractions if dry_run for item in extraction.files):
        print_diff(unified(item.path, item.before, item.after))
    if outcomes:
        print_table([(outcome.status, outcome.path or "-", outcome.reason) for outcome in outcomes], ("WHAT", "FILE", "WHY"))
    else:
        click.echo("Nothing to remember." if extractions else "Nothing was said since the last time.")
    if count := len({outcome.proposal for outcome in outcomes} - {""}):
        told = "1 proposal" if count == 1 else f"{count} proposals"
        waits = "would wait" if dry_run else "waits" if count == 1 else "wait"
        print_note(f"nothing is saved yet: {told} {waits} for a yes in `{command_on('review', folder)}`")
