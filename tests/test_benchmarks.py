"""The benchmarks' own parts: limits are judged, peers answer as they say, tables and plots are written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from command import REPOSITORY, environment

BENCHMARKS = REPOSITORY / "benchmarks"
JUDGE = """
import sys
from timing import Figure, judge
print(judge([Figure("slow", 3, 2), Figure("fast", 3, 2, at_least=True), Figure("just so", 2, 2)]))
"""


def python(*arguments: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run Python where the benchmarks find each other."""
    path = os.pathsep.join([str(REPOSITORY), str(BENCHMARKS)])
    settings = environment(**env) | {"PYTHONPATH": path}
    return subprocess.run([sys.executable, *arguments], env=settings, capture_output=True, text=True, timeout=100, check=False)


def test_a_figure_on_the_wrong_side_of_its_limit_fails(tmp_path: Path) -> None:
    """The table says which one, the code is 1, and all figures are kept for the plot."""
    done = python("-c", JUDGE, BENCHMARK_FIGURES=str(tmp_path / "figures"))
    rows = [[cell.strip() for cell in line.split("|")[1:5]] for line in done.stdout.splitlines()[2:-1]]
    assert rows == [["slow", "3.00", "≤ 2", "**OVER**"], ["fast", "3.00", "≥ 2", "OK"], ["just so", "2.00", "≤ 2", "OK"]]
    assert done.stdout.splitlines()[-1] == "1"
    assert [json.loads(line)["name"] for line in (tmp_path / "figures").read_text().splitlines()] == ["slow", "fast", "just so"]


def test_a_report_has_the_tables_and_the_plot(tmp_path: Path) -> None:
    """`--out` writes what was printed, headed by the machine, and the figures as SVG; a wrong name is refused."""
    done = python(BENCHMARKS / "report.py", "--out", tmp_path / "out", "imports")
    page = (tmp_path / "out" / "benchmarks.md").read_text()
    assert done.stdout == page and "CPython" in page.split("\n")[2]
    assert "| `import mdmemory` ÷ `python -c pass` |" in page and page.endswith("(benchmarks.svg)\n")
    assert "import mdmemory" in (tmp_path / "out" / "benchmarks.svg").read_text()
    wrong = python(BENCHMARKS / "report.py", "nothing")
    assert wrong.returncode == 2 and "there is no benchmark nothing" in wrong.stderr


def test_the_corpus_is_the_same_everywhere_and_its_queries_have_answers() -> None:
    """Two processes write the same notes, and each query's words stand together in one of them."""
    show = "import corpus; print([corpus.note(3), corpus.queries(20, 5)])"
    assert python("-c", show, PYTHONHASHSEED="1").stdout == python("-c", show, PYTHONHASHSEED="2").stdout
    check = "import corpus; notes = [set(corpus.note(n).replace('.', '').split()) for n in range(20)]"
    found = python("-c", f"{check}; print(all(any(set(q.split()) <= n for n in notes) for q in corpus.queries(20, 50)))")
    assert found.stdout == "True\n"


@pytest.mark.parametrize(("arguments", "most"), [((), 0), (("turn",), 4)])
def test_a_peer_answers_about_its_folder(tmp_path: Path, arguments: tuple[str, ...], most: int) -> None:
    """Build once, then each answer comes with its CPU time and how many Markdown files it opened."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "tea.md").write_text("---\nname: Tea\ndescription: which tea\ntype: user\n---\n\nGreen tea, no sugar.\n")
    commands = [{"do": "build", "folder": str(folder)}, *[{"do": "ask", "queries": ["green tea"]}] * 3]
    done = subprocess.run(
        [sys.executable, BENCHMARKS / "peer" / "mdmemory_folder.py", *arguments],
        env=environment(XDG_CACHE_HOME=str(tmp_path / "cache")),
        input="".join(json.dumps(command) + "\n" for command in commands),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    built, _, _, quiet = map(json.loads, done.stdout.splitlines())
    assert built["opened"] >= 1 and built["found"] == []
    assert quiet["found"] == [["tea.md"]] and 0 < quiet["cpu_s"] < 10 and quiet["opened"] <= most


CONVERSATION = """
import json, sys
from pathlib import Path
from conversation import OURS, play, read_turns, reply_figures
turns = read_turns()[:10]
for number, peer in enumerate(OURS):
    run = play(peer, turns, Path(sys.argv[1]) / str(number))
    counts = [run.kept, run.facts, run.count("agent"), run.count("extraction"), run.saving_calls, run.answered]
    print(json.dumps([counts, run.tokens]))
print(json.dumps([figure.value for figure in reply_figures(turns, 2)]))
"""


@pytest.mark.slow
def test_a_conversation_is_remembered_and_its_tokens_are_counted(tmp_path: Path) -> None:
    """Six facts in ten turns: the agent saves each with a call more, or one call draws the first five; a question is answered."""
    done = python("-c", CONVERSATION, tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.returncode == 0, done.stderr
    (saves, saving), (seldom, drawing), (often, _), reply = map(json.loads, done.stdout.splitlines())
    assert saves == [6, 6, 16, 0, 6, [1, 1]]
    assert seldom == [5, 5, 10, 1, 1, [1, 1]]
    assert often == [6, 6, 10, 10, 10, [1, 1]]
    empty = drawing[0]
    assert drawing[:8] == [empty] * 8 and min(drawing[8:]) > empty and saving[0] > 2 * empty
    assert reply[:2] == [1, 0]
