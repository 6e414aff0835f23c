"""What every command shares: the folder option, JSON, safe text, and errors without a traceback. Floor 8."""

from __future__ import annotations

import functools
import os
import signal
import sys
import unicodedata
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from mdmemory.errors import InvalidArguments, InvalidMemoryFile, InvalidPath, MdmemoryError

if TYPE_CHECKING:
    from mdmemory.memory import Memory
    from mdmemory.models import Model

DEFAULT_FOLDER = "memory"
INTERRUPTED = 130  # as shells say it of Ctrl-C
_JOINERS = "\u200c\u200d"  # without them Persian and emoji fall apart

CONFIG_FILE = "mdmemory.config_file"  # where the context of a command keeps what --config named
_folder = click.option(
    "-f",
    "--folder",
    envvar="MDMEMORY_FOLDER",
    default=DEFAULT_FOLDER,
    show_default=True,
    metavar="DIR",
    help="The memory's folder.",
)
_config = click.option(
    "--config",
    envvar="MDMEMORY_CONFIG",
    metavar="FILE",
    expose_value=False,
    callback=lambda context, option, value: context.meta.update({CONFIG_FILE: value}),
    help="A YAML file with settings, which may name the folder and others to mount.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def prepare(context: click.Context) -> None:
    """Turn colours off where they are not wanted, and let no character be one that the output can't take."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        context.color = False
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="replace" if stream is sys.stdin else "backslashreplace")


def run(command: Callable[..., Coroutine[Any, Any, int | None] | int | None]) -> Callable[..., None]:
    """Make a click callback of a command: its integer is the exit code, our errors are one line on stderr."""

    @functools.wraps(command)
    def callback(*args: Any, **kwargs: Any) -> None:
        try:
            import asyncio

            result = command(*args, **kwargs)
            code = asyncio.run(result) if asyncio.iscoroutine(result) else result
        except MdmemoryError as error:
            kind = CalledWrongly if isinstance(error, (InvalidPath, InvalidArguments)) else click.ClickException
            raise kind(one_line(str(error))) from error
        except KeyboardInterrupt:
            click.echo(err=True)
            sys.exit(INTERRUPTED)
        sys.exit(code or 0)

    return callback


@contextmanager
def asking() -> Iterator[None]:
    """While a person is asked, let Ctrl-C end the command: asyncio would take note of it, and go on waiting for an answer."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)


def wants_to_edit_again(error: MdmemoryError) -> bool:
    """Whether whoever typed a text that can't be a memory file, and sits at a terminal, goes on with it."""
    if not isinstance(error, InvalidMemoryFile) or not sys.stdin.isatty():
        return False
    click.echo(one_line(str(error)), err=True)
    with asking():
        return click.confirm("Edit it again?", default=True, err=True)


class CalledWrongly(click.ClickException):
    """A failure that is the caller's: another path or option is needed."""

    exit_code = 2


def failure(text: str) -> click.ClickException:
    """The error that click shows as one line."""
    return click.ClickException(one_line(text))


def folder_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which memory: `opened` heeds both."""
    return _folder(_config(command))


def opened(
    folder: str, model: Model | str | None = None, *, journal: bool = True, read_only: bool = False
) -> AbstractAsyncContextManager[Memory]:
    """The memory that a command was told to use: that of the configuration file, unless --folder names another home.

    Args:
        journal: whether conversations are kept, where the settings say so.
        read_only: whether nothing may be written.
    """
    from mdmemory.folder import permissions
    from mdmemory.memory import open_memory
    from mdmemory.settings import Settings, read_settings

    file = _config_file()
    settings = Settings() if file is None else read_settings(file)
    is_named = click.get_current_context().get_parameter_source("folder") is ParameterSource.COMMANDLINE
    location = folder if is_named or settings.location is None else settings.location
    config = settings.config if journal else replace(settings.config, journal=False)
    policy = permissions.read_only if read_only else permissions.allow_all
    return open_memory(location, mounts=settings.mounts, model=model, config=config, policy=policy)


def _config_file() -> str | None:
    context = click.get_current_context(silent=True)
    return context.meta.get(CONFIG_FILE) if context else None


def require_folder(folder: str) -> None:
    """Stop with a plain message when there is no such folder, and no configuration file that may name another.

    Raises:
        ClickException
    """
    if _config_file() is not None:
        return
    refuse_file(folder)
    if "://" not in folder and not os.path.isdir(os.path.expanduser(folder)):
        raise failure(
            f"There is no folder {folder!r}. Make one with `{command_on('init', folder)}`, or name another with --folder."
        )


def inside(path: str, folder: str) -> str:
    """A path inside the folder, given as it is there or as shells complete it."""
    return path.removeprefix("./").removeprefix(f"{folder.removeprefix('./').rstrip('/')}/")


def refuse_file(folder: str) -> None:
    """Stop with a plain message when what should be a folder is a file.

    Raises:
        ClickException
    """
    path = os.path.expanduser(folder)
    if "://" not in folder and os.path.exists(path) and not os.path.isdir(path):
        raise failure(f"{folder!r} is not a folder. A memory is a folder of Markdown files: name one with --folder.")


def command_on(command: str, folder: str) -> str:
    """A command line for this folder, ready to be pasted."""
    import shlex

    if file := _config_file():
        return f"mdmemory {command} --config {shlex.quote(file)}"
    if folder == DEFAULT_FOLDER:
        return f"mdmemory {command}"
    option = "" if command in ("init", "demo") else "-f "
    return f"mdmemory {command} {option}{shlex.quote(folder)}"


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a value as JSON in which every script is readable, and what could steer a terminal is escaped."""
    import json

    takes_all = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    text = json.dumps(value, ensure_ascii=not takes_all, indent=indent, default=str)
    click.echo("".join(char if char == "\n" or _is_safe(char) else json.dumps(char)[1:-1] for char in text))


def one_line(text: str) -> str:
    """One line that can't steer a terminal."""
    return "".join(char if _is_safe(char) else " " for char in " ".join(text.split()))


def harmless(text: str) -> str:
    """The text with its lines, and without what could steer a terminal."""
    return "".join(char for char in text if char in "\n\t" or _is_safe(char))


def _is_safe(char: str) -> bool:
    return char.isprintable() or char in _JOINERS or unicodedata.category(char) == "Zs"
