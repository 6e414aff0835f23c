"""What a memory in a Docker container costs, beside a backend that does one `docker exec` a file.

A part of sandbox.py. It needs an engine: eval "$(scripts/start-docker)"

Figures are seconds of wall time and, after the slash, calls of `docker exec`. The limit is on the calls, which no machine changes.
One call a file is made for 100 files at most; the figure for more (~) is in proportion.
"""

from __future__ import annotations

import asyncio
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import docker
from sandbox_note import NOTE
from timing import table

from mdmemory import Create, MemoryFolder
from mdmemory.backends.docker import DockerBackend
from mdmemory.backends.protocol import Put
from mdmemory.backends.shell import Completed

IMAGE = "mdmemory-test:busybox"
MOST = 100
LIMITS = {"all headers": 1, "nothing changed": 1, "all contents": 1, "one save": 1}
Figure = tuple[float, int]


class Meter:
    """Passes commands on to a shell, and counts them."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.calls = inner, 0

    async def run(self, argv: Sequence[str], stdin: bytes = b"", **limits: Any) -> Completed:
        """Run a command."""
        self.calls += 1
        done: Completed = await self.inner.run(argv, stdin, **{"timeout_s": 120, "max_output_bytes": 1 << 28, **limits})
        return done

    async def close(self) -> None:
        """Close the shell."""
        await self.inner.close()

    async def clock(self, work: Callable[[], Awaitable[object]]) -> Figure:
        """Seconds and calls of some work."""
        self.calls, began = 0, time.perf_counter()
        await work()
        return time.perf_counter() - began, self.calls


async def measure(size: int) -> tuple[dict[str, Figure], dict[str, Figure]]:
    """Each case, ours and one file at a time."""
    volume = f"benchmark-{uuid.uuid4().hex[:8]}"
    backend = DockerBackend(IMAGE, volume=volume, on_close="remove")
    meter = Meter(backend.shell)
    backend.shell = meter
    paths = [f"topic-{n // 50}/note-{n}.md" for n in range(size)]
    try:
        await backend.commit("fill", [Put(path, NOTE.format(n=n).encode()) for n, path in enumerate(paths)])
        await asyncio.sleep(0.1)
        folder = MemoryFolder(backend)

        async def every(command: str) -> Figure:
            began, some = time.perf_counter(), paths[:MOST]
            for path in some:
                await meter.run(["sh", "-c", command, "sh", f"/memory/{path}"])
            return (time.perf_counter() - began) * size / len(some), size

        async def save() -> None:
            for path in ("new.md", "MEMORY.md", ".mdmemory/log.jsonl"):
                await meter.run(["sh", "-c", 'head -c "$1" >"$2"', "sh", "100", f"/memory/{path}"], b"x" * 100)

        ours = {
            "all headers": await meter.clock(folder.refresh),
            "nothing changed": await meter.clock(folder.refresh),
            "all contents": await meter.clock(lambda: backend.read(dict.fromkeys(paths))),
            "one save": await meter.clock(
                lambda: folder.apply([Create("new.md", NOTE.format(n=0).encode())], "person", "benchmark")
            ),
        }
        naive = {
            "all headers": await every('head -c 16384 "$1"'),
            "nothing changed": await every('stat -c %z "$1"'),
            "all contents": await every('cat "$1"'),
            "one save": await meter.clock(save),
        }
    finally:
        await backend.close()
        docker.from_env().volumes.get(volume).remove()
    return ours, naive


def answers() -> bool:
    """Whether there is an engine, with the image."""
    try:
        docker.from_env().images.get(IMAGE)
    except docker.errors.DockerException:
        return False
    return True


def main(sizes: Sequence[int]) -> int:
    """Print one table; the exit code says whether a limit was passed."""
    rows, over = [], False
    if not answers():
        print('!! NOT MEASURED: no Docker engine with the image answers. Run: eval "$(scripts/start-docker)"', file=sys.stderr)
        return 0
    for size in sizes:
        ours, naive = asyncio.run(measure(size))
        for name, limit in LIMITS.items():
            figures = [f"{seconds:.2f} / {calls:,}" for seconds, calls in (ours[name], naive[name])]
            rows.append(
                (f"{size:,} files, {name}", figures[0], ("~" if size > MOST and naive[name][1] > MOST else "") + figures[1])
            )
            over = over or ours[name][1] > limit
    print(table(["docker exec", "mdmemory, s / calls", "one file at a time, s / calls"], rows))
    print(f"\nLimits on the calls: {', '.join(f'{name} {limit}' for name, limit in LIMITS.items())}.")
    return int(over)
