"""What the owner of a database does with it: tables, who may open which folder, and how much a folder may hold. Floor 1."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit

from mdmemory.backends import paths
from mdmemory.backends.postgres_connection import connected
from mdmemory.backends.postgres_set_up import checked, set_up
from mdmemory.errors import ConfigError

if TYPE_CHECKING:
    from psycopg import AsyncConnection

MAX_FOLDER_BYTES: Final = 512
_NO_FOLDER: Final = "A database holds many memories: say which, as in postgres://user@host/db?folder=users/alice."
_ROLES: Final = """SELECT pg_get_userbyid(role), prefix FROM mdmemory.access
    WHERE prefix = %(folder)s OR right(prefix, 1) IN ('', '/') AND starts_with(%(folder)s, prefix) ORDER BY 1, 2"""
_LIMIT: Final = (
    "UPDATE mdmemory.folder SET max_files = coalesce(%s, max_files), max_bytes = coalesce(%s, max_bytes) WHERE name = %s"
)
_SIZES: Final = "SELECT files, bytes, max_files, max_bytes FROM mdmemory.folder WHERE name = %s"
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FolderFacts:
    """How large a folder is, how large it may become, and who may open it.

    Args:
        files, bytes: what it has; the bytes with the history. None, like their limits, of what only begins with a name.
        roles: each role with the name that it was given; None for whoever is not the owner.
    """

    files: int | None
    bytes: int | None
    max_files: int | None
    max_bytes: int | None
    roles: tuple[tuple[str, str], ...] | None


def split_url(url: str) -> tuple[str, str | None]:
    """The address of the database, as libpq takes it, and the folder; None when none is named.

    Raises:
        ConfigError: it names several, or is the URL of something else.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql"):
        raise ConfigError("This is not the URL of a PostgreSQL database: give one such as postgres://user@host/db.")
    options = parse_qsl(parts.query, keep_blank_values=True)
    folders = [value for name, value in options if name == "folder"]
    if len(folders) > 1:
        raise ConfigError(_NO_FOLDER)
    rest = urlencode([(name, value) for name, value in options if name != "folder"])
    return f"postgresql://{parts.netloc}{parts.path}{f'?{rest}' if rest else ''}", folders[0] if folders else None


def check_folder(folder: str | None, *, prefix: bool = False) -> str:
    """A folder's name as it is, if a folder may have it.

    Args:
        prefix: whether it may also be what names begin with, ending in a slash.

    Raises:
        ConfigError
    """
    if folder is None:
        raise ConfigError(_NO_FOLDER)
    name = folder.removesuffix("/") if prefix else folder
    if not name or len(folder.encode(errors="replace")) > MAX_FOLDER_BYTES or paths.fault(name):
        raise ConfigError(f"{folder!r} is no name of a folder in a database. Give one such as users/alice.")
    return folder


async def make_tables(address: str) -> None:
    """Make the tables of a database, or bring them up to date.

    Raises:
        Unavailable, ConfigError: they can't be made.
    """

    async def work(connection: AsyncConnection[Any]) -> None:
        await checked(connection)
        await set_up(connection)

    await connected(address, work)


async def give(address: str, role: str, folder: str) -> None:
    """Let a role open a folder, or all whose names begin with a prefix.

    Raises:
        Unavailable, ConfigError: also when there is no such role, or whoever is logged in is not the owner.
    """

    async def work(connection: AsyncConnection[Any]) -> None:
        await connection.execute("SELECT mdmemory.give(%s, %s)", (role, folder))

    await _on_tables(address, _with_role(role, work))


async def take(address: str, role: str, folder: str) -> tuple[str, ...]:
    """Take back what was given.

    Returns:
        What the role was given besides, by which it still may open the folder.

    Raises:
        Unavailable, ConfigError: also when there is no such role, or whoever is logged in is not the owner.
    """

    async def work(connection: AsyncConnection[Any]) -> tuple[str, ...]:
        await connection.execute("SELECT mdmemory.take(%s, %s)", (role, folder))
        left = await (await connection.execute(_ROLES, {"folder": folder})).fetchall()
        return tuple(prefix for name, prefix in left if name == role)

    return await _on_tables(address, _with_role(role, work))


async def limit(address: str, folder: str, files: int | None, size: int | None) -> None:
    """Say how many files, and bytes with the history, a folder may have; None leaves it as it is. The folder is made.

    Raises:
        Unavailable, ConfigError: also when whoever is logged in is not the owner.
    """

    async def work(connection: AsyncConnection[Any]) -> None:
        statement = (
            "UPDATE mdmemory.folder SET max_files = coalesce(%s, max_files), max_bytes = coalesce(%s, max_bytes) WHERE name = %s"
        )
        async with connection.transaction():
            await connection.execute("SELECT mdmemory.locked(%s)", (folder,))
            await connection.execute(statement, (files, size, folder))

    await _on_tables(address, work)


async def look(address: str, folder: str) -> FolderFacts:
    """What there is to know of a folder, or of what names begin with.

    Raises:
        Unavailable, ConfigError: also when whoever is logged in may not open it.
    """
    import psycopg

    async def work(connection: AsyncConnection[Any]) -> FolderFacts:
        sizes: tuple[Any, ...] = (None, None, None, None)
        if not folder.endswith("/"):
            await connection.execute("SELECT mdmemory.refuse_others(%s)", (folder,))
            await connection.execute("SELECT set_config('mdmemory.folder', %s, false)", (folder,))
            found = await (await connection.execute(_SIZES, (folder,))).fetchone()
            if found is None:
                raise ConfigError(f"There is no folder {folder} in the database yet: the first save makes it.")
            sizes = found
        files, size, max_files, max_bytes = sizes
        roles: tuple[tuple[str, str], ...] | None = None
        with suppress(psycopg.errors.InsufficientPrivilege):
            roles = tuple(
                [(name, prefix) for name, prefix in await (await connection.execute(_ROLES, {"folder": folder})).fetchall()]
            )
        return FolderFacts(files, size, max_files, max_bytes, roles)

    return await _on_tables(address, work)


async def _on_tables(address: str, work: Callable[[AsyncConnection[Any]], Awaitable[T]]) -> T:
    async def checked_first(connection: AsyncConnection[Any]) -> T:
        if not await checked(connection):
            raise ConfigError("The database holds no memory yet: `mdmemory database set-up URL` makes its tables.")
        return await work(connection)

    return await connected(address, checked_first)


def _with_role(role: str, work: Callable[[AsyncConnection[Any]], Awaitable[T]]) -> Callable[[AsyncConnection[Any]], Awaitable[T]]:
    async def explained(connection: AsyncConnection[Any]) -> T:
        import psycopg

        try:
            return await work(connection)
        except psycopg.errors.UndefinedObject as error:
            raise ConfigError(f"The database has no role {role}: make one that may log in, with CREATE ROLE.") from error

    return explained
