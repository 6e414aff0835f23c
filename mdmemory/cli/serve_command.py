"""`mdmemory serve`. Floor 8."""

from __future__ import annotations

import sys

import click

from mdmemory.cli.terminal import folder_option, json_option, opened, print_json, refuse_file, run

DEFAULT_PORT = 8766


@click.command()
@folder_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen there; another than the loopback needs a token.")
@click.option("--port", type=click.IntRange(0, 65_535), default=DEFAULT_PORT, show_default=True, help="0 for any that is free.")
@click.option("--token", envvar="MDMEMORY_TOKEN", help="Lets browsers in, in place of a random one; MDMEMORY_TOKEN is safer.")
@click.option("--allow-host", "names", multiple=True, metavar="NAME", help="Another name under which browsers reach it.")
@click.option("--read-only", is_flag=True, help="Only look.")
@json_option
@run
async def serve(
    folder: str, host: str, port: int, token: str | None, names: tuple[str, ...], read_only: bool, as_json: bool
) -> int:
    """Show the memory in the browser, to read and to edit.

    Open the address that it prints: the token in it lets your browser in, and nobody else. Ctrl-C ends it.
    """
    import asyncio

    from mdmemory.address import Address
    from mdmemory.errors import ConfigError

    refuse_file(folder)
    try:
        from mdmemory.web.serve import serve_web
    except ModuleNotFoundError as error:
        raise ConfigError("`mdmemory serve` needs the extra `web`: pip install 'mdmemory[web]'") from error
    try:
        async with opened(folder, read_only=read_only) as memory:
            await serve_web(memory, Address(host, port, token or None, names), _print_url if as_json else _say_where)
    except asyncio.CancelledError:  # Ctrl-C is how it ends
        pass
    return 0


def _print_url(url: str) -> None:
    print_json({"url": url}, indent=None)
    sys.stdout.flush()


def _say_where(url: str) -> None:
    click.echo(f"Open {url}\nCtrl-C ends it.", err=True)
