"""What an evaluation measured, as a page, as JSON and as a plot. Floor 6."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mdmemory.evals.measures import DEPTHS

PAGE, DATA, PLOT = "report.md", "report.json", "recall.svg"


def write_report(folder: Path, title: str, measured: Mapping[str, Any]) -> None:
    """Write the page, the figures and, where matplotlib is installed, the plot."""
    last = f"![Recall by category]({PLOT})"
    try:
        draw(measured, folder / PLOT)
    except ImportError:
        last = "There is no plot: it needs matplotlib, which `pip install 'mdmemory[plot]'` brings."
    (folder / PAGE).write_text(f"{markdown(title, measured)}\n{last}\n", encoding="utf-8")
    (folder / DATA).write_text(json.dumps(measured, indent=2) + "\n", encoding="utf-8")


def markdown(title: str, measured: Mapping[str, Any]) -> str:
    """The measures as a page, in percent."""
    first = ", ".join(map(str, DEPTHS))
    lines = [
        f"# {title}",
        "",
        f"{measured['questions']:,} questions. Evidence recall in percent, among the first {first} found:",
        "R, the mean share of the evidence; questions with any of it; with all of it. MRR: mean reciprocal rank of the first.",
    ]
    heads = ["", "questions", *(f"{name}@{depth}" for name in ("R", "any", "all") for depth in DEPTHS), "MRR"]
    for level in ("session", "turn"):
        lines += ["", f"## By {level}", "", f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
        for name, group in _groups(measured[level]).items():
            figures = [f"{100 * group[kind][str(depth)]:.1f}" for kind in ("frac", "any", "all") for depth in DEPTHS]
            cells = [name, str(group["questions"]), *figures, f"{group['mrr']:.3f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def draw(measured: Mapping[str, Any], path: Path) -> None:
    """R by category as SVG, sessions above turns.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    for level, axes in zip(("session", "turn"), figure.subplots(2), strict=True):
        groups = _groups(measured[level])
        for place, depth in enumerate(DEPTHS):
            middles = [number + (place - 1) / 4 for number in range(len(groups))]
            shares = [100 * group["frac"][str(depth)] for group in groups.values()]
            axes.bar_label(axes.bar(middles, shares, 0.25, label=f"R@{depth}"), fmt="%.1f", fontsize="small")
        axes.set_xticks(range(len(groups)), [f"{name} ({group['questions']})" for name, group in groups.items()])
        axes.set_ylim(0, 110)
        axes.set_ylabel(f"evidence found, %, by {level}")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=len(DEPTHS))
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": PLOT}):  # texts stay texts, and the same figures the same bytes
        figure.savefig(path, metadata={"Date": None})


def _groups(found: Mapping[str, Any]) -> dict[str, Any]:
    """All questions, then each category."""
    asked = sum(group["questions"] for group in found["categories"].values())
    return {"all": {"questions": asked, **found}, **found["categories"]}
