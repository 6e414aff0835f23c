"""`mdmemory hook`; what agents call in its usual form is answered by `mdmemory.__main__`, before click is imported. Floor 8."""

from __future__ import annotations

import os

import click

from mdmemory.cli.client_config import print_config
from mdmemory.cli.terminal import DEFAULT_FOLDER, json_option, run


@click.command("hook")
@click.argument("event", required=False, type=click.Choice(["session-start", "user-prompt", "stop"]))
@click.option("-f", "--folder", metavar="DIR", help="The memory's folder; MDMEMORY_FOLDER or ./memory without it.")
@click.option(
    "--config",
    metavar="CLIENT|FILE",
    help="Print what to tell a coding agent, and end: `--config list` names them. Or the file with settings.",
)
@json_option
@run
def hook(event: str | None, folder: str | None, config: str | None, as_json: bool) -> None:
    """Answer a hook of a coding agent.

    Claude Code, Codex, Gemini CLI and others call it themselves when they are told of it: --config prints how. It takes the
    agent's JSON from standard input. Exit codes: 0 also when the memory can't be used, which is said on standard error; 1 called
    the wrong way. It is never 2, by which agents would stop.
    """
    from mdmemory.hooks.clients import CLIENTS, snippet
    from mdmemory.hooks.events import run_hook

    if event is None and config is not None and not os.path.isfile(config):
        place = folder or os.environ.get("MDMEMORY_FOLDER", DEFAULT_FOLDER)
        print_config(config, CLIENTS, lambda program, at: snippet(config, program, ["-f", at]), place, as_json=as_json)
    elif event is None:
        raise click.UsageError("Which event? One of session-start, user-prompt, stop; or --config with the name of an agent.")
    else:
        run_hook(event, folder, config)
