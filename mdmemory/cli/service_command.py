"""`mdmemory service`. Floor 8."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from mdmemory.cli.terminal import json_option, print_json, run

if TYPE_CHECKING:
    from mdmemory.service.serving import Serving

DEFAULT_PORT = 8767


@click.command()
@click.argument("location", required=False)
@click.option("--tokens", required=True, metavar="FILE", help="The file of tokens, which `mdmemory token` writes.")
@click.option("--workers", type=click.IntRange(1, 256), default=2, show_default=True, help="Processes that serve.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Listen there.")
@click.option("--port", type=click.IntRange(0, 65_535), default=DEFAULT_PORT, show_default=True, help="0 for any that is free.")
@click.option("--allow-host", "names", multiple=True, metavar="NAME", help="Another name under which it is reached.")
@click.option("--config", envvar="MDMEMORY_CONFIG", metavar="FILE", help="A YAML file with the settings of every memory.")
@click.option("--per-minute", type=click.IntRange(1), default=600, show_default=True, help="Requests a user may make in a minute.")
@click.option("--at-once", type=click.IntRange(1), default=8, show_default=True, help="Requests of a user answered at once.")
@click.option("--secret", envvar="MDMEMORY_SECRET", help="Seals browsers' cookies; MDMEMORY_SECRET is safer, random by default.")
@click.option("--metrics-token", envvar="MDMEMORY_METRICS_TOKEN", help="What /metrics wants as bearer token.")
@json_option
@run
def service(location: str | None, tokens: str, workers: int, as_json: bool, **options: Any) -> int:
    """Serve the memories of many users, over MCP and in the browser.

    MCP is at /mcp, the web page at /; /health and /metrics are for operators. LOCATION holds {user}, such as
    /srv/memories/{user}; the token of a request says whose memory it is for. A line of JSON a request goes to stderr. SIGTERM
    ends it when what runs has ended.
    """
    from pathlib import Path

    from mdmemory.address import Address
    from mdmemory.errors import ConfigError

    try:
        from mdmemory.service.logs import log_lines
        from mdmemory.service.storage import check_parent
        from mdmemory.service.tokens import TokenFile
        from mdmemory.service.workers import Supervisor
    except ModuleNotFoundError as error:
        raise ConfigError("`mdmemory service` needs the extra `service`: pip install 'mdmemory[service]'") from error
    address = Address(options["host"], options["port"], "of each user", options["names"])
    address.check()
    serving = _serving(location, address, options)
    check_parent(serving.location)
    file = Path(tokens).expanduser()
    TokenFile(file, serving.limits).check()
    with address.listen() as listener:
        url = address.url(listener.getsockname()[1])
        log_lines()
        Supervisor(serving, listener, file, workers).run(lambda: _say_where(url, as_json=as_json))
    return 0


def _serving(location: str | None, address: Any, options: dict[str, Any]) -> Serving:
    """How it serves, of the options and the file with settings.

    Raises:
        ConfigError: something of it can't be used.
    """
    import os
    import secrets

    from mdmemory.errors import ConfigError
    from mdmemory.folder.opening import backend_of
    from mdmemory.models import model_from_string
    from mdmemory.service.serving import Serving
    from mdmemory.service.users import Limits, location_of
    from mdmemory.settings import Settings, read_settings

    settings = read_settings(options["config"]) if options["config"] else Settings()
    template = location or os.fspath(settings.location or "")
    if not template:
        raise ConfigError("Where are the memories? Give a location with {user} in it, or a file with settings that names one.")
    serving = Serving(
        template,
        options["secret"] or secrets.token_urlsafe(32),
        settings,
        address.hosts,
        Limits(per_minute=options["per_minute"], at_once=options["at_once"]),
        options["metrics_token"],
    )
    for each in (template, *(os.fspath(mount.location) for mount in settings.mounts.values())):  # type: ignore[arg-type]  # see `Serving`
        backend_of(location_of(each, "someone"))
    if settings.model:
        model_from_string(settings.model)
    return serving


def _say_where(url: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"url": url}, indent=None)
        sys.stdout.flush()
    else:
        click.echo(f"Serving on {url}. Ctrl-C ends it.", err=True)
