"""`mdmemory eval locomo` and `eval longmemeval`. Floor 7."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mdmemory.cli.terminal import failure, json_option, print_json, run

if TYPE_CHECKING:
    from mdmemory.evals.conversations import Conversation

UNFINISHED = "unfinished.jsonl"
report_option = click.option(
    "--report",
    metavar="DIR",
    type=click.Path(file_okay=False),
    help="Write a report there: Markdown, JSON and a plot. Stopped, the same command goes on where it was.",
)
keep_option = click.option(
    "--keep",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Keep results here as they come, and go on after them, without a report too.",
)
on_option = click.option(
    "--on",
    metavar="URL",
    help="Make the memories there and not in this process, such as 'postgres:///test?folder=eval/{conversation}'.",
)
path_argument = click.argument("path", type=click.Path(exists=True, dir_okay=False))


@click.group(name="eval")
def evals() -> None:
    """Measure recall on public conversations, offline.

    Each session becomes one memory file; no model and no network is asked. With --json, figures are shares from 0 to 1.
    """


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument and options that both evaluations have."""
    return path_argument(report_option(keep_option(on_option(json_option(command)))))


@evals.command()
@options
@run
async def locomo(path: str, report: str | None, keep: str | None, on: str | None, as_json: bool) -> None:
    """Evidence recall on LoCoMo, or any file of its schema (locomo10.json of snap-research/locomo)."""
    from mdmemory.evals.locomo import load

    await measure(load(path), f"LoCoMo: {Path(path).name}", report, keep, on, as_json)


@evals.command()
@options
@run
async def longmemeval(path: str, report: str | None, keep: str | None, on: str | None, as_json: bool) -> None:
    """Evidence recall on LongMemEval, or any file of its schema (xiaowu0162/LongMemEval)."""
    from mdmemory.evals.longmemeval import load

    await measure(load(path), f"LongMemEval: {Path(path).name}", report, keep, on, as_json)


async def measure(
    conversations: Sequence[Conversation], title: str, report: str | None, keep: str | None, on: str | None, as_json: bool
) -> None:
    """Run an evaluation with a progress bar on stderr, print what was measured, and write the report."""
    import asyncio

    from mdmemory.evals.report import markdown, write_report
    from mdmemory.evals.run import evaluate

    unfinished = Path(report) / UNFINISHED if report else None
    if unfinished:
        try:
            unfinished.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise failure(f"The report's folder {report!r} can't be made: {error.strerror}.") from error
    questions = sum(len(conversation.questions) for conversation in conversations)
    try:
        with click.progressbar(length=questions, label="Questions", file=sys.stderr) as bar:
            measured = await evaluate(conversations, keep=keep or unfinished, on=on, progress=bar.update)
    except asyncio.CancelledError:
        if keep or report:
            click.echo("\nStopped. The same command goes on from here.", err=True)
        raise
    if unfinished:
        write_report(unfinished.parent, title, measured)
        unfinished.unlink(missing_ok=True)
    if as_json:
        print_json(measured)
    else:
        click.echo(markdown(title, measured), nl=False)
