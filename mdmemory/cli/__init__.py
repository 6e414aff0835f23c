"""The terminal's door: `mdmemory`. Floor 7.

Each command imports what it needs when it runs, so that `mdmemory --help` is quick.
"""

from __future__ import annotations

import click

from mdmemory import __version__
from mdmemory.cli.agent_commands import chat, demo, prompt
from mdmemory.cli.doctor_command import doctor
from mdmemory.cli.eval_commands import evals
from mdmemory.cli.export_command import export
from mdmemory.cli.fact_commands import fact, timeline, wake_up
from mdmemory.cli.file_commands import init, ls, search, show
from mdmemory.cli.history_commands import blame, diff, log, purge, restore, undo
from mdmemory.cli.import_command import import_
from mdmemory.cli.journal_commands import context, journal
from mdmemory.cli.mcp_command import mcp
from mdmemory.cli.memory_commands import extract, forget, remember
from mdmemory.cli.serve_command import serve
from mdmemory.cli.sync_commands import pull, push
from mdmemory.cli.terminal import prepare
from mdmemory.cli.watch_command import watch


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="mdmemory")
@click.pass_context
def main(context: click.Context) -> None:
    """A long-term memory for agents: a folder of Markdown files that people can read and edit.

    The folder is ./memory unless --folder or MDMEMORY_FOLDER names another. Every command has --json. Exit codes: 0 all is well,
    1 it failed or doctor found something, 2 called the wrong way.
    """
    prepare(context)


MEMORY = (init, ls, show, search, remember, forget, extract, fact, timeline, wake_up)
CONVERSATIONS = (prompt, journal, context, chat, demo)
HISTORY = (log, diff, blame, undo, restore, purge)
UPKEEP = (doctor, import_, export, pull, push, watch, evals)
DOORS = (mcp, serve)
for command in (*MEMORY, *CONVERSATIONS, *HISTORY, *UPKEEP, *DOORS):
    main.add_command(command)
