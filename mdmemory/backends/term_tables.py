"""What a backend offers that can search: the words of all memory files, kept where the files are. Floor 1.

So a worker that knows nothing yet finds as well as one that has read everything. What is kept counts only for the bytes that it was
made from, and can be lost at any time: whoever reads a file keeps it again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from mdmemory.errors import Unavailable


class NotKept(Unavailable):
    """Nothing can be kept there, now or later: it may only be read."""


class Noted(NamedTuple):
    """What is known of a memory file's words.

    Args:
        etag: None when only the head was read.
        header: what `Scan.notes` brings back.
        day: the date that it states, or of its last change, counted from year 1.
        speakers: JSON object: who speaks, with the number of their turns; None when nobody does.
        units: JSON array: the passages, measured.
        name, about, body: terms, parted by spaces; in the body, a line end parts passages.
    """

    path: str
    etag: str | None
    size: int
    mtime_ns: int
    header: str
    day: int
    passages: int
    speakers: str | None
    units: str
    name: str
    about: str
    body: str


class Kept(NamedTuple):
    """What of a candidate is kept; None for the texts of which the caller said to have them."""

    path: str
    seq: int
    day: int
    mtime_ns: int
    speakers: str | None
    units: str | None
    name: str | None
    about: str | None
    body: str | None


@dataclass(frozen=True, slots=True)
class Lookup:
    """What a search needs of the files there.

    Args:
        days: files and passages by day.
        speakers: by name, in how many files, how many turns, and how many turns all speakers of these have.
        holding: how many files hold each term.
        found: the candidates.
        also: files that were asked for in any case.
    """

    days: Mapping[int, tuple[int, int]]
    speakers: Mapping[str, tuple[int, int, int]]
    holding: Mapping[str, int]
    found: Sequence[Kept]
    also: Sequence[Kept]


class TermTables(Protocol):
    """The words of all memory files, kept and searched where the files are, for workers that know nothing yet."""

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
        """Look up terms, in one round trip.

        Args:
            allowed: only these paths as candidates; None for all.
            also: paths of files to bring in any case.
            have: `Kept.seq` of the files whose texts need not be sent.
            noting: to keep before.

        Raises:
            NotKept: it may only be read; without `noting` it is searched.
        """
        ...

    async def note(self, files: Sequence[Noted]) -> None:
        """Keep what was read of files, where they are still the same.

        Raises:
            NotKept
        """
        ...
