"""The words of a folder's memory files, in the database: `postgres_schema/2_recall.sql` has what happens there. Floor 1."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from mdmemory.backends.postgres_pool import Database
from mdmemory.backends.term_tables import Kept, Lookup, Noted, NotKept
from mdmemory.errors import Unavailable

MAX_TERM_BYTES: Final = 1000  # PostgreSQL takes none of more than 2,046, so of longer ones there is a hash
_READ_ONLY: Final = ("25006", "42501")  # SQLSTATE in a database, and of a role, that may only read
_FIND = "SELECT * FROM mdmemory.find(%s, %s, %s::text[], %s::text[], %s, %s::text[], %s::text[], %s::bigint[])"
_KINDS = "text text bigint bigint text integer integer text text text text text text"
_NOTE = f"SELECT mdmemory.note(%s, %s, {', '.join(f'%s::{kind}[]' for kind in _KINDS.split())})"


class PostgresTerms:
    """`TermTables` of one folder.

    Args:
        database: the one to ask.
        form: what made the terms; those of another form are not seen.
    """

    def __init__(self, database: Callable[[], Database], folder: str, form: str) -> None:
        self._database, self._folder, self.form = database, folder, form

    async def find(
        self,
        terms: Sequence[str],
        limit: int,
        allowed: Collection[str] | None = None,
        *,
        also: Collection[str] = (),
        have: Mapping[str, int] = {},
        noting: Sequence[Noted] = (),
    ) -> Lookup:
        """Look up terms, as `TermTables.find`."""
        only = None if allowed is None else list(allowed)
        asked = {_lexeme(term): term for term in terms}
        values = (self._folder, self.form, list(asked), only, limit, list(also), list(have), list(have.values()))
        first = (_NOTE, self._noted(noting)) if noting else None
        with _refusals():
            rows = await self._database().rows(_FIND, values, first=first)
        days, speakers, holding = dict[int, tuple[int, int]](), dict[str, tuple[int, int, int]](), dict.fromkeys(terms, 0)
        found, others = list[Kept](), list[Kept]()
        for kind, path, seq, number, day, mtime_ns, *texts in rows:
            match kind:
                case "day":
                    days[day] = number, mtime_ns
                case "speaker":
                    speakers[path] = number, mtime_ns, seq
                case "term":
                    holding[asked[path]] = number
                case _:
                    (found if kind == "found" else others).append(Kept(path, seq, day, mtime_ns, *texts))
        return Lookup(days, speakers, holding, found, others)

    async def note(self, files: Sequence[Noted]) -> None:
        """Keep what was read of files, as `TermTables.note`."""
        with _refusals():
            await self._database().rows(_NOTE, self._noted(files))

    def _noted(self, files: Sequence[Noted]) -> tuple[Any, ...]:
        columns = [list(column) for column in zip(*files, strict=True)]
        return (self._folder, self.form, *columns, [_terms(file) for file in files])


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except Unavailable as error:
        if getattr(error.__cause__, "sqlstate", None) in _READ_ONLY:
            raise NotKept(str(error)) from error
        raise


def _terms(file: Noted) -> str:
    """Each term once."""
    return " ".join({_lexeme(term) for term in f"{file.name} {file.about} {file.body}".split()})


def _lexeme(term: str) -> str:
    data = term.encode()
    return term if len(data) <= MAX_TERM_BYTES else hashlib.sha256(data).hexdigest()
