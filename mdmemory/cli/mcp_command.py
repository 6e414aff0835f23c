"""`mdmemory mcp`. Floor 8."""

from __future__ import annotations

import os
from typing import Any

import click

from mdmemory.cli.client_config import print_config
from mdmemory.cli.terminal import CONFIG_FILE, DEFAULT_FOLDER, json_option, opened, refuse_file, run

DEFAULT_PORT = 8765


@click.command("mcp")
@click.argument("folder", required=False, envvar="MDMEMORY_FOLDER", default=DEFAULT_FOLDER)
@click.option("--http", metavar="[HOST:]PORT", help="Serve HTTP there, in place of one client over stdin and stdout.")
@click.option("--token", envvar="MDMEMORY_TOKEN", help="What HTTP clients must send as bearer token; MDMEMORY_TOKEN is safer.")
@click.option("--allow-host", "names", multiple=True, metavar="NAME", help="Another name under which HTTP clients reach it.")
@click.option("--read-only", is_flag=True, help="Let clients read and not change the memory.")
@click.option(
    "--config",
    envvar="MDMEMORY_CONFIG",
    metavar="CLIENT|FILE",
    help="Print what to tell a client, and end: `--config list` names them. Or the file with settings.",
)
@json_option
@run
async def mcp(folder: str, http: str | None, config: str | None, read_only: bool, as_json: bool, **options: Any) -> None:
    """Serve the memory to MCP clients.

    Claude Code, Cursor, Zed and others start it themselves when they are told of it: --config prints how.
    FOLDER is ./memory by default; it is made when something is saved in it.
    """
    from mdmemory.errors import ConfigError

    refuse_file(folder)
    if config is not None and not os.path.isfile(config):
        from mdmemory.mcp_server.clients import CLIENTS, snippet

        more = ["--read-only"] if read_only else []
        print_config(config, CLIENTS, lambda program, at: snippet(config, [program, "mcp", *more, at]), folder, as_json=as_json)
        return
    click.get_current_context().meta[CONFIG_FILE] = config
    address = _address(http) if http is not None else None
    try:
        from mdmemory.address import Address
        from mdmemory.mcp_server.http import serve_http
        from mdmemory.mcp_server.server import serve_stdio
    except ModuleNotFoundError as error:
        raise ConfigError("`mdmemory mcp` needs the extra `mcp`: pip install 'mdmemory[mcp]'") from error
    async with opened(folder, read_only=read_only) as memory:
        if address is None:
            await serve_stdio(memory)
        else:
            await serve_http(memory, Address(*address, options["token"] or None, options["names"]), _say_where)


def _say_where(url: str) -> None:
    click.echo(f"Serving MCP on {url}. Ctrl-C ends it.", err=True)


def _address(text: str) -> tuple[str, int]:
    """The host and the port in `PORT`, `HOST:PORT` or `[::1]:PORT`."""
    from mdmemory.errors import InvalidArguments

    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65_536):
        raise InvalidArguments(f"--http takes a port or HOST:PORT, such as {DEFAULT_PORT}, not {text!r:.40}")
    return host.strip("[]") or "127.0.0.1", int(port)
