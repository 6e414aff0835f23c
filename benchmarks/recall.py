"""What recall costs beside the least that the same work can cost: noticing changes, opening, saving, searching, rebuilding.

python benchmarks/recall.py [--large] [ROUNDS]     --large adds 100,000 files; exits with 1 when a limit is passed

All figures are ratios of CPU time within a round. The floors: `os.scandir` and `stat` of every file; rank-bm25's own `get_scores`;
an FTS5 table of the same terms; reading and tokenising the files, without and with such a table. Nothing is watched here: what a
watcher saves, turn.py says.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AsyncExitStack, closing
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import corpus
from opening import look, open_and_look, opening
from recall_search import long_message, short_queries
from timing import Figure, Used, compare, judge, pairs, used_by

from mdmemory import Config, Memory, Replace, open_memory
from mdmemory.backends.protocol import etag_of
from mdmemory.recall.tokens import tokens

SMALL, MEDIUM, LARGE = 1_000, 10_000, 100_000
Case = Callable[[int], Used]


def main(rounds: int, *, large: bool) -> int:
    """Print one table and say by the exit code whether the limits hold."""
    if not large:
        print(f"!! WITHOUT {LARGE:,} FILES, which take some minutes more: python benchmarks/recall.py --large\n", flush=True)
    with tempfile.TemporaryDirectory() as place:
        config = Config(watch=False, cache=Path(place) / "cache")
        folders = {size: Path(place) / f"{size}-files" for size in (SMALL, MEDIUM, LARGE)[: 3 if large else 2]}
        for size, folder in folders.items():
            corpus.fill(folder, size)
        figures = [
            compare("full rebuild ÷ read and tokenise, 10,000 files", rebuild(folders[MEDIUM], config, tokenised, 3), 1.5),
            compare("full rebuild ÷ the same and an FTS5 table, 10,000 files", rebuild(folders[MEDIUM], config, filled, 3), 3),
            compare("open in a new process ÷ scandir + stat, 10,000 files", reopen(folders[MEDIUM], config, 5), 1.5),
            compare("open in a new process ÷ scandir + stat, 1,000 files", reopen(folders[SMALL], config, 5), 2),
        ]
        with asyncio.Runner() as runner:
            figures += while_open(runner, folders, config, rounds)
    return judge(figures, ("CPU", "CPU ms; ratio of wall time"))


def while_open(runner: asyncio.Runner, folders: dict[int, Path], config: Config, rounds: int) -> Iterator[Figure]:
    """The rows of a process that has its folders open."""
    stack = AsyncExitStack()
    memories = {size: runner.run(entered(stack, folder, config)) for size, folder in folders.items()}
    refresh = call_of(runner, memories[MEDIUM].folder.refresh)
    warm = pairs(refresh, lambda _: used_by(lambda: look(folders[MEDIUM])), rounds)
    yield compare("refresh, nothing changed ÷ scandir + stat, 10,000 files", warm, 1.15)
    found = pairs(*long_message(runner, memories[MEDIUM], MEDIUM), 5)
    yield compare("300 words searched: times faster than rank-bm25, 10,000 files", found, 20, times_faster=True)
    for size in list(folders)[1:]:
        found = pairs(*short_queries(runner, memories[size], size), 5)
        yield compare(f"2 to 10 words searched, p50 ÷ bare FTS5, {size:,} files", found, 2)
    most = max(folders)
    saves = pairs(saving(runner, memories[most]), saving(runner, memories[SMALL]), rounds)
    yield compare(f"save one known file, {most:,} ÷ 1,000 files", saves, 2)
    runner.run(stack.aclose())


async def entered(stack: AsyncExitStack, folder: Path, config: Config) -> Memory:
    """The folder, open and looked at twice: what was too fresh the first time is settled."""
    memory = await stack.enter_async_context(open_memory(folder, config=config))
    for _ in range(2):
        await memory.folder.refresh()
    return memory


def call_of(runner: asyncio.Runner, call: Callable[[], Coroutine[Any, Any, object]]) -> Case:
    """A coroutine function as a case."""
    return lambda _: used_by(lambda: runner.run(call()))


def saving(runner: asyncio.Runner, memory: Memory) -> Case:
    """One more line in a file that is known."""
    path, data = corpus.path_of(7), [corpus.note(7).encode()]

    async def save() -> None:
        before, after = data[-1], data[-1] + b"One more line.\n"
        await memory.folder.apply([Replace(path, after, etag_of(before))], "person", "benchmark")
        data.append(after)

    return call_of(runner, save)


def rebuild(folder: Path, config: Config, bare: Callable[[Path], object], rounds: int) -> Sequence[tuple[Used, Used]]:
    """Opening a folder of which nothing is cached, beside the least that has to be done with its files."""

    def without_cache(_: int) -> Used:
        shutil.rmtree(str(config.cache), ignore_errors=True)
        return used_by(lambda: asyncio.run(open_and_look(folder, config)))

    return pairs(without_cache, lambda _: used_by(lambda: bare(folder)), rounds)


def tokenised(folder: Path) -> list[list[str]]:
    """The terms of each file."""
    return [tokens(path.read_bytes().decode()) for path in folder.rglob("*.md")]


def filled(folder: Path) -> None:
    """The same in a full-text table, written at once."""
    with tempfile.TemporaryDirectory() as place, closing(sqlite3.connect(Path(place) / "terms.sqlite")) as table:
        table.execute("CREATE VIRTUAL TABLE notes USING fts5(terms)")
        table.executemany("INSERT INTO notes VALUES (?)", ((" ".join(terms),) for terms in tokenised(folder)))
        table.commit()


def reopen(folder: Path, config: Config, rounds: int) -> Sequence[tuple[Used, Used]]:
    """What processes that are new each time report; the first one sees to it that there is a cache."""
    found = []
    for number in range(rounds + 1):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            found.append(process.submit(opening, folder, config, floor_first=bool(number % 2)).result())
    return found[1:]


if __name__ == "__main__":
    numbers = [argument for argument in sys.argv[1:] if argument != "--large"]
    sys.exit(main(int(numbers[0]) if numbers else 15, large="--large" in sys.argv))
