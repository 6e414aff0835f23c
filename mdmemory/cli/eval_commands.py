"""`mdmemory eval locomo` and `eval longmemeval`. Floor 7."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from mdmemory.cli.terminal import json_option, print_json, run

report_option = click.option("--report", metavar="FILE", type=click.Path(dir_okay=False), help="Write a Markdown report too.")
keep_option = click.option(
    "--keep",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="Keep results here as they come; run again, it goes on after them.",
)
path_argument = click.argument("path", type=click.Path(exists=True, dir_okay=False))


@click.group(name="eval")
def evals() -> None:
    """Measure recall on public conversations: one memory file per session, no model and no network."""


@evals.command()
@path_argument
@report_option
@keep_option
@json_option
@run
async def locomo(path: str, report: str | None, keep: str | None, as_json: bool) -> None:
    """Evidence recall on LoCoMo, or any file of its schema (locomo10.json of snap-research/locomo)."""
    from mdmemory.evals.locomo import load

    await _measure("LoCoMo", load, path, report, keep, as_json)


@evals.command()
@path_argument
@report_option
@keep_option
@json_option
@run
async def longmemeval(path: str, report: str | None, keep: str | None, as_json: bool) -> None:
    """Evidence recall on LongMemEval, or any file of its schema (longmemeval_s.json of xiaowu0162/LongMemEval)."""
    from mdmemory.evals.longmemeval import load

    await _measure("LongMemEval", load, path, report, keep, as_json)


async def _measure(title: str, load: Callable[[str], Any], path: str, report: str | None, keep: str | None, as_json: bool) -> None:
    from mdmemory.evals.run import evaluate, markdown

    conversations = load(path)
    questions = sum(len(conversation.questions) for conversation in conversations)
    with click.progressbar(length=questions, label="Questions", file=click.get_text_stream("stderr")) as bar:
        measured = await evaluate(conversations, keep=keep, progress=bar.update)
    page = markdown(f"{title}: {Path(path).name}", measured)
    if report:
        Path(report).write_text(page, encoding="utf-8")
    if as_json:
        print_json(measured)
    else:
        click.echo(page, nl=False)
