"""`mdmemory consolidate` and `review`, the real processes, with a model over real HTTP."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from command import Finished, mdmemory
from consolidating import LOSSY, MERGE, OTHERS, TEA, WHOLE, files_of, made, proposed, reply, tea, wish
from openai_server import OpenAIServer
from pseudo_terminal import Terminal
from transcript import hide_dates

EDITOR = "sed -i 's/never coffee/never coffee, with honey from Yunnan, at 80 degrees/'"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A working folder whose `memory` has five tellings of one thing, and others."""
    tea(tmp_path / "memory")
    return tmp_path


def given(place: Path, *wishes: object) -> list[str]:
    """The ids of what waits after a run with these wishes."""
    report = asyncio.run(proposed(tea(place / "memory"), reply(*wishes)))
    return [proposal.id for proposal in report.proposals]


def consolidate(place: Path, server: OpenAIServer, *options: str) -> Finished:
    """Run the command."""
    return mdmemory("consolidate", "--model", f"openai:m@{server.base_url}", *options, cwd=place)


def test_from_similar_files_to_one(place: Path) -> None:
    """D2, P1: `consolidate` says what waits, `review` shows and accepts it, and `undo` takes it back."""
    with OpenAIServer([json.dumps(reply(MERGE, wish("merge", ["x.md", "y.md"], made("x.md", "x"))))]) as server:
        done = consolidate(place, server)
    assert (done.returncode, files_of(place / "memory")) == (0, {**TEA, **OTHERS})
    state, id, what = done.stdout.splitlines()[1].split(maxsplit=2)
    assert state == "waits" and what.startswith("merge user/drinks.md") and what.endswith("into user/tea.md: they tell one thing")
    assert "left out: merge: 'x.md' is none of the files" in done.stderr and "`mdmemory review` shows what waits" in done.stderr
    assert id in mdmemory("review", cwd=place).stdout
    shown = mdmemory("review", id, cwd=place).stdout
    assert f"+{WHOLE}\n" in shown and "reworded: 13 lines" in shown and "speaks against" not in shown
    done = mdmemory("review", id, "--accept", cwd=place)
    assert done.stdout.startswith(f"Accepted {id}, as event ") and files_of(place / "memory").keys() == {"user/tea.md", *OTHERS}
    event = done.stdout.split("event ")[1][:8]
    assert mdmemory("undo", event, cwd=place).returncode == 0 and files_of(place / "memory") == {**TEA, **OTHERS}
    assert mdmemory("review", cwd=place).stdout == "Nothing waits.\n"


def test_a_dry_run_asks_nobody(place: Path) -> None:
    """P1: `consolidate` without a model lists similar files, and `--dry-run` what a model would be sent."""
    done = mdmemory("consolidate", cwd=place)
    assert (
        done.stdout.splitlines()[1].endswith("user/tea-again.md, user/tea-from.md, user/tea.md") and "name a --model" in done.stderr
    )
    with OpenAIServer([]) as server:
        assert "a model would be asked once, with about" in consolidate(place, server, "--dry-run").stderr
    (group,) = json.loads(mdmemory("consolidate", "--json", cwd=place).stdout)["groups"]
    assert group["files"] == sorted(TEA) and 500 < group["tokens"] < 2_000
    for path in TEA:
        (place / "memory" / path).unlink()
    assert mdmemory("consolidate", cwd=place).stdout.startswith("No files say much the same")


def test_what_speaks_against_a_proposal_needs_a_yes(place: Path) -> None:
    """D2, P1: `review --accept` of what loses a detail says which, and only `--yes` does it."""
    (id,) = given(place, LOSSY)
    assert "it loses 80, Yunnan" in mdmemory("review", cwd=place).stdout
    shown = mdmemory("review", id, cwd=place).stdout
    assert "user/tea-from.md:7 gone: Green tea is drunk with honey from Yunnan, at 80 degrees." in shown
    assert "words that no file will have: " in shown and "honey" in shown.partition("words that")[2]
    done = mdmemory("review", id, "--accept", cwd=place)
    assert done.returncode == 1 and "needs an explicit yes: it loses 80, Yunnan" in done.stderr
    assert files_of(place / "memory") == {**TEA, **OTHERS}
    done = mdmemory("review", id, "--accept", "--yes", "--json", cwd=place)
    assert json.loads(done.stdout)["accepted"] == id and len(files_of(place / "memory")) == 3


def test_rejected_edited_and_out_of_date(place: Path) -> None:
    """D2: `--edit` opens $EDITOR on what would be written, `--reject` ends it; a changed source is told, and an unknown id."""
    (id,) = given(place, LOSSY)
    done = mdmemory("review", id, "--edit", cwd=place, EDITOR=EDITOR)
    assert done.stdout == f"Edited {id}; it waits to be accepted.\n", done.stderr
    found = json.loads(mdmemory("review", id, "--json", cwd=place).stdout)
    assert (
        found["edited"]
        and found["guard"] is None
        and "+Drinks green tea every morning, never coffee, with" in found["diff"]["user/tea.md"]
    )
    assert mdmemory("review", id, "--edit", cwd=place, EDITOR="true").stdout == "Nothing was edited.\n"
    done = mdmemory("review", id, "--edit", cwd=place, EDITOR="sed -i 's/^name: .*/name: [typed/'")
    assert done.returncode == 1 and "Nothing was changed" in done.stderr
    (kept,) = Path(done.stderr.rpartition("your text is in ")[2].strip().removesuffix(".")).iterdir()
    assert "name: [typed\n" in kept.read_text() and kept.name == "1-tea.md"
    (place / "memory/user/morning.md").write_text("# Morning\n")
    assert "user/morning.md has changed since" in mdmemory("review", cwd=place).stdout
    done = mdmemory("review", id, "--accept", "--yes", cwd=place)
    assert done.returncode == 1 and "out of date" in done.stderr
    assert "has changed since; reject it, or consolidate anew" in mdmemory("review", id, cwd=place).stdout
    assert mdmemory("review", id, "--reject", cwd=place).stdout == f"Rejected {id}; the files stay as they are.\n"
    done = mdmemory("review", id, "--reject", cwd=place)
    assert done.returncode == 1 and f"No proposal {id} waits" in done.stderr
    assert mdmemory("review", "--accept", cwd=place).returncode == 2


def test_one_after_the_other_on_a_terminal(place: Path) -> None:
    """D2: on a terminal `review` shows each proposal and takes a letter; what loses something is asked for once more."""
    edges = [wish("retire", ["user/morning.md"]), wish("rewrite", ["user/tea.md"], made("user/tea.md", "Drinks green tea."))]
    given(place, *edges, wish("retire", ["user/drinks.md"]), wish("retire", ["user/tea-again.md"]))
    with Terminal("review", cwd=place, EDITOR="sed -i 's/Drinks green tea/&, hot, never coffee/'") as terminal:
        assert "1 of 4: " in terminal.wait_for("(q)uit [s]: ")
        terminal.type("a\n")
        terminal.wait_for("agents no longer see 1 file. Accept it all the same? [y/N]: ")
        terminal.type("y\n")
        assert "Accepted" in terminal.wait_for("(q)uit [s]: ")
        terminal.type("e\n")
        assert "+Drinks green tea, hot, never coffee." in terminal.wait_for("(q)uit [s]: ")
        terminal.type("a\n")
        assert "Accepted" in terminal.wait_for("3 of 4: ")
        terminal.wait_for("(q)uit [s]: ")
        terminal.type("a\n")
        terminal.wait_for("[y/N]: ")
        terminal.type("n\n")
        assert "needs an explicit yes" in terminal.wait_for("4 of 4: ")
        terminal.wait_for("(q)uit [s]: ")
        terminal.type("q\n")
        assert terminal.end() == 0
    assert b"valid_until" in (place / "memory/user/morning.md").read_bytes()
    assert "never coffee" in (place / "memory/user/tea.md").read_text()
    assert len(json.loads(mdmemory("review", "--json", cwd=place).stdout)) == 2
    with Terminal("review", cwd=place) as terminal:
        terminal.wait_for("(q)uit [s]: ")
        terminal.interrupt()
        assert terminal.end() == 1


def test_a_model_that_fails(place: Path) -> None:
    """D2: nonsense is told and nothing waits; a model that can't be had is an error of one line."""
    with OpenAIServer(["I'd rather not."]) as server:
        done = consolidate(place, server)
        assert done.returncode == 0 and done.stdout == "The model proposes nothing.\n" and "not a JSON object" in done.stderr
    done = mdmemory("consolidate", "--model", "gpt", cwd=place)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert hide_dates(mdmemory("review", cwd=place).stdout) == "Nothing waits.\n"
