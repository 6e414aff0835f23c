"""What a memory in an E2B sandbox costs with 80 ms a request, beside a backend that asks for one file at a time.

A part of sandbox.py. The SDK is the real one; the sandbox is a folder behind the server that the tests use, which adds 80 ms to
each request. Figures are seconds of wall time and, after the slash, requests. The limit is on the requests, which no machine
changes.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from sandbox_note import NOTE
from timing import table

from mdmemory import Create, MemoryFolder
from mdmemory.backends.e2b import E2BBackend
from mdmemory.backends.protocol import Put

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from e2b_server import E2BServer

LATENCY_S = 0.08
LIMITS = {"all headers": 1, "nothing changed": 1, "all contents": 1, "one save": 1}


def main(sizes: Sequence[int]) -> int:
    """Print one table; the exit code says whether a limit was passed."""
    rows, over = [], False
    for size in sizes:
        with tempfile.TemporaryDirectory() as place, E2BServer(Path(place), latency_s=LATENCY_S) as server:
            os.environ.update(server.environment)
            ours, naive = asyncio.run(measure(server, size))
        for name, limit in LIMITS.items():
            rows.append(
                (f"{size:,} files, {name}", *(f"{seconds:.2f} / {requests}" for seconds, requests in (ours[name], naive[name])))
            )
            over = over or ours[name][1] > limit
    print(table(["80 ms a request", "mdmemory, s / requests", "one file at a time, s / requests"], rows))
    return int(over)


async def measure(server: E2BServer, size: int) -> tuple[dict[str, tuple[float, int]], dict[str, tuple[float, int]]]:
    """Seconds and requests of each case, ours and one file at a time."""
    backend = E2BBackend(memory="benchmark")
    await backend.commit("fill", [Put(f"topic-{n // 50}/note-{n}.md", NOTE.format(n=n).encode()) for n in range(size)])
    sandbox = await backend.sandbox.connected()
    folder = MemoryFolder(backend)
    await asyncio.sleep(0.1)

    async def clock(work: Callable[[], Awaitable[object]]) -> tuple[float, int]:
        server.requests.clear()
        start = time.perf_counter()
        await work()
        return time.perf_counter() - start, len(server.requests)

    async def read_naively() -> None:
        found = await sandbox.commands.run("cd ~/memory && find . -name '.?*' -prune -o -name '*.md' -print")
        for path in found.stdout.split():
            await sandbox.files.read(f"memory/{path}")

    async def save_naively() -> None:
        for path in ("new.md", "MEMORY.md", ".mdmemory/log.jsonl"):
            await sandbox.files.write(f"memory/{path}", b"some text\n")

    paths = [f"topic-{n // 50}/note-{n}.md" for n in range(size)]
    ours = {
        "all headers": await clock(folder.refresh),
        "nothing changed": await clock(folder.refresh),
        "all contents": await clock(lambda: backend.read(dict.fromkeys(paths))),
        "one save": await clock(lambda: folder.apply([Create("new.md", NOTE.format(n=0).encode())], "person", "benchmark")),
    }
    every = await clock(read_naively)
    stat = await clock(lambda: sandbox.commands.run("find ~/memory -name '*.md' -exec stat -c %y {} +"))
    return ours, {"all headers": every, "nothing changed": stat, "all contents": every, "one save": await clock(save_naively)}
