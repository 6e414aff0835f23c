"""What many writers cost: 16 processes that update one MEMORY.md, beside one process that makes as many updates alone.

python benchmarks/commits.py [ROUNDS]     exits with 1 when an update is lost or a limit is passed
"""

from __future__ import annotations

import asyncio
import multiprocessing
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from timing import Figure, interleave, judge, ratios, table

from mdmemory.backends.local import LocalBackend
from mdmemory.backends.protocol import ABSENT, File, Put, etag_of
from mdmemory.errors import Conflict

WRITERS, UPDATES = 16, 100
LEAST_SHARE = 0.3
_fork = multiprocessing.get_context("fork")


async def update(backend: LocalBackend, line: str) -> int:
    """Add a line by read, modify and replace, again after each conflict; return how many tries it took."""
    tries = 0
    while True:
        tries += 1
        found = (await backend.read({"MEMORY.md": None}))["MEMORY.md"]
        data, etag = (found.data, found.etag or "") if isinstance(found, File) else (b"", ABSENT)
        new = data + line.encode()
        try:
            await backend.commit(f"{line} {etag_of(new)}", [Put("MEMORY.md", new, etag)])
            return tries
        except Conflict:
            continue


def write(root: Path, writer: int, updates: int) -> None:
    """Be one writer."""

    async def work() -> None:
        backend = LocalBackend(root)
        for n in range(updates):
            await update(backend, f"- {writer} {n}\n")

    asyncio.run(work())


def run(writers: int, updates: int) -> tuple[float, int]:
    """Let several processes write to a new folder at once; return the seconds it took and how many updates are lost."""
    with tempfile.TemporaryDirectory() as folder:
        processes = [_fork.Process(target=write, args=(Path(folder), writer, updates)) for writer in range(writers)]
        began = time.perf_counter()
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        seconds = time.perf_counter() - began
        lines = (Path(folder) / "MEMORY.md").read_text().splitlines()
    return seconds, writers * updates - len(set(lines))


def main(rounds: int) -> int:
    """Print the table and say by the exit code whether the limits hold."""
    lost = {1: 0, WRITERS: 0}

    def case(writers: int) -> float:
        seconds, missing = run(writers, WRITERS * UPDATES // writers)
        lost[writers] += missing
        return WRITERS * UPDATES / seconds

    samples = interleave({"1 writer": lambda: case(1), f"{WRITERS} writers": lambda: case(WRITERS)}, rounds)
    share = ratios(samples, "1 writer")
    rows = [
        (name, WRITERS * UPDATES, missing, f"{median(samples[name]):.0f}", f"{share[name]:.2f}")
        for name, missing in zip(samples, lost.values(), strict=True)
    ]
    print(table(["one MEMORY.md", "updates a round", "lost in all rounds", "updates/s", "times one writer's"], rows))
    print()
    figures = [
        Figure("updates lost", sum(lost.values()), 0),
        Figure(f"updates/s, {WRITERS} writers ÷ 1 writer", share[f"{WRITERS} writers"], LEAST_SHARE, at_least=True),
    ]
    return judge(figures)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 5))
