"""`mdmemory token`. Floor 8."""

from __future__ import annotations

from datetime import datetime

import click

from mdmemory.cli.terminal import failure, json_option, print_json, run


@click.command()
@click.argument("user")
@click.option("--tokens", required=True, metavar="FILE", help="The file of tokens; it is made if there is none.")
@click.option("--read-only", is_flag=True, help="With it they may only look.")
@click.option("--until", type=click.DateTime(["%Y-%m-%d"]), metavar="DAY", help="Its last day, such as 2027-01-31 (UTC).")
@click.option("--per-minute", type=click.IntRange(1), metavar="N", help="Requests they may make in a minute.")
@click.option("--at-once", type=click.IntRange(1), metavar="N", help="Requests of theirs answered at once.")
@click.option("--revoke", is_flag=True, help="Take all tokens of the user out of the file instead.")
@json_option
@run
def token(
    user: str, tokens: str, read_only: bool, until: datetime | None, revoke: bool, as_json: bool, **limits: int | None
) -> int:
    """Make a token for a user of the service, or revoke them.

    It is printed this once, as the file keeps only its hash. A running service takes it within a second or two, and as soon
    lets nobody in any more by one that is revoked.
    """
    from pathlib import Path

    from mdmemory.service import tokens as files
    from mdmemory.service.users import check_name

    check_name(user)
    file = Path(tokens).expanduser()
    if revoke:
        if not file.exists():
            raise failure(f"There is no file {file.name!r}.")
        count = files.revoke(file, user)
        if as_json:
            print_json({"user": user, "revoked": count})
        else:
            click.echo(f"{count} token{'' if count == 1 else 's'} of {user} revoked.")
        return 0 if count else 1
    options = ["read-only"] if read_only else []
    options += [f"until={until:%Y-%m-%d}"] if until else []
    options += [f"{name.replace('_', '-')}={limit}" for name, limit in limits.items() if limit]
    made = files.new_token(file, user, *options)
    if as_json:
        print_json({"user": user, "token": made})
    else:
        click.echo(made)
        click.echo("Keep it: it is not shown again.", err=True)
    return 0
