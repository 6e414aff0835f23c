"""What a turn costs in a folder where nothing, or one file, changed, beside listing the folder and looking at each file once.

python benchmarks/turn.py [ROUNDS]

The floor is `os.scandir` plus `stat` over the same files: no program can notice a change for less without being told of it.
A turn is the scan, the search over every file, the frozen prompt, the look for a hint and the end. All figures are CPU time.
"""

from __future__ import annotations

import asyncio
import os
import random
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median

from timing import cpu_of_call, interleave, ratios, table

from mdmemory import Config, Memory, open_memory
from mdmemory.backends.local import LocalBackend
from mdmemory.backends.protocol import HEAD_BYTES, Scan

SIZES = (10, 100, 1_000, 10_000)
WORDS = [f"{a}{b}{c}" for a in ("ba", "ke", "lo", "mi", "nu") for b in ("r", "st", "nd", "ll") for c in ("an", "ic", "ol", "um")]
MESSAGE = "Where do we keep the bastan of the kelum, and who asked for it?"
FLOOR, QUIET, ONE_CHANGE, FIRST = "scandir + stat", "turn, nothing changed", "turn, one file changed", "first turn of a process"
WATCHED, WATCHED_CHANGE = "turn with watcher, nothing changed", "turn with watcher, one file changed"
SILENT = Config(journal=False)  # what it costs to write is no question of how large the folder is
CASES = (QUIET, ONE_CHANGE, WATCHED, WATCHED_CHANGE, FIRST)


class HeadCount(LocalBackend):
    """Counts the files that scans read."""

    heads = 0

    def _scan(self, known: object, head_bytes: int = HEAD_BYTES) -> Scan:
        found = super()._scan(known, head_bytes)  # type: ignore[arg-type]  # passed on as it came
        self.heads += len(found.heads)
        return found


def main(rounds: int) -> int:
    """Print one table; the exit code says whether an unchanged file was read."""
    rows, read_again = [], 0
    for size in SIZES:
        with tempfile.TemporaryDirectory() as folder:
            fill(Path(folder), size)
            times, floor_s, read = measure(Path(folder), rounds)
        read_again += read
        rows.append((f"{size:,}", f"{1000 * floor_s:.2f}", *(f"{times[name]:.2f}" for name in CASES), read))
    heads = ["files", f"{FLOOR}, CPU ms", *(f"{name} ÷ floor" for name in CASES), "unchanged files read"]
    print(table(heads, rows))
    return int(read_again > 0)


def fill(folder: Path, size: int) -> None:
    """Memory files as agents write them, 50 to a subfolder, an hour old."""
    chance = random.Random(size)
    for number in range(size):
        path = folder / f"topic-{number // 50}" / f"note-{number}.md"
        path.parent.mkdir(exist_ok=True)
        words = " ".join(chance.choices(WORDS, k=120))
        path.write_text(f"---\nname: Note {number}\ndescription: {words[:60]}\ntype: project\n---\n\n{words}\n")
        then = path.stat().st_mtime - 3_600
        os.utime(path, (then, then))


def measure(folder: Path, rounds: int) -> tuple[dict[str, float], float, int]:
    """Each case as a multiple of the floor, the floor in CPU seconds, and how many unchanged files the quiet turns read."""
    (folder / ".mdmemory").mkdir()  # a save makes it; without it nothing is watched
    with asyncio.Runner() as runner:
        backend = HeadCount(folder)
        opened, opened_watched = open_memory(backend, config=replace(SILENT, watch=False)), open_memory(folder, config=SILENT)
        memory, watched = runner.run(opened.__aenter__()), runner.run(opened_watched.__aenter__())
        runner.run(asyncio.sleep(0.1))

        def quiet(memory: Memory = memory) -> float:
            return cpu_of_call(lambda: runner.run(turn(memory)))

        def changed(memory: Memory = memory) -> float:
            path = folder / "topic-0" / "note-1.md"
            path.write_text(path.read_text() + "One more line.\n")
            used = quiet(memory)
            runner.run(asyncio.sleep(0.05))
            quiet(memory)  # reads the file once more: it was too fresh to be sure of
            return used

        def base() -> float:
            return cpu_of_call(lambda: floor(str(folder)))

        def fresh() -> float:
            return cpu_of_call(lambda: runner.run(first(folder)))

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


def floor(folder: str) -> None:
    """List every folder and look at every file."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                floor(entry.path)
            else:
                entry.stat(follow_symlinks=False)


async def first(folder: Path) -> None:
    """Open the folder, and have a turn: every file is read."""
    async with open_memory(folder, config=SILENT) as memory:
        await turn(memory)


async def turn(memory: Memory) -> None:
    """A turn of the session, without a model."""
    async with memory.session("benchmark").turn(MESSAGE) as turn:
        await turn.system_prompt()
        await turn.take_hint()
        await turn.finish("…")


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 15))
