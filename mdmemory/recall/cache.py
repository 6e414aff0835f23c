"""What is known of a folder's files, kept in one SQLite file so that no process reads an unchanged file again. Floor 2.

It holds each file's version and header, and its words in a full-text table (FTS5). It can be deleted at any time: everything in it
is read anew from the files. Processes share it; what one of them learnt the others need not read.

The versions of all files lie in one piece, which loads in milliseconds, with the rows that are newer beside it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mdmemory.backends.listing import Versions
from mdmemory.backends.mounts import is_own_disk
from mdmemory.backends.protocol import Version
from mdmemory.recall.packing import packed, unpacked

logger = logging.getLogger("mdmemory")
SCHEMA = 5
CACHE_ERRORS = (sqlite3.Error, ValueError, TypeError, LookupError, AttributeError)  # what is read may make no sense either
BUSY_S = 30.0  # another process writes a thousand files at a time, which takes a second
UNUSED_DAYS = 90
KEPT_GONE = 10_000  # changes back, so that a process that seldom looks is told what others have forgotten
TURNS = "-turns"  # how the file ends that tells of the last turns, beside this one: see `agent.past_turns`
_OURS = "[0-9a-f]" * 32 + ".sqlite"
_TABLES = """
    CREATE TABLE file (
        id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE,
        seq INTEGER, writer INTEGER, version, header TEXT,
        day INTEGER, mtime_ns INTEGER, passages INTEGER, length INTEGER, speakers TEXT, units TEXT
    );
    CREATE INDEX file_by_seq ON file(seq);
    CREATE INDEX file_by_day ON file(day, passages);
    CREATE INDEX file_by_speakers ON file(speakers) WHERE speakers IS NOT NULL;
    CREATE TABLE snapshot (id INTEGER PRIMARY KEY, seq INTEGER, listings TEXT, versions BLOB);
    CREATE VIRTUAL TABLE terms USING fts5(name, about, body, tokenize = "ascii");
    CREATE VIRTUAL TABLE holding USING fts5vocab(terms, row);
    CREATE VIRTUAL TABLE stands USING fts5vocab(terms, instance);
    INSERT INTO terms(terms, rank) VALUES ('hashsize', 16777216);
"""


class Cache:
    """The file, open; or the same in memory, for this process alone.

    Args:
        file: made when it is missing, and anew when it is damaged or of another version; None for memory.

    Raises:
        sqlite3.Error: also from everything that uses `db`: then `lose` it.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.file = file
        self._writer = secrets.randbits(48)
        self.is_lost = self._is_renewed = False
        self._depth = 0
        self._seq = 0
        self._read_seq = 0
        self._data_version = 0
        try:
            self.db = _opened(file)
        except sqlite3.Error:
            if file is None:
                raise
            _delete(file)
            self.db = _opened(file)

    def lose(self, error: Exception) -> None:
        """Note that the cache is damaged, so that the next look at the folder begins with an empty one."""
        if not self.is_lost:
            logger.info("the cache of a memory folder can't be used and is made anew: %s", error)
        self.is_lost = True

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """What fails in SQLite shows that the cache is damaged, and is noted."""
        try:
            yield
        except sqlite3.Error as error:
            self.lose(error)

    def renewed(self) -> Cache:
        """An empty cache in place of this one; in memory when a file can't be had, or was no use the last time."""
        self.close()
        if self.file is not None:
            with suppress(sqlite3.Error, OSError):
                _delete(self.file)
                if not self._is_renewed:
                    made = Cache(self.file)
                    made._is_renewed = True
                    return made
        return Cache()

    def close(self) -> None:
        """Let go of the file."""
        with suppress(sqlite3.Error):
            self.db.close()

    @contextmanager
    def changing(self) -> Iterator[None]:
        """One transaction; inside of another, a part of it."""
        self._depth += 1
        try:
            if self._depth == 1:
                self.db.execute("BEGIN IMMEDIATE")
                self._seq = 0
            yield
            if self._depth == 1:
                self.db.execute("COMMIT")
        except BaseException:
            if self._depth == 1 and self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise
        finally:
            self._depth -= 1

    def is_changed_by_others(self) -> bool:
        """Whether another process wrote since the last time this was asked."""
        (now,) = self.db.execute("PRAGMA data_version").fetchone()
        before, self._data_version = self._data_version, now
        return bool(before != now)

    def versions(self) -> Versions:
        """The version of every file that is known."""
        seq, *packed = self.db.execute("SELECT seq, listings, versions FROM snapshot").fetchone() or (0, "[[], {}]", b"")
        versions = unpacked(*packed)
        for path, version, _ in self._since(seq):
            versions.drop(path) if version is None else versions.put(path, version)
        self._read_seq = self._last_seq()
        return versions

    def news(self) -> Iterator[tuple[str, Version | None, str | None]]:
        """Path, version and header of what other processes noted since the last call; None for what is gone."""
        since, self._read_seq = self._read_seq, self._last_seq()
        return self._since(since)

    def _since(self, seq: int) -> Iterator[tuple[str, Version | None, str | None]]:
        rows = self.db.execute("SELECT path, version, header FROM file WHERE seq > ? AND writer <> ?", (seq, self._writer))
        return iter(rows.fetchall())

    def stamps(self, count: int) -> list[tuple[int, int]]:
        """The next numbers of changes, each with who makes them; nobody else counts on during a transaction."""
        before = self._seq or self._last_seq()
        self._seq = before + count
        return [(number, self._writer) for number in range(before + 1, self._seq + 1)]

    def _last_seq(self) -> int:
        (last,) = self.db.execute("SELECT max(seq) FROM file").fetchone()
        return last or 0

    def headers(self) -> Iterator[tuple[str, str]]:
        """Path and header of every file."""
        yield from self.db.execute("SELECT path, header FROM file WHERE header IS NOT NULL")

    def header(self, path: str) -> str | None:
        """The header of one file."""
        found: tuple[str | None] | None = self.db.execute("SELECT header FROM file WHERE path = ?", (path,)).fetchone()
        return found[0] if found else None

    def note(self, path: str, version: Version, header: str) -> None:
        """Keep a file's version and header."""
        with self.changing():
            values = (*self.stamps(1)[0], version, header, path)
            self.db.execute("UPDATE file SET seq = ?, writer = ?, version = ?, header = ? WHERE path = ?", values)

    def forget(self, path: str) -> None:
        """Keep that a file is gone."""
        with self.changing():
            values = (*self.stamps(1)[0], path)
            self.db.execute("UPDATE file SET seq = ?, writer = ?, version = NULL, header = NULL WHERE path = ?", values)

    def keep(self, versions: Versions) -> None:
        """Write the versions of a completed scan in one piece, unless another process was there meanwhile."""
        with self.changing():
            last = self._last_seq()
            (others,) = self.db.execute(
                "SELECT count(*) FROM file WHERE seq > ? AND writer <> ?", (self._read_seq, self._writer)
            ).fetchone()
            if not others:
                self.db.execute("REPLACE INTO snapshot VALUES (1, ?, ?, ?)", (last, *packed(versions)))
                gone = "DELETE FROM file WHERE version IS NULL AND day IS NULL AND seq < ?"
                self.db.execute(gone, (last - KEPT_GONE,))


def open_cache(location: str, languages: Iterable[str], folder: Path | None = None) -> Cache:
    """The cache of a memory folder; in memory where no file can be had, or only one on a network, where SQLite must not be.

    Args:
        location: of the memory folder: what no other has.
        languages: whose endings its words lack.
        folder: where the file is; None for the user's own cache folder.
    """
    if folder is None:
        import platformdirs

        folder = platformdirs.user_cache_path("mdmemory")
    name = hashlib.sha256("\0".join((location, *languages)).encode("utf-8", "surrogateescape")).hexdigest()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if sys.platform != "linux" or is_own_disk(folder.resolve()):
            return Cache(folder / f"{name[:32]}.sqlite")
    except (OSError, sqlite3.Error, RuntimeError) as error:
        logger.info("there is no cache folder to use, so all files are read in each process: %s", error)
    return Cache()


def _opened(file: Path | None) -> sqlite3.Connection:
    if file is not None:
        try:
            os.utime(file)  # shows that it is in use
        except FileNotFoundError:
            os.close(os.open(file, os.O_CREAT | os.O_RDWR, 0o600))  # only its owner may read what is in it
            _prune(file.parent)
    db = sqlite3.connect(file or ":memory:", timeout=BUSY_S, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA synchronous = OFF")  # a cache that a power cut damages is made anew
        if _schema(db) != SCHEMA:
            db.execute("PRAGMA journal_mode = WAL")  # which the file keeps
            db.execute("BEGIN IMMEDIATE")
            if _schema(db) == 0:
                for statement in (*_TABLES.split(";\n"), f"PRAGMA user_version = {SCHEMA}"):
                    db.execute(statement)
            db.execute("COMMIT")
            if _schema(db) != SCHEMA:
                raise sqlite3.DatabaseError("it is of another version")
    except BaseException:
        db.close()
        raise
    return db


def _schema(db: sqlite3.Connection) -> int:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    return int(version)


def _delete(file: Path) -> None:
    for name in (file.name, *(file.name + end for end in ("-wal", "-shm", TURNS))):
        with suppress(FileNotFoundError):
            file.with_name(name).unlink()


def _prune(folder: Path) -> None:
    """Delete the caches that nobody used for long: their folders are gone."""
    for file in folder.glob(_OURS):  # a person may keep other databases there
        with suppress(OSError):
            if file.stat().st_mtime < time.time() - UNUSED_DAYS * 86_400:
                _delete(file)
