"""`mdmemory database`: what the owner of a PostgreSQL database does with it. Floor 7."""

from __future__ import annotations

import click

from mdmemory.cli.terminal import json_option, print_json, run


@click.group()
def database() -> None:
    """Set up a PostgreSQL database for many memories, and say who may open which.

    URL is that of the database with the folder in it, such as postgres://owner@host/db?folder=users/alice. Whoever logs in as the
    role that ran set-up may open every folder, another role what it was given. A password is better kept in ~/.pgpass.
    """


@database.command("set-up")
@click.argument("url")
@json_option
@run
async def set_up(url: str, as_json: bool) -> None:
    """Make the tables, or bring them up to date.

    The first save does so, too, where whoever is logged in may; no folder need be named.
    """
    from mdmemory.backends.postgres_owner import make_tables, split_url

    await make_tables(split_url(url)[0])
    if as_json:
        print_json({"set_up": True})
    else:
        click.echo("The database is set up.")


@database.command()
@click.argument("url")
@click.argument("role")
@json_option
@run
async def give(url: str, role: str, as_json: bool) -> None:
    """Let a role open a folder.

    A folder that ends in a slash, as in ?folder=teams/red/, stands for all below it.
    """
    from mdmemory.backends import postgres_owner

    address, folder = postgres_owner.split_url(url)
    name = postgres_owner.check_folder(folder, prefix=True)
    await postgres_owner.give(address, role, name)
    if as_json:
        print_json({"role": role, "folder": name})
    else:
        click.echo(f"{role} may open {_named(name)}.")


@database.command()
@click.argument("url")
@click.argument("role")
@json_option
@run
async def take(url: str, role: str, as_json: bool) -> int:
    """Take back what a role was given.

    It ends at once, also for whoever has the folder open. Exit code 1 when the role still may open it, by what else it was given.
    """
    from mdmemory.backends import postgres_owner

    address, folder = postgres_owner.split_url(url)
    name = postgres_owner.check_folder(folder, prefix=True)
    left = await postgres_owner.take(address, role, name)
    if as_json:
        print_json({"role": role, "folder": name, "left": left})
    elif left:
        click.echo(f"{role} still may open {_named(name)}, as it was given {', '.join(left)}.")
    else:
        click.echo(f"{role} may no longer open {_named(name)}.")
    return int(bool(left))


@database.command()
@click.argument("url")
@click.option("--files", type=click.IntRange(1), metavar="N", help="At most N files, without the history's.")
@click.option("--bytes", "size", type=click.IntRange(1), metavar="N", help="At most N bytes, with the history.")
@json_option
@run
async def limit(url: str, files: int | None, size: int | None, as_json: bool) -> None:
    """Say how much a folder may hold.

    What is there stays; a folder that has more can only become smaller.
    """
    from mdmemory.backends import postgres_owner
    from mdmemory.errors import InvalidArguments

    if files is None and size is None:
        raise InvalidArguments("say how much: --files, --bytes, or both")
    address, folder = postgres_owner.split_url(url)
    name = postgres_owner.check_folder(folder)
    await postgres_owner.limit(address, name, files, size)
    if as_json:
        print_json({"folder": name, "max_files": files, "max_bytes": size})
    else:
        said = [f"{files:,} files" if files else "", f"{size:,} bytes" if size else ""]
        click.echo(f"{name} may have {' and '.join(filter(None, said))}.")


@database.command()
@click.argument("url")
@json_option
@run
async def show(url: str, as_json: bool) -> None:
    """Show how large a folder is and may be, and who may open it.

    Of a folder that ends in a slash, only the latter.
    """
    from dataclasses import asdict

    from mdmemory.backends import postgres_owner
    from mdmemory.cli.tables import print_table

    address, folder = postgres_owner.split_url(url)
    name = postgres_owner.check_folder(folder, prefix=True)
    facts = await postgres_owner.look(address, name)
    if as_json:
        print_json({"folder": name, **asdict(facts)})
        return
    if facts.files is not None:
        rows = [("files", facts.files, facts.max_files), ("bytes", facts.bytes, facts.max_bytes)]
        print_table([(what, f"{there:,}", f"{most:,}") for what, there, most in rows], (name, "THERE", "AT MOST"))
    if facts.roles is None:
        click.echo("Only the owner of the database sees who may open it.")
    elif facts.roles:
        print_table(facts.roles, ("ROLE", "WAS GIVEN"))
    else:
        click.echo("Only the owner of the database may open it.")


def _named(folder: str) -> str:
    return f"all folders below {folder}" if folder.endswith("/") else folder
