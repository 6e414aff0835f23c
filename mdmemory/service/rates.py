"""What each user has taken lately, counted for all workers of a host in one small SQLite file. Floor 7.

Requests per minute are counted as GCRA does (ITU-T I.371): one number a user, the time at which everything taken is paid back.
A quarter of a minute's requests may come at once, so no minute has more than five quarters of them. Every worker counts in the same
transaction, so both limits are exact however the requests are spread. The file lives as long as the service does.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Literal

from mdmemory.service.users import Limits, User

logger = logging.getLogger("mdmemory.service")
Kind = Literal["request", "stream"]
BURST: Final = 0.25
_PRUNE_EVERY: Final = 10_000
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS spent (user TEXT PRIMARY KEY, until REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS running (user TEXT, kind TEXT, worker INTEGER, n INTEGER NOT NULL, PRIMARY KEY (user, kind, worker))
    WITHOUT ROWID;
"""
_COUNT: Final = """
INSERT INTO running VALUES (?, ?, ?, 1) ON CONFLICT DO UPDATE SET n = n + 1
"""


class TooMuch(Exception):
    """A user has reached a limit.

    Args:
        limit: its name.
        wait_s: after which it is worth trying again.
    """

    def __init__(self, limit: str, wait_s: float) -> None:
        super().__init__(limit)
        self.limit, self.wait_s = limit, wait_s


class Rates:
    """Counts what users take.

    Args:
        file: shared by the workers; `:memory:` for one alone.
        worker: names this process among them.
    """

    def __init__(self, file: str = ":memory:", worker: int = 0) -> None:
        self._worker, self._asked = worker, 0
        self._owed: list[tuple[str, Kind]] = []  # what has ended and could not be counted yet
        self._db = sqlite3.connect(
            file, timeout=1.0, isolation_level=None, check_same_thread=False
        )  # one loop uses it, not always its maker's
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=OFF")
        self._db.executescript(_TABLES)

    @contextmanager
    def taking(self, user: User, limits: Limits, kind: Kind = "request") -> Iterator[None]:
        """Count a request or a stream for as long as the context lasts.

        Raises:
            TooMuch: a limit is reached; nothing was counted.
        """
        try:
            self._begin(user.name, limits, kind, time.monotonic())  # the same clock in all processes of a host
            is_counted = True
        except sqlite3.Error:  # the disk is full, perhaps: then users are served unlimited rather than not
            logger.exception("requests can't be counted")
            is_counted = False
        try:
            yield
        finally:
            if is_counted:
                self._end(user.name, kind)

    def _begin(self, user: str, limits: Limits, kind: Kind, now: float) -> None:
        self._asked += 1
        self._pay()
        self._db.execute("BEGIN IMMEDIATE")
        try:
            if self._asked % _PRUNE_EVERY == 0:
                self._db.execute("DELETE FROM spent WHERE until < ?", (now,))
            running = self._db.execute("SELECT total(n) FROM running WHERE user = ? AND kind = ?", (user, kind)).fetchone()[0]
            if running >= (limits.at_once if kind == "request" else limits.streams):
                raise TooMuch("at_once" if kind == "request" else "streams", 1.0)
            row = self._db.execute("SELECT until FROM spent WHERE user = ?", (user,)).fetchone()
            until = max(row[0] if row else now, now) + 60 / limits.per_minute
            ahead = until - now - max(60 * BURST, 60 / limits.per_minute)
            if ahead > 1e-9:
                raise TooMuch("per_minute", ahead)
            self._db.execute("INSERT INTO spent VALUES (?, ?) ON CONFLICT DO UPDATE SET until = excluded.until", (user, until))
            self._db.execute(_COUNT, (user, kind, self._worker))
            self._db.execute("COMMIT")
        finally:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")

    def _end(self, user: str, kind: Kind) -> None:
        self._owed.append((user, kind))
        try:
            self._pay()
        except sqlite3.Error:  # else who came while the disk was full would have less from then on
            logger.exception("a request that ended can't be counted yet")

    def _pay(self) -> None:
        """Count what has ended."""
        while self._owed:
            place = (*self._owed[-1], self._worker)
            self._db.execute("UPDATE running SET n = n - 1 WHERE user = ? AND kind = ? AND worker = ?", place)
            self._owed.pop()
            self._db.execute("DELETE FROM running WHERE user = ? AND kind = ? AND worker = ? AND n <= 0", place)

    def forget(self, worker: int) -> None:
        """Take back what a worker that is gone had begun.

        Raises:
            sqlite3.Error: it can't be written now.
        """
        self._db.execute("DELETE FROM running WHERE worker = ?", (worker,))

    def close(self) -> None:
        """Close the file."""
        self._db.close()
