"""`mdmemory eval locomo` and `eval longmemeval`. Floor 7."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from mdmemory.cli.terminal import json_option, print_json, run

if TYPE_CHECKING:
    from mdmemory.evals.conversations import Conversation

report_option = click.option("--report", metavar="FILE", type=click.Path(dir_okay=False), help="Write a Markdown report too.")
keep_option = click.option(
    "--keep",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Keep results here as they come, and go on after them.",
)
path_argument = click.argument("path", type=click.Path(exists=True, dir_okay=False))


@click.group(name="eval")
def evals() -> None:
    """Measure recall on public conversations, offline.

    Each session becomes one memory file; no model and no network is asked. With --json, figures are shares from 0 to 1.
    """


def options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument and options that both evaluations have."""
    return path_argument(report_option(keep_option(json_option(command))))


@evals.command()
@options
@run
async def locomo(path: str, report: str | None, keep: str | None, as_json: bool) -> None:
    """Evidence recall on LoCoMo, or any file of its schema (locomo10.json of snap-research/locomo)."""
    from mdmemory.evals.locomo import load

    show(await measure(load(path), keep), f"LoCoMo: {Path(path).name}", report, as_json)


@evals.command()
@options
@run
async def longmemeval(path: str, report: str | None, keep: str | None, as_json: bool) -> None:
    """Evidence recall on LongMemEval, or any file of its schema (xiaowu0162/LongMemEval)."""
    from mdmemory.evals.longmemeval import load

    show(await measure(load(path), keep), f"LongMemEval: {Path(path).name}", report, as_json)


async def measure(conversations: Sequence[Conversation], keep: str | None) -> dict[str, Any]:
    """Run an evaluation with a progress bar on stderr."""
    from mdmemory.evals.run import evaluate

    questions = sum(len(conversation.questions) for conversation in conversations)
    with click.progressbar(length=questions, label="Questions", file=sys.stderr) as bar:
        return await evaluate(conversations, keep=keep, progress=lambda answered: bar.update(answered))


def show(measured: dict[str, Any], title: str, report: str | None, as_json: bool) -> None:
    """Print what was measured, and write the report."""
    from mdmemory.evals.run import markdown

    page = markdown(title, measured)
    if report:
        Path(report).write_text(page, encoding="utf-8")
    if as_json:
        print_json(measured)
    else:
        click.echo(page, nl=False)
