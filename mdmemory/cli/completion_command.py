"""`mdmemory completion`. Floor 8."""

from __future__ import annotations

import click

from mdmemory.cli.terminal import json_option, print_json, run

SHELLS = ("bash", "zsh", "fish")
_VARIABLE = "_MDMEMORY_COMPLETE"  # as click has it for a program of this name


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@json_option
@run
def completion(shell: str, as_json: bool) -> None:
    """Print what completes commands and paths in your shell.

    Options too, and of paths those of memory files. For bash, put `eval "$(mdmemory completion bash)"` into ~/.bashrc; for zsh,
    the same with zsh into ~/.zshrc. For fish, write it to ~/.config/fish/completions/mdmemory.fish.
    """
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root()
    made = get_completion_class(shell)
    assert made is not None, "click knows these shells"
    script = made(root.command, {}, "mdmemory", _VARIABLE).source()
    if as_json:
        print_json({"shell": shell, "script": script})
    else:
        click.echo(script)
