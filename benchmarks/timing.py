"""Fair timing on a busy machine: CPU time instead of wall time, cases that take turns, and medians of ratios within a round."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

FIGURES = "BENCHMARK_FIGURES"
"""Names a file that takes every figure with a limit, for the plot of scripts/bench --out."""


@dataclass(frozen=True, slots=True)
class Figure:
    """Something measured, and what it may be.

    Args:
        at_least: the limit is the least that it may be, not the most.
        detail: other figures beside it, for people.
    """

    name: str
    value: float
    limit: float
    at_least: bool = False
    detail: str = ""

    @property
    def is_over(self) -> bool:
        """Whether it is on the wrong side of its limit."""
        return self.value < self.limit if self.at_least else self.value > self.limit


def judge(figures: Sequence[Figure], heads: tuple[str, str] = ("", "")) -> int:
    """Print figures with their limits, keep them for the plot, and return the exit code: 1 when one is over."""
    rows = [
        (
            figure.name,
            f"{figure.value:.2f}",
            f"{'≥' if figure.at_least else '≤'} {figure.limit:g}",
            "**OVER**" if figure.is_over else "OK",
            figure.detail,
        )
        for figure in figures
    ]
    print(table([heads[0], "measured", "limit", "", heads[1]], rows), flush=True)
    keep("limits", [asdict(figure) for figure in figures])
    return int(any(figure.is_over for figure in figures))


def keep(kind: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Keep rows for the plot, when one is to be drawn."""
    if place := os.environ.get(FIGURES):
        with Path(place).open("a", encoding="utf-8") as file:
            file.writelines(json.dumps({"kind": kind, **row}) + "\n" for row in rows)


def cpu_of_command(command: Sequence[str], env: Mapping[str, str] | None = None, stdin: bytes = b"") -> float:
    """The CPU seconds, user and system, of a command that must succeed; its output is dropped."""
    before = _cpu(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=env, input=stdin, stdout=subprocess.DEVNULL, check=True)
    return _cpu(resource.RUSAGE_CHILDREN) - before


def cpu_of_call(call: Callable[[], object]) -> float:
    """The CPU seconds, user and system, that this process with all its threads spends on a call."""
    before = _cpu(resource.RUSAGE_SELF)
    call()
    return _cpu(resource.RUSAGE_SELF) - before


@dataclass(frozen=True, slots=True)
class Used:
    """CPU and wall seconds of some work."""

    cpu_s: float
    wall_s: float


def used_by(call: Callable[[], object]) -> Used:
    """What this process with all its threads spends on a call."""
    cpu, wall = _cpu(resource.RUSAGE_SELF), time.perf_counter()
    call()
    return Used(_cpu(resource.RUSAGE_SELF) - cpu, time.perf_counter() - wall)


def pairs(ours: Callable[[int], Used], floor: Callable[[int], Used], rounds: int) -> list[tuple[Used, Used]]:
    """Measure two cases in turning order, after one round that only warms up; each is told the number of the round."""
    ours(0), floor(0)
    found = []
    for number in range(1, rounds + 1):
        if number % 2:
            first = ours(number)
            found.append((first, floor(number)))
        else:
            base = floor(number)
            found.append((ours(number), base))
    return found


def compare(name: str, measured: Sequence[tuple[Used, Used]], limit: float, *, times_faster: bool = False) -> Figure:
    """The median of the ratios of CPU time, beside that of wall time: ours ÷ the floor, or how many times faster ours is."""
    turned = [(floor, ours) if times_faster else (ours, floor) for ours, floor in measured]
    cpu = median(above.cpu_s / below.cpu_s for above, below in turned)
    wall = median(above.wall_s / below.wall_s for above, below in turned)
    above_ms, below_ms = (1000 * median(pair[side].cpu_s for pair in turned) for side in (0, 1))
    return Figure(name, cpu, limit, times_faster, f"{above_ms:.2f} ÷ {below_ms:.2f}; {wall:.2f}")


def interleave(cases: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Measure every case once a round, in turning order, after one round that only warms up.

    Returns:
        What each case measured, one figure a round.
    """
    samples: dict[str, list[float]] = {name: [] for name in cases}
    order = list(cases)
    for name in order:
        cases[name]()
    for _ in range(rounds):
        for name in order:
            samples[name].append(cases[name]())
        order.reverse()
    return samples


def ratios(samples: Mapping[str, Sequence[float]], floor: str) -> dict[str, float]:
    """Each case as a multiple of the floor: the median of the ratios within a round, so that a slow minute hits both sides."""
    return {
        name: median(figure / base for figure, base in zip(figures, samples[floor], strict=True))
        for name, figures in samples.items()
    }


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table; every column but the first is a figure."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def _cpu(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime
