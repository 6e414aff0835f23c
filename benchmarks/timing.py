"""Fair timing on a busy machine: CPU time instead of wall time, cases that take turns, and medians of ratios within a round."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Callable, Mapping, Sequence
from statistics import median


def cpu_of_command(command: Sequence[str], env: Mapping[str, str] | None = None) -> float:
    """The CPU seconds, user and system, of a command that must succeed; its output is dropped."""
    before = _cpu(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True)
    return _cpu(resource.RUSAGE_CHILDREN) - before


def cpu_of_call(call: Callable[[], object]) -> float:
    """The CPU seconds, user and system, that this process with all its threads spends on a call."""
    before = _cpu(resource.RUSAGE_SELF)
    call()
    return _cpu(resource.RUSAGE_SELF) - before


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
