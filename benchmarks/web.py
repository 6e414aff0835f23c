"""What the first page of the web server costs with 1,000 memory files, beside a bare server that sends as many bytes.

python benchmarks/web.py [ROUNDS]

Both are processes of their own, uvicorn over a real socket; the bare one is starlette with one route and a constant. Figures are
CPU time of the server: for the page, for a search as somebody types, and from the start to the first page.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from urllib.parse import quote, urlsplit

import corpus
from timing import Figure, judge

from mdmemory import open_memory
from mdmemory.files.changes import Create
from mdmemory.files.memory_file import new_file

FILES = 1_000
REQUESTS = 100  # of each kind in a round
BARE = """
import socket, sys, uvicorn
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route

page = "x" * int(sys.argv[1])

async def show(request):
    return HTMLResponse(page)

with socket.create_server(("127.0.0.1", 0)) as listener:
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/", file=sys.stderr, flush=True)
    uvicorn.run(Starlette(routes=[Route("/", show)]), fd=listener.fileno(), log_level="critical", access_log=False)
"""


class Served:
    """A server that runs, and what it has used."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self._process = process
        self._connection = HTTPConnection(urlsplit(url).netloc)
        self._cookie = ""
        self.size = len(self.ask(url.partition(urlsplit(url).netloc)[2]))

    def ask(self, path: str) -> bytes:
        """A page."""
        self._connection.request("GET", path, headers={"cookie": self._cookie})
        answer = self._connection.getresponse()
        body = answer.read()
        if cookie := answer.getheader("set-cookie"):
            self._cookie = cookie.partition(";")[0]
            return self.ask(str(answer.getheader("location")))
        assert answer.status == 200, answer.status
        return body

    def cpu_s(self) -> float:
        """The CPU seconds of all its threads, as the kernel counts them in nanoseconds."""
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def cost_of(self, paths: Sequence[str]) -> float:
        """CPU seconds for these pages."""
        self._connection.close()  # which the server may have done meanwhile
        before = self.cpu_s()
        for path in paths:
            self.ask(path)
        return self.cpu_s() - before


@contextmanager
def served(command: Sequence[str]) -> Iterator[Served]:
    """A server, with its first page sent."""
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            found = re.search(r"http://\S+", process.stderr.readline())
            assert found
            yield Served(process, found[0])
        finally:
            process.terminate()


def main(rounds: int) -> int:
    """Print one table; the exit code says whether a limit is passed."""
    pages, searches, starts = [], [], []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "notes"
        corpus.fill(folder, FILES)
        asyncio.run(write_once(folder))
        words = [word for query in corpus.queries(FILES, 20) for word in query.split()]
        typed = [f"/?q={quote(word[:length])}" for word in words for length in range(2, len(word) + 1)][:REQUESTS]
        ours = [sys.executable, "-m", "mdmemory", "serve", "-f", str(folder), "--port", "0"]
        with served(ours) as first:  # the one that fills the cache
            size = first.size
        for _ in range(rounds):
            with served([sys.executable, "-c", BARE, str(size)]) as bare, served(ours) as web:
                starts.append((web.cpu_s(), bare.cpu_s()))
                for server in (web, bare):
                    server.cost_of(["/"] * 10)  # the watcher begins, and all is imported
                floor = bare.cost_of(["/"] * REQUESTS)
                pages.append((web.cost_of(["/"] * REQUESTS), floor))
                searches.append((web.cost_of(typed), floor))
    print(f"A page of {size:,} bytes.\n")
    return judge(
        [
            figure(f"first page, {FILES:,} files", pages, REQUESTS, 3),
            figure("search while typing", searches, REQUESTS, 20),
            figure("start to first page", starts, 1, 4),
        ]
    )


async def write_once(folder: Path) -> None:
    """Have the folder be one that was written to before, as then it can be watched."""
    async with open_memory(folder) as memory:
        await memory.folder.apply([Create("first.md", new_file("First", "the first", "user", "Text."))], "person", "begin")


def figure(name: str, measured: Sequence[tuple[float, float]], count: int, limit: float) -> Figure:
    """The median of the ratios within a round, and what it took by itself."""
    ratio = median(ours / floor for ours, floor in measured)
    ours, floor = (1000 * median(pair[side] for pair in measured) / count for side in (0, 1))
    return Figure(f"{name} ÷ bare server", ratio, limit, detail=f"{ours:.2f} ÷ {floor:.2f} ms")


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 5))
