"""Users for the benchmark of the service: filled quickly, and looked through afterwards for what is lost or crossed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

import corpus
import psycopg

from mdmemory import Create, open_memory

FILES = 50  # of each user
PATTERNS = 10  # users whose files are read and noted; the others have the same bytes
_MARK = re.compile(r"mark-(\d+)-(\d+)-(\d+)")


def place_of(url: str, user: int) -> str:
    """A user's folder."""
    return f"{url}?folder=users/{user}"


async def fill(url: str, users: int) -> None:
    """Make users 0, 1, 2 and so on, each with a folder of notes and a history."""
    for user in range(min(PATTERNS, users)):
        async with open_memory(place_of(url, user)) as memory:
            changes = [Create(corpus.path_of(n), corpus.note(n * PATTERNS + user).encode()) for n in range(FILES)]
            await memory.folder.apply(changes, "person", "filled")
            await memory.search("anything")
    with psycopg.connect(url.replace("//mdmemory@", "//admin@"), autocommit=True) as connection:
        (index,) = connection.execute("SELECT pg_get_indexdef('mdmemory.recall_by_terms'::regclass)").fetchone() or ("",)
        connection.execute("DROP INDEX mdmemory.recall_by_terms")  # made at once afterwards, it takes a tenth of the time
        connection.execute(
            "INSERT INTO mdmemory.folder (name, seq, files, bytes) SELECT 'users/' || user_number, seq, files, bytes "
            "FROM generate_series(%s::int, %s::int) AS user_number JOIN mdmemory.folder ON name = 'users/' || user_number %% %s",
            [PATTERNS, users - 1, PATTERNS],
        )
        for table in ("file", "tail", "recall"):
            query = "SELECT column_name FROM information_schema.columns WHERE table_schema = 'mdmemory' AND table_name = %s"
            names = [name for (name,) in connection.execute(query + " ORDER BY ordinal_position", [table])]
            values = ", ".join("made.id" if name == "folder" else f"pattern.{name}" for name in names)
            copy = (
                f"INSERT INTO mdmemory.{table} ({', '.join(names)}) SELECT {values} FROM mdmemory.folder AS made "
                "JOIN mdmemory.folder AS source ON source.name = 'users/' || split_part(made.name, '/', 2)::int %% %s "
                f"JOIN mdmemory.{table} AS pattern ON pattern.folder = source.id WHERE made.id <> source.id"
            )
            connection.execute(copy.encode(), [PATTERNS])
        connection.execute(index)
        connection.execute("CREATE TABLE bare (id int PRIMARY KEY, value int NOT NULL)")
        connection.execute("INSERT INTO bare SELECT number, 0 FROM generate_series(0, 9999) AS number")
        connection.execute("GRANT ALL ON bare TO mdmemory")
        connection.execute("VACUUM ANALYZE")


def mark(user: int, session: int, turn: int) -> str:
    """What a turn saves and says, so that it is known again."""
    return f"mark-{user}-{session}-{turn}"


async def missing_and_crossed(url: str, saved: Mapping[int, set[str]]) -> tuple[int, int]:
    """Look through each user's files and conversations.

    Args:
        saved: the marks whose turns ended well, by user.

    Returns:
        How many marks are not exactly once in a file and in a conversation, and how many are another user's.
    """
    missing = crossed = 0
    for user, marks in saved.items():
        async with open_memory(place_of(url, user)) as memory:
            scan = await memory.folder.scan()
            texts = await memory.folder.backend.read(dict.fromkeys(scan.files))
            found = Counter[str]()
            for path, file in texts.items():
                each = _MARK.findall(getattr(file, "data", b"").decode())
                found.update(f"{'said' if path.startswith('journal/') else 'kept'} {mark(*map(int, numbers))}" for numbers in each)
                crossed += sum(int(owner) != user for owner, _, _ in each)
            missing += sum(found[f"kept {each}"] < 1 or found[f"said {each}"] != 1 for each in marks)
    return missing, crossed
