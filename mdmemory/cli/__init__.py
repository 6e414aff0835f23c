"""The terminal's door: `mdmemory`. Floor 8.

A command's module is imported when it runs, and none for `mdmemory --help`: `commands` has their names and what they do.
"""

from __future__ import annotations

import click

from mdmemory import __version__
from mdmemory.cli.commands import Commands
from mdmemory.cli.terminal import prepare


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="mdmemory")
@click.pass_context
def main(context: click.Context) -> None:
    """A long-term memory for agents: a folder of Markdown files that people can read and edit.

    The folder is ./memory unless --folder or MDMEMORY_FOLDER names another. Every command has --json. Exit codes: 0 all is well,
    1 it failed or doctor found something, 2 called the wrong way.
    """
    prepare(context)
