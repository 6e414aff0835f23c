"""`mdmemory eval`: what it prints, what it writes, and how it goes on after it was stopped."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from command import environment, mdmemory
from pseudo_terminal import CTRL_C, Terminal, screen
from tiny_locomo import LOCOMO

from mdmemory.evals.report import markdown

WITHOUT_MATPLOTLIB = "import sys; sys.modules['matplotlib'] = None; from mdmemory.cli import main; main()"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The conversation as a file."""
    path = tmp_path / "tiny.json"
    path.write_text(json.dumps(LOCOMO), encoding="utf-8")
    return path


def test_the_command_prints_json_and_writes_a_report(data: Path, tmp_path: Path) -> None:
    """`mdmemory eval locomo PATH --json` prints shares by level and category; the report has them as page, JSON and plot."""
    done = mdmemory("eval", "locomo", str(data), "--json", "--report", "report", cwd=tmp_path)
    measured = json.loads(done.stdout)
    assert done.returncode == 0 and measured["questions"] == 3
    assert list(measured["session"]) == list(measured["turn"]) == ["frac", "any", "all", "mrr", "categories"]
    written = {path.name: path.read_text() for path in (tmp_path / "report").iterdir()}
    assert set(written) == {"report.md", "report.json", "recall.svg"}
    page = markdown("LoCoMo: tiny.json", measured)
    assert written["report.md"] == f"{page}\n![Recall by category](recall.svg)\n"
    assert "| all | 3 | 83.3 | 100.0 |" in page
    assert json.loads(written["report.json"]) == measured
    assert all(text in written["recall.svg"] for text in ("<svg", "single-hop (2)", "R@10", "83.3"))
    plain = mdmemory("eval", "locomo", str(data), cwd=tmp_path)
    assert plain.stdout == page
    wrong = mdmemory("eval", "longmemeval", str(data), cwd=tmp_path)
    assert wrong.returncode == 2 and "can't be read as LongMemEval" in wrong.stderr


def test_a_report_without_matplotlib_says_what_is_missing(data: Path, tmp_path: Path) -> None:
    """The page and the JSON are written all the same, and one line names the extra."""
    command = [sys.executable, "-c", WITHOUT_MATPLOTLIB, "eval", "locomo", str(data), "--report", "report"]
    done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert (done.returncode, sorted(path.name for path in (tmp_path / "report").iterdir())) == (0, ["report.json", "report.md"])
    assert (tmp_path / "report" / "report.md").read_text().endswith("which `pip install 'mdmemory[plot]'` brings.\n")


def test_a_report_that_has_no_place_is_refused_before_the_work(data: Path, tmp_path: Path) -> None:
    """A file stands where the folder should be: one line says so."""
    (tmp_path / "taken").write_text("")
    done = mdmemory("eval", "locomo", str(data), "--report", "taken/report", cwd=tmp_path)
    assert done.returncode == 1 and "The report's folder 'taken/report' can't be made: Not a directory" in done.stderr


def test_a_terminal_shows_the_progress(data: Path, tmp_path: Path) -> None:
    """On a terminal a bar runs up to the last question."""
    code, shown = screen("eval", "locomo", data, cwd=tmp_path)
    assert code == 0 and "Questions  [####################################]  100%" in shown


def test_a_stopped_run_goes_on_where_it_was(tmp_path: Path) -> None:
    """After Ctrl-C the same command measures only what is left, and the report is that of an undisturbed run."""
    path, unfinished = tmp_path / "many.json", tmp_path / "report" / "unfinished.jsonl"
    path.write_text(json.dumps([{**LOCOMO[0], "sample_id": str(number)} for number in range(400)]), encoding="utf-8")
    with Terminal("eval", "locomo", path, "--report", "report", cwd=tmp_path) as terminal:
        terminal.wait_for("  1%")
        terminal.type(CTRL_C)
        assert terminal.end() == 130
        assert "Stopped. The same command goes on from here." in terminal.shown
    kept = unfinished.read_text().splitlines()
    assert 0 < len(kept) < 400
    unfinished.write_text("\n".join(line.replace('"ranks": [1]', '"ranks": [7]') for line in kept) + "\n")
    done = mdmemory("eval", "locomo", path, "--report", "report", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)["turn"]
    assert found["frac"]["1"] == pytest.approx((3 * 400 * 5 / 6 - len(kept) * 2) / 1200, abs=1e-4), "what was kept counts"
    assert not unfinished.exists()
