"""Run benchmarks; with --out, keep their tables in one Markdown file and their figures in one plot.

python benchmarks/report.py [--large] [--out DIR] [NAME ...]     all of them without a name; exits with 1 when a limit is passed
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from datetime import date
from pathlib import Path
from typing import IO, Any

from timing import FIGURES

import mdmemory

HERE = Path(__file__).parent
HAS_LARGE = ("recall", "peers")


def main() -> int:
    """Print every table, and say by the exit code whether all limits hold."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Run benchmarks; fails when a limit is passed.")
    parser.add_argument("--out", metavar="DIR", type=Path, help="write benchmarks.md and benchmarks.svg there")
    parser.add_argument("--large", action="store_true", help=f"more files where a benchmark can have them: {', '.join(HAS_LARGE)}")
    parser.add_argument("names", metavar="NAME", nargs="*", help=", ".join(benchmarks()))
    asked = parser.parse_args()
    if unknown := set(asked.names) - set(benchmarks()):
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory() as place:
        figures = Path(place) / "figures"
        os.environ[FIGURES] = str(figures)
        if asked.out:
            asked.out.mkdir(parents=True, exist_ok=True)
        with (asked.out / "benchmarks.md").open("w", encoding="utf-8") if asked.out else nullcontext() as page:
            say(f"# Benchmarks\n\n{machine()}", page)
            failed = [name for name in asked.names or benchmarks() if not run(name, asked.large, page)]
            lines = figures.read_text(encoding="utf-8").splitlines() if figures.exists() else []
            if asked.out and lines:
                draw([json.loads(line) for line in lines], asked.out / "benchmarks.svg")
                say("\n![Figures beside their limits](benchmarks.svg)", page)
    if failed:
        print(f"\n!! FAILED, OR OVER THE LIMIT: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def benchmarks() -> list[str]:
    """The modules here that can be run."""
    return sorted(path.stem for path in HERE.glob("*.py") if path != Path(__file__) and "__main__" in path.read_text())


def machine() -> str:
    """What the figures were taken on."""
    cpu = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*: (.*)", cpu.read_text()) if cpu.exists() else None
    model = named[1] if named else platform.processor() or platform.machine()
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{date.today()}, mdmemory {mdmemory.__version__}, {python}, {platform.system()}, {os.cpu_count()} × {model}"


def run(name: str, large: bool, page: IO[str] | None) -> bool:
    """One benchmark, its lines shown as they come; whether it succeeded."""
    say(f"\n## {name}\n", page)
    command = [sys.executable, str(HERE / f"{name}.py"), *(["--large"] if large and name in HAS_LARGE else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            say(line.rstrip("\n"), page)
    return process.returncode == 0


def say(line: str, page: IO[str] | None) -> None:
    """A line on the terminal, and on the page."""
    print(line, flush=True)
    if page is not None:
        print(line, file=page, flush=True)


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """How much of its limit each figure takes, and below it what each peer costs."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    limits = [row for row in rows if row["kind"] == "limits" and row["limit"] and row["value"]]
    peers = [row for row in rows if row["kind"] == "peers"]
    figure = Figure(figsize=(10, 1.5 + 0.3 * len(rows)), layout="constrained")
    places = iter(figure.subplots(bool(limits) + bool(peers), squeeze=False)[:, 0])
    if limits:
        shares = {row["name"]: row["limit"] / row["value"] if row["at_least"] else row["value"] / row["limit"] for row in limits}
        axes = next(places)
        bars(axes, shares, ["tab:red" if share > 1 else "tab:green" for share in shares.values()])
        axes.axvline(1, color="black")
        axes.set_xlabel("share of the limit that is used, log scale; beyond the line is over it")
    if peers:
        costs = {f"{row['name']}, {row['size']:,} files": row["ms"] for row in peers}
        axes = next(places)
        bars(axes, costs, ["tab:blue" if name.startswith("mdmemory") else "tab:gray" for name in costs])
        axes.set_xlabel("CPU ms for a query or reply, log scale")
    with rc_context({"svg.fonttype": "none"}):  # texts stay texts
        figure.savefig(path)


def bars(axes: Any, figures: dict[str, float], colours: Sequence[str]) -> None:
    """Bars from top to bottom, each with its figure."""
    drawn = axes.barh(list(figures), figures.values(), color=colours)
    axes.bar_label(drawn, [f"{figure:.2f}" for figure in figures.values()], padding=3)
    axes.set_xscale("log")
    axes.set_xlim(min(figures.values()) / 4, max(figures.values()) * 4)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter("")
    axes.invert_yaxis()


if __name__ == "__main__":
    sys.exit(main())
