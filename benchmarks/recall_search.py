"""Search beside the two libraries that could have been called instead: rank-bm25 on a long message, FTS5 on short queries."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from statistics import median

import corpus
from rank_bm25 import BM25Okapi
from timing import Used, used_by

from mdmemory import Memory
from mdmemory.recall.tokens import tokens

QUERIES = 100
Case = Callable[[int], Used]


def long_message(runner: asyncio.Runner, memory: Memory, size: int) -> tuple[Case, Case]:
    """A message of 300 words, another one each round, searched by us and scored by rank-bm25 over the same terms."""
    index = BM25Okapi([tokens(corpus.note(number)) for number in range(size)])

    def ours(number: int) -> Used:
        return used_by(lambda: runner.run(search(memory, corpus.message(number))))

    def bare(number: int) -> Used:
        terms = tokens(corpus.message(number))
        return used_by(lambda: index.get_scores(terms))

    return ours, bare


def short_queries(runner: asyncio.Runner, memory: Memory, size: int) -> tuple[Case, Case]:
    """The median of a hundred queries, others each round, by us and by an FTS5 table of the same terms."""
    table = sqlite3.connect("")  # a file of its own, which goes with it
    table.execute("CREATE VIRTUAL TABLE notes USING fts5(terms)")
    table.executemany("INSERT INTO notes VALUES (?)", ((" ".join(tokens(corpus.note(number))),) for number in range(size)))
    table.commit()

    def ours(number: int) -> Used:
        return p50([lambda query=query: runner.run(search(memory, query)) for query in corpus.queries(size, QUERIES, number)])

    def bare(number: int) -> Used:
        matches = [" OR ".join(f'"{term}"' for term in tokens(query)) for query in corpus.queries(size, QUERIES, number)]
        return p50([lambda match=match: ask(match) for match in matches])

    def ask(match: str) -> None:
        table.execute("SELECT rowid FROM notes WHERE notes MATCH ? ORDER BY rank LIMIT 10", (match,)).fetchall()

    return ours, bare


async def search(memory: Memory, query: str) -> None:
    """Returns nothing: `Runner.run` has Python 3.11 make text of what a coroutine returns, as it puts the signal handler back."""
    await memory.folder.search(query, limit=10)


def p50(calls: list[Callable[[], None]]) -> Used:
    """What the call in the middle uses."""
    used = [used_by(call) for call in calls]
    return Used(median(each.cpu_s for each in used), median(each.wall_s for each in used))
