"""What turns of many users at once cost on a PostgreSQL server, beside bare statements on the same connections.

python benchmarks/service.py [--large] [ROUNDS]

A worker process has 64 sessions at once, each a few turns of a user, each turn with one save, over 10, 100 and 1,000 users; a
server of its own answers on the loopback, and writes to the disk as servers do. Figures are ratios within a round to `SELECT 1` and
to a transaction that updates one row, 64 at once over as many connections. At the end every save is looked for: none may be lost,
and none may be in another user's folder.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from service_users import FILES, fill
from timing import Figure, judge, table

SCRIPT = Path(__file__).parents[1] / "scripts" / "postgres"
USERS = (10, 100, 1_000)
GROWTH = 2.0
"""What a turn may cost with the most users, whose memories are opened for it, as a multiple of what it costs with the fewest."""
_WORKER = "import service_worker; service_worker.main()"


class Server:
    """A server for one number of users."""

    def __init__(self, above: Path) -> None:
        self._folder = above / "server"
        done = subprocess.run([SCRIPT, "start", self._folder], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode == 3:
            print("NOT MEASURED: no PostgreSQL server can run here.")
            sys.exit(1)
        done.check_returncode()
        self.url = done.stdout.strip()

    def stop(self) -> None:
        """End it, and delete what it held."""
        subprocess.run([SCRIPT, "stop", self._folder], stderr=subprocess.DEVNULL, check=True)


def measured(users: int, rounds: int) -> dict[str, Any]:
    """What a worker found with so many users."""
    with tempfile.TemporaryDirectory(prefix="mdmemory-bench-") as place:
        above = Path(place)
        above.chmod(0o711)  # the server runs as another user
        server = Server(above)
        try:
            asyncio.run(fill(server.url, users))
            file = above / "figures"
            command = [sys.executable, "-c", _WORKER, server.url, str(users), str(rounds), str(file)]
            subprocess.run(command, check=True, timeout=1_200, env={**os.environ, "PYTHONPATH": _path()})
            found: dict[str, Any] = json.loads(file.read_text())
            return found
        finally:
            server.stop()


def _path() -> str:
    return os.pathsep.join([str(Path(__file__).parent), *(part for part in sys.path if part)])


def p99(values: list[float]) -> float:
    """The 99th percentile."""
    return quantiles(values, n=100)[98]


def ratio(found: dict[str, Any], floor: str, of: Any) -> float:
    """A turn's figure as a multiple of a bare statement's: the median of the rounds."""
    return median(of(turn["each"]) / of(bare["each"]) for turn, bare in zip(found["turn"], found[floor], strict=True))


def row(users: int, found: dict[str, Any]) -> tuple[object, ...]:
    """One line of the table."""
    rounds = found["turn"]
    each = len(rounds[0]["each"])
    times = [ratio(found, floor, of) for floor in ("SELECT 1", "UPDATE") for of in (median, p99)]
    return (
        f"{users:,}",
        f"{median(each / one['all'] for one in rounds):.0f}",
        f"{1000 * median(median(one['each']) for one in rounds):.0f} / {1000 * median(p99(one['each']) for one in rounds):.0f}",
        *(f"{times[place]:.1f} / {times[place + 1]:.1f}" for place in (0, 2)),
        f"{1000 * median(one['cpu'] / each for one in rounds):.1f}",
        f"{found['mib']:.0f} ({found['open']:,})",
    )


def main(rounds: int) -> int:
    """Print the table and say by the exit code whether the limits hold."""
    found = {users: measured(users, rounds) for users in USERS}
    heads = [
        "users",
        "turns/s",
        "ms, p50 / p99",
        "÷ SELECT 1",
        "÷ UPDATE",
        "CPU ms a turn in the worker",
        "its MiB (memories open)",
    ]
    print(f"{FILES} files a user; 64 sessions at once in one process.\n")
    print(table(heads, [row(users, each) for users, each in found.items()]))
    print()
    first, last = (ratio(found[users], "UPDATE", median) for users in (USERS[0], USERS[-1]))
    figures = [
        Figure(
            "saves lost",
            sum(each["missing"] for each in found.values()),
            0,
            detail=f"of {sum(each['saved'] for each in found.values()):,}",
        ),
        Figure("turns without their save", sum(each["turns"] - each["saved"] for each in found.values()), 0),
        Figure("texts in another user's folder", sum(each["crossed"] for each in found.values()), 0),
        Figure(f"a turn ÷ UPDATE with {USERS[-1]:,} users ÷ with {USERS[0]}", last / first, GROWTH),
    ]
    return judge(figures)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else 3))
