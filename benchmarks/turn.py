"""What a turn costs in a folder where nothing, or one file, changed, beside listing the folder and looking at each file once.

python benchmarks/turn.py [ROUNDS]

The floor is `os.scandir` plus `stat` over the same files: no program can notice a change for less without being told of it.
A turn is the scan, the search over every file, the frozen prompt, the look for a hint and the end. All figures are CPU time.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median

import corpus
from opening import look
from timing import Figure, cpu_of_call, interleave, judge, ratios, table

from mdmemory import Config, Memory, open_memory
from mdmemory.backends.local import LocalBackend
from mdmemory.backends.protocol import HEAD_BYTES, Scan

SIZES = (10, 100, 1_000, 10_000)
MESSAGE = f"What do we know about {corpus.queries(10, 1)[0]}, and who asked for it?"
FLOOR, QUIET, ONE_CHANGE, FIRST = "scandir + stat", "turn, nothing changed", "turn, one file changed", "first turn of a process"
WATCHED, WATCHED_CHANGE = "turn with watcher, nothing changed", "turn with watcher, one file changed"
LIMIT = 0.5  # a watcher must save half of the look
CASES = (QUIET, ONE_CHANGE, WATCHED, WATCHED_CHANGE, FIRST)


class HeadCount(LocalBackend):
    """Counts the files that scans read."""

    heads = 0

    def _scan(self, known: object, head_bytes: int = HEAD_BYTES) -> Scan:
        found = super()._scan(known, head_bytes)  # type: ignore[arg-type]  # passed on as it came
        self.heads += len(found.heads)
        return found


def main(rounds: int) -> int:
    """Print one table; the exit code says whether an unchanged file was read, or the limit passed."""
    rows, read_again = [], 0
    for size in SIZES:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "notes"
            corpus.fill(folder, size)
            # without a journal: what it costs to write is no question of how large the folder is
            times, floor_s, read = measure(folder, Config(journal=False, cache=Path(place) / "cache"), rounds)
        read_again += read
        rows.append((f"{size:,}", f"{1000 * floor_s:.2f}", *(f"{times[name]:.2f}" for name in CASES), read))
    heads = ["files", f"{FLOOR}, CPU ms", *(f"{name} ÷ floor" for name in CASES), "unchanged files read"]
    print(table(heads, rows), end="\n\n")
    limited = Figure(f"{WATCHED_CHANGE} ÷ {FLOOR}, {size:,} files", times[WATCHED_CHANGE], LIMIT)
    return judge([limited]) | int(read_again > 0)


def measure(folder: Path, config: Config, rounds: int) -> tuple[dict[str, float], float, int]:
    """Each case as a multiple of the floor, the floor in CPU seconds, and how many unchanged files the quiet turns read."""
    (folder / ".mdmemory").mkdir()  # a save makes it; without it nothing is watched
    with asyncio.Runner() as runner:
        backend = HeadCount(folder)
        opened, opened_watched = open_memory(backend, config=replace(config, watch=False)), open_memory(folder, config=config)
        memory, watched = runner.run(opened.__aenter__()), runner.run(opened_watched.__aenter__())
        runner.run(asyncio.sleep(0.1))

        def quiet(memory: Memory = memory) -> float:
            return cpu_of_call(lambda: runner.run(turn(memory)))

        def changed(memory: Memory = memory) -> float:
            path = folder / corpus.path_of(1)
            path.write_text(path.read_text() + "One more line.\n")
            used = quiet(memory)
            runner.run(asyncio.sleep(0.05))
            quiet(memory)  # reads the file once more: it was too fresh to be sure of
            return used

        def base() -> float:
            return cpu_of_call(lambda: look(folder))

        def fresh() -> float:
            return cpu_of_call(lambda: runner.run(first(folder, config)))

        for known in (memory, watched, watched):
            quiet(known)
        backend.heads = 0
        often = interleave({FLOOR: base, QUIET: quiet, WATCHED: lambda: quiet(watched)}, rounds)
        heads = backend.heads
        changes = {ONE_CHANGE: changed, WATCHED_CHANGE: lambda: changed(watched)}
        seldom = interleave({FLOOR: base, **changes, FIRST: fresh}, rounds // 5 + 2)
        for each in (opened, opened_watched):
            runner.run(each.__aexit__(None, None, None))
    return {**ratios(often, FLOOR), **ratios(seldom, FLOOR)}, median(often[FLOOR]), heads


async def first(folder: Path, config: Config) -> None:
    """Open a folder that is in the cache, and have a turn."""
    async with open_memory(folder, config=config) as memory:
        await turn(memory)


async def turn(memory: Memory) -> None:
    """A turn of the session, without a model."""
    async with memory.session("benchmark").turn(MESSAGE) as turn:
        await turn.system_prompt()
        await turn.take_hint()
        await turn.finish("…")


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 15))
