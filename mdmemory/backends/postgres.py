"""A folder in a PostgreSQL database, shared by many hosts: each verb is one statement, and so one transaction. Floor 1.

`postgres_schema/` has the tables and what happens in the database; `postgres_pool` the connections.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from mdmemory.backends import paths
from mdmemory.backends.listing import STATE, Entries, Listing, Versions
from mdmemory.backends.postgres_connection import Lost
from mdmemory.backends.postgres_owner import check_folder, split_url
from mdmemory.backends.postgres_pool import Database, acquire, release
from mdmemory.backends.postgres_recall import PostgresTerms
from mdmemory.backends.protocol import (
    HEAD_BYTES,
    MAX_FILE_BYTES,
    TOO_LARGE,
    Append,
    Delete,
    File,
    FileProblem,
    Move,
    Op,
    Put,
    Range,
    Scan,
    Version,
    check_ops,
    done_mark,
    etag_of,
    shielded,
)
from mdmemory.errors import Conflict, InvalidPath, Unavailable, UnsafeFile

TRUST_S: Final = 60.0  # how long what the database tells is trusted until a scan
_SCAN = "SELECT * FROM mdmemory.scan(%s, %s, %s, %s::text[], %s::text[], %s::bigint[], %s, %s)"
_READ = "SELECT * FROM mdmemory.read(%s, %s::text[], %s::bigint[], %s::bigint[], %s)"
_COMMIT = "SELECT * FROM mdmemory.commit(%s, %b, %s::text[], %s::text[], %s::text[], %b::bytea[], %s::text[], %s::boolean[])"
_LIFE: Final = 16  # bytes of a folder's `life`, before the `seq` in the mark of a scan
_HAPPENED: Final = "The connection to the memory's database broke, and what was under way may have been done or not. Try again."


class PostgresBackend:
    """A folder in a database.

    Args:
        address: of the database, as libpq takes it: `postgres://user@host/db`.
        folder: the folder's name, such as `users/alice`; it needs no other folder above it.
    """

    is_atomic = True  # a commit is done as a whole or not at all, so none is ever found cut short
    holds_on_to = "what the database keeps for a while: replaced rows until it is vacuumed, its write-ahead log, replicas, backups"

    def __init__(self, address: str, folder: str) -> None:
        check_folder(folder)
        self.folder, self._address = folder, address
        self._held: Database | None = None
        self._terms: PostgresTerms | None = None
        self._life: str | None = None
        self._seq = self._heard = 0
        self._looked_at = 0.0

    @classmethod
    def from_url(cls, url: str) -> PostgresBackend:
        """Open `postgres://user@host/db?folder=users/alice`; whatever else stands behind the `?` is libpq's.

        Raises:
            ConfigError: it names no folder.
        """
        address, folder = split_url(url)
        return cls(address, check_folder(folder))

    @property
    def has_news(self) -> bool:
        """Whether another connection may have changed something since the last scan, as far as the database has told.

        Of a host that died between its commit and telling of it, nothing is told: so it is true after a minute, too.
        """
        is_old = time.monotonic() > self._looked_at + TRUST_S
        return self._held is None or is_old or self._held.news.may_have(self._life, self._seq, self._heard)

    def term_tables(self, form: str) -> PostgresTerms:
        """What the database keeps of the files' words; from now on a scan brings what was noted in place of heads."""
        self._terms = PostgresTerms(lambda: self._database, self.folder, form)
        return self._terms

    async def scan(self, known: Mapping[str, Version] = {}, *, head_bytes: int = HEAD_BYTES) -> Scan:
        """Ask what changed since the scan that `known` comes from, else look at every file; as `Backend.scan`."""
        before = Versions.of(known) if isinstance(known, Versions) else Versions()
        since = _Since.of(before)
        listed = {} if since else {path: _seq_of(version) for path, version in known.items()}
        unsure = _unsure(before) if since else []
        heard, looked_at = self._database.news.heard, time.monotonic()
        rows = await self._database.rows(
            _SCAN,
            (
                self.folder,
                since.life if since else None,
                since.seq if since else 0,
                unsure,
                [path for path, seq in listed.items() if seq is not None],
                [seq for seq in listed.values() if seq is not None],
                head_bytes,
                self._terms.form if self._terms else None,
            ),
        )
        if not rows:
            return _nothing(known)
        life, is_whole, _, seq, *_ = rows[0]
        self._life, self._seq, self._heard, self._looked_at = life, seq, heard, looked_at
        versions = Versions() if is_whole or not since else _copied(before, [row[0] for row in rows[1:]])
        heads, notes = {}, {}
        for path, size, mtime_ns, number, head, note in rows[1:]:
            if size is None:
                versions.drop(path)
                continue
            versions.put(path, STATE.pack(mtime_ns, 0, size, number))
            if head is not None:
                heads[path] = head
            if note is not None:
                notes[path] = note
        root = versions.listings.get("", Listing(b"", (), {}))
        versions.listings[""] = root._replace(mark=_Since(uuid.UUID(life), seq).packed())
        return Scan(Entries(versions), heads, {}, versions, notes)

    async def read(self, wanted: Mapping[str, Range | None]) -> Mapping[str, File | FileProblem]:
        """Read files or parts of them, as `Backend.read`."""
        asked = [paths.check(path, hidden=True) for path in wanted]
        spans = [(0, None) if part is None else part for part in wanted.values()]
        starts, lengths = [start for start, _ in spans], [length for _, length in spans]
        rows = await self._database.rows(_READ, (self.folder, asked, starts, lengths, MAX_FILE_BYTES)) if asked else []
        found: dict[str, File | FileProblem] = dict.fromkeys(asked, FileProblem("absent", "it does not exist"))
        for place, kind, data, size, mtime_ns, etag in rows:
            path = asked[place - 1]
            if kind == "file":
                is_whole = len(data) == size
                found[path] = File(data, (etag or etag_of(data)) if is_whole else None, size, mtime_ns)
            elif kind == "too_large":
                found[path] = TOO_LARGE
            elif kind == "folder":
                found[path] = FileProblem("unsafe", "it is a folder, not a file")
        return found

    async def commit(self, commit_id: str, ops: Sequence[Op]) -> Mapping[str, str]:
        """Check and apply, as `Backend.commit`; a lost answer is asked for again where that does nothing twice."""
        check_ops(ops)
        return await shielded(self._commit(commit_id, ops))

    async def close(self) -> None:
        """Let go of the connections, which other folders of this process may be using."""
        held, self._held = self._held, None
        if held is not None:
            await release(held)

    @property
    def _database(self) -> Database:
        if self._held is None or not self._held.is_here:  # as in a process that was forked, or where each call has a loop
            self._held = acquire(self._address)
        return self._held

    async def _commit(self, commit_id: str, ops: Sequence[Op]) -> Mapping[str, str]:
        import psycopg

        database = self._database
        await database.set_up()
        values = (self.folder, done_mark(commit_id).encode(), *map(list, zip(*map(_row, ops), strict=True)))
        again = can_be_repeated(commit_id, ops)
        try:
            rows = await database.rows(_COMMIT, values, again=again)
        except Lost as error:
            raise Unavailable(_HAPPENED) from error
        except psycopg.Error as error:
            raise _refusal(error) from error
        database.tell(self.folder)
        return dict(rows)


class _Since(NamedTuple):
    """Up to where a scan saw: a folder's life and the number of its last change, as the mark of the root."""

    life: uuid.UUID
    seq: int

    @classmethod
    def of(cls, versions: Versions) -> _Since | None:
        mark = versions.listings[""].mark if "" in versions.listings else b""
        return cls(uuid.UUID(bytes=mark[:_LIFE]), int.from_bytes(mark[_LIFE:])) if mark else None

    def packed(self) -> bytes:
        return self.life.bytes + self.seq.to_bytes(8)


def can_be_repeated(commit_id: str, ops: Sequence[Op]) -> bool:
    """Whether a commit of which it is not known if it happened does nothing twice when it is asked for again."""
    mark = done_mark(commit_id).encode()
    if any(isinstance(op, Append) and mark in op.data for op in ops):
        return True
    return not any(isinstance(op, Move) or (isinstance(op, Append) and not op.entry_id) for op in ops)


def _row(op: Op) -> tuple[Any, ...]:
    match op:
        case Put():
            return "put", op.path, op.if_match, op.data, etag_of(op.data), op.required
        case Append():
            return "append", op.path, op.entry_id, op.data, None, True
        case Delete():
            return "delete", op.path, op.if_match, None, None, op.required
        case Move():
            return "move", op.src, op.dst, None, None, True


def _refusal(error: Any) -> Exception:
    """What the database says of a commit that it did not do."""
    told = error.diag.message_primary or ""
    match error.sqlstate:
        case "MM001":
            return Conflict(told, error.diag.message_detail or None)
        case "MM002":
            return InvalidPath(told)
        case "MM003":
            return UnsafeFile(f"The memory is full. {told} Nothing was written: delete what is not needed, or ask for more room.")
    return Unavailable(f"the memory's database did not take the change ({error.sqlstate}); nothing was written.")


def _nothing(known: Mapping[str, Version]) -> Scan:
    if known:
        raise Unavailable("the memory was there before and is gone from its database. Nothing is taken for deleted.")
    return Scan({}, {}, {})


def _seq_of(version: Version) -> int | None:
    return STATE.unpack(version)[3] if isinstance(version, bytes) and len(version) == STATE.size else None


def _unsure(known: Versions) -> list[str]:
    """The files of which no scan has told the version; a look at every name, so nothing is unpacked."""
    listings = known.listings.items()
    return [prefix + name for prefix, each in listings for name, version in each.files.items() if len(version) != STATE.size]


def _copied(known: Versions, changed: Sequence[str]) -> Versions:
    """The versions as they were, in which the folders of these paths can be changed without changing the others."""
    versions = Versions(known.listings)
    for prefix in {path[: path.rfind("/") + 1] for path in changed} & versions.listings.keys():
        listing = versions.listings[prefix]
        versions.listings[prefix] = listing._replace(files=dict(listing.files))
    return versions
