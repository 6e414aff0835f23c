"""`mdmemory consolidate` and `review`: what a model proposes, and what a person decides. Floor 8."""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import click

from mdmemory.cli.tables import print_diff, print_note, print_table, progress
from mdmemory.cli.terminal import (
    asking,
    command_on,
    failure,
    folder_option,
    json_option,
    one_line,
    opened,
    print_json,
    require_folder,
    run,
    wants_to_edit_again,
)
from mdmemory.errors import MdmemoryError

if TYPE_CHECKING:
    from mdmemory.care.consolidate import Report
    from mdmemory.folder.any_folder import Folder
    from mdmemory.folder.proposals import Proposal

LONG = 500  # files: to read more takes a second
CHOICES = {"a": "accept", "r": "reject", "e": "edit", "s": "skip", "q": "quit"}
PROMPT = "(a)ccept, (r)eject, (e)dit, (s)kip or (q)uit"


@click.command()
@folder_option
@click.option(
    "--model",
    envvar="MDMEMORY_MODEL",
    show_envvar=True,
    metavar="SPEC",
    help="openai:NAME, anthropic:NAME, or with an address openai:NAME@http://host:port/v1.",
)
@click.option(
    "-l", "--limit", default=20, show_default=True, type=click.IntRange(1), metavar="N", help="At most N groups of files."
)
@click.option("-n", "--dry-run", is_flag=True, help="Only show which files the model would be sent.")
@json_option
@run
async def consolidate(folder: str, model: str | None, limit: int, dry_run: bool, as_json: bool) -> None:
    """Find files that say much the same, and have a model propose what becomes of them.

    It proposes merges, splits, rewrites, and files to retire. Nothing is changed: `mdmemory review` shows each proposal with what
    would be lost, to accept, edit or reject. Without a model the files are only listed.
    """
    from mdmemory.care.consolidate import consolidate as propose
    from mdmemory.care.consolidate import prompt_of
    from mdmemory.render import estimate_tokens

    require_folder(folder)
    async with opened(folder, model) as memory:
        with progress("Files", LONG) as looked, progress("Asking the model") as asked:
            report = await propose(memory.folder, memory.model, limit=limit, dry_run=dry_run, looked=looked, asked=asked)
        tokens = [estimate_tokens(prompt_of(memory.folder, cluster)) for cluster in report.clusters]
    groups = [list(cluster.texts) for cluster in report.clusters]
    if as_json:
        sizes = [{"files": paths, "tokens": size} for paths, size in zip(groups, tokens, strict=True)]
        made = {"proposals": [each.as_json() for each in report.proposals], "applied": [each.as_json() for each in report.applied]}
        print_json({"groups": sizes, **made, "problems": report.problems})
    elif not groups:
        click.echo("No files say much the same, but for those that were looked at before.")
    elif model is None or dry_run:
        print_table(
            [(f"{size:,}", ", ".join(paths)) for paths, size in zip(groups, tokens, strict=True)], ("TOKENS", "FILES"), whole=True
        )
        print_note(
            f"a model would be asked {_times(len(groups))}, with about {sum(tokens):,} tokens"
            if dry_run
            else "these share most of their words; name a --model that proposes what becomes of them"
        )
    else:
        _print_report(report, folder)


def _print_report(report: Report, folder: str) -> None:
    rows = [("done", each.id, each.title, each.reason) for each in report.applied]
    rows += [("waits", each.id, each.title, each.reason) for each in report.proposals]
    if rows:
        print_table([(state, id, f"{title}: {reason}") for state, id, title, reason in rows], ("STATE", "ID", "WHAT"), whole=True)
    else:
        click.echo("The model proposes nothing.")
    for problem in report.problems:
        print_note(f"left out: {problem}")
    if report.proposals:
        print_note(f"`{command_on('review', folder)}` shows what waits")


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


@dataclass(frozen=True, slots=True)
class _Answer:
    """How a decision is answered, and whether the person has said yes to everything."""

    folder: str
    yes: bool
    as_json: bool

    def tell(self, value: Any, text: str) -> None:
        """Say what was done."""
        if self.as_json:
            print_json(value)
        else:
            click.echo(one_line(text))


@click.command()
@click.argument("id", required=False)
@folder_option
@click.option("--accept", "decision", flag_value="accept", help="Do it; `mdmemory undo` takes it back.")
@click.option("--reject", "decision", flag_value="reject", help="Leave the files alone; the same is not proposed again.")
@click.option("--edit", "decision", flag_value="edit", help="Open what it would write in $EDITOR.")
@click.option("-y", "--yes", is_flag=True, help="Accept it although something speaks against it, which is then shown.")
@json_option
@run
async def review(id: str | None, folder: str, decision: str | None, yes: bool, as_json: bool) -> None:
    """Decide about what was proposed.

    Proposals are for files that say much the same, or drawn from conversations.

    Without ID, on a terminal, one proposal after the other is shown, to accept, reject, edit or skip; else they are listed. With ID
    one is shown as a diff, with what would be lost.
    """
    from mdmemory.folder.proposals import find_proposal, list_proposals

    require_folder(folder)
    if id is None and decision is not None:
        raise click.UsageError(f"--{decision} needs the ID of a proposal. `{command_on('review', folder)}` lists them.")
    async with opened(folder) as memory:
        if id is not None:
            proposal = await find_proposal(memory.folder, id)
            if decision is not None:
                await _decide(memory.folder, proposal, decision, _Answer(folder, yes, as_json))
            elif as_json:
                print_json(proposal.as_json())
            else:
                _show(proposal)
            return
        waiting = await list_proposals(memory.folder)
        if as_json:
            print_json([each.as_json() for each in waiting])
        elif not waiting:
            click.echo("Nothing waits.")
        elif sys.stdin.isatty() and sys.stdout.isatty():
            await _walk(memory.folder, waiting, _Answer(folder, yes, as_json))
        else:
            rows = [(each.id, f"{each.at:%Y-%m-%d}", each.origin, each.title, _note(each)) for each in waiting]
            print_table(rows, ("ID", "SINCE", "FROM", "WHAT", "WHY, OR WHY NOT"), whole=True)


def _note(proposal: Proposal) -> str:
    if proposal.stale:
        return f"out of date: {proposal.stale}"
    return f"needs a yes: {proposal.guard}" if proposal.guard else proposal.reason


async def _walk(folder: Folder, waiting: Sequence[Proposal], answer: _Answer) -> None:
    """Show one after the other, and do what the person says."""
    for number, proposal in enumerate(waiting, 1):
        choice = "edit"
        while choice == "edit":
            click.echo(click.style(f"{number} of {len(waiting)}: ", dim=True), nl=False)
            _show(proposal)
            with asking():
                choice = CHOICES[click.prompt(PROMPT, type=click.Choice(list(CHOICES)), default="s", show_choices=False)]
            if choice == "quit":
                return
            try:
                if choice != "skip":
                    proposal = await _decide(folder, proposal, choice, answer)
            except MdmemoryError as error:
                click.echo(one_line(str(error)), err=True)
            except click.ClickException as error:
                click.echo(error.message, err=True)
        click.echo()


async def _decide(folder: Folder, proposal: Proposal, decision: str, answer: _Answer) -> Proposal:
    """Accept, reject or edit it; the proposal as it is then."""
    from mdmemory.folder.proposals import accept, reject

    if decision == "reject":
        await reject(folder, proposal)
        answer.tell({"rejected": proposal.id}, f"Rejected {proposal.id}; the files stay as they are.")
    elif decision == "edit":
        before, proposal = proposal, await _edited(folder, proposal)
        told = "Nothing was edited." if proposal == before else f"Edited {proposal.id}; it waits to be accepted."
        answer.tell(proposal.as_json(), told)
    else:
        force = answer.yes or (bool(proposal.guard) and _is_sure(proposal, answer))
        event = (await accept(folder, proposal, force=force)).commit_id
        told = (
            f"as event {event[:8]}: `{command_on(f'undo {event[:8]}', answer.folder)}` takes that back"
            if event
            else "by others too"
        )
        answer.tell({"accepted": proposal.id, "event": event}, f"Accepted {proposal.id}, {told}.")
    return proposal


def _is_sure(proposal: Proposal, answer: _Answer) -> bool:
    if answer.as_json or not sys.stdin.isatty():
        return False
    with asking():
        return click.confirm(f"{one_line(proposal.guard)}. Accept it all the same?")


async def _edited(folder: Folder, proposal: Proposal) -> Proposal:
    """The proposal with what a person makes of its texts. When that can't be taken, their text stays in a file.

    Raises:
        ClickException: says where.
    """
    from mdmemory.files.memory_file import decode
    from mdmemory.folder.proposals import edit

    texts = {path: after for path, (_, after) in proposal.texts.items() if after is not None}
    place = Path(tempfile.mkdtemp(prefix="mdmemory-"))
    names = {path: re.sub(r"[^\w.-]", "-", PurePosixPath(path).name) for path in texts}
    drafts = {path: place / f"{number}-{name}" for number, (path, name) in enumerate(names.items(), 1)}
    for path, draft in drafts.items():
        draft.write_bytes(texts[path].encode())
    while True:
        for draft in drafts.values():
            click.edit(filename=os.fspath(draft))
        try:
            typed = {path: decode(path, draft.read_bytes()) for path, draft in drafts.items()}
            typed = {path: text for path, text in typed.items() if text != texts[path]}
            proposal = await edit(folder, proposal, typed) if typed else proposal
        except MdmemoryError as error:
            if wants_to_edit_again(error):
                continue
            raise failure(f"{one_line(str(error))} Nothing was changed; your text is in {place}.") from error
        shutil.rmtree(place)
        return proposal


def _show(proposal: Proposal) -> None:
    """A proposal as a diff, and what is lost."""
    origin = click.style(f"from {one_line(proposal.origin)}", dim=True)
    click.echo(f"{click.style(one_line(proposal.title), bold=True)}\n{one_line(proposal.reason)}\n{origin}\n")
    for diff in proposal.diffs.values():
        print_diff(diff)
    losses, reworded = proposal.losses, sum(line.is_reworded for line in proposal.losses.lines)
    told = [(f"{line.path}:{line.line}", f"gone: {line.text}") for line in losses.lines if not line.is_reworded]
    told += [("", f"reworded: {reworded} line{'s' * (reworded != 1)}")] if reworded else []
    told += [("", f"words that no file will have: {', '.join(losses.words)}")] if losses.words else []
    told += [("", f"speaks against it: {proposal.guard}")] if proposal.guard else []
    told += [("", f"out of date: {proposal.stale}; {proposal.way_on}")] if proposal.stale else []
    click.echo()
    for where, text in told:
        click.echo(one_line(f"{where} {text}" if where else text))
