"""`mdmemory mcp`. Floor 7."""

from __future__ import annotations

from typing import Any

import click

from mdmemory.cli.terminal import DEFAULT_FOLDER, json_option, print_json, refuse_file, run

DEFAULT_PORT = 8765


@click.command("mcp")
@click.argument("folder", required=False, envvar="MDMEMORY_FOLDER", default=DEFAULT_FOLDER)
@click.option("--http", metavar="[HOST:]PORT", help="Serve HTTP there, in place of one client over stdin and stdout.")
@click.option("--token", envvar="MDMEMORY_TOKEN", help="What HTTP clients must send as bearer token; MDMEMORY_TOKEN is safer.")
@click.option("--allow-host", "names", multiple=True, metavar="NAME", help="Another name under which HTTP clients reach it.")
@click.option("--read-only", is_flag=True, help="Let clients read and not change the memory.")
@click.option("--config", "client", metavar="CLIENT", help="Print what to tell a client, and end; `list` names the clients.")
@json_option
@run
async def mcp(folder: str, http: str | None, client: str | None, read_only: bool, as_json: bool, **options: Any) -> None:
    """Serve the memory to MCP clients.

    Claude Code, Cursor, Zed and others start it themselves when they are told of it: --config prints how.
    FOLDER is ./memory by default; it is made when something is saved in it.
    """
    refuse_file(folder)
    if client is not None:
        _print_config(client, folder, read_only, as_json)
        return
    address = _address(http) if http is not None else None
    from mdmemory.errors import ConfigError
    from mdmemory.folder import permissions
    from mdmemory.memory import open_memory

    try:
        from mdmemory.mcp_server.http import Address, serve_http
        from mdmemory.mcp_server.server import serve_stdio
    except ModuleNotFoundError as error:
        raise ConfigError("`mdmemory mcp` needs the extra `mcp`: pip install 'mdmemory[mcp]'") from error
    policy = permissions.read_only if read_only else permissions.allow_all
    async with open_memory(folder, policy=policy) as memory:
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


def _print_config(client: str, folder: str, read_only: bool, as_json: bool) -> None:
    import os
    import shutil

    from mdmemory.mcp_server.clients import CLIENTS, snippet

    if client == "list":
        if as_json:
            print_json(CLIENTS)
        else:
            click.echo("\n".join(CLIENTS))
        return
    place = folder if "://" in folder else os.path.abspath(os.path.expanduser(folder))
    options = ["--read-only"] if read_only else []
    where, text = snippet(client, [shutil.which("mdmemory") or "mdmemory", "mcp", *options, place])
    if as_json:
        print_json({"client": client, "where": where, "text": text})
    else:
        click.echo(f"For {where}:", err=True)
        click.echo(text)
