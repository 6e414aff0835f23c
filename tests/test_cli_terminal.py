"""The command on a terminal: colours, widths, scripts that take two columns, and names that try to steer it."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from command import mdmemory, note, write
from pseudo_terminal import screen

ESC, BELL = "\x1b", "\x07"


def columns(text: str) -> int:
    """How many columns a line takes, as terminals count them."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text if not unicodedata.combining(char))


def test_colours_are_for_terminals_only(tmp_path: Path) -> None:
    """A terminal gets colours; a pipe, NO_COLOR and a dumb terminal don't."""
    write(tmp_path / "memory/a.md", note("A", "a"))
    _, shown = screen("ls", cwd=tmp_path)
    assert f"{ESC}[2mFILE" in shown
    for code, shown in (screen("ls", cwd=tmp_path, NO_COLOR="1"), screen("ls", cwd=tmp_path, TERM="dumb")):
        assert code == 0 and "FILE" in shown and ESC not in shown
    assert ESC not in mdmemory("ls", cwd=tmp_path).stdout + mdmemory("doctor", cwd=tmp_path).stderr


@pytest.mark.parametrize("width", [80, 120])
def test_a_table_fits_the_terminal(tmp_path: Path, width: int) -> None:
    """Every row is one line of the terminal, cut with … where it must be; piped, nothing is cut."""
    description = "这个文件说明我们如何发布新版本 and then much more than any terminal has room for, " * 2
    write(tmp_path / "memory/发布.md", note("发布流程", description.strip()))
    write(tmp_path / "memory/short.md", note("Short", "fits"))
    write(tmp_path / f"memory/{'long-' * 30}name.md", note("Long", "a path that leaves no room"))
    for command in (["ls"], ["search", "room"]):
        code, shown = screen(*command, cwd=tmp_path, columns=width, NO_COLOR="1")
        lines = shown.splitlines()
        assert code == 0 and max(map(columns, lines)) <= width
        cut = next(line for line in lines if "发布流程" in line)
        assert cut.endswith("…") and columns(cut) >= width - 1
    assert description.strip() in mdmemory("ls", cwd=tmp_path).stdout
    assert "Short — fits" in screen("ls", cwd=tmp_path, columns=width)[1]


def test_columns_stand_under_each_other_in_every_script(tmp_path: Path) -> None:
    """East Asian wide characters count for two columns, and combining marks for none."""
    for name in ("大明科技.md", "cafe\u0301.md", "plain.md", "🎉.md"):
        write(tmp_path / "memory" / name, note("N", "here", kind="reference"))
    heading, *rows = mdmemory("ls", cwd=tmp_path).stdout.splitlines()
    assert len(rows) == 4
    assert {columns(row.partition("reference")[0]) for row in rows} == {columns(heading.partition("TYPE")[0])}


def test_findings_are_wrapped_and_not_cut(tmp_path: Path) -> None:
    """What doctor says is whole on a narrow terminal too, each line under the one before."""
    write(tmp_path / "memory/user/b.md", b"caf\xe9")
    code, shown = screen("doctor", cwd=tmp_path, columns=60, NO_COLOR="1")
    assert code == 1 and max(map(columns, shown.splitlines())) <= 60
    whole = mdmemory("doctor", cwd=tmp_path)
    assert shown.split() == (whole.stdout + whole.stderr).split()


@pytest.mark.slow
def test_no_file_can_steer_the_terminal(tmp_path: Path) -> None:
    """Control characters in names, headers, bodies and MEMORY.md never reach a terminal, whatever looks at them."""
    evil = f"{ESC}[31mred{ESC}]0;title{BELL}\u202e"
    write(tmp_path / f"memory/{ESC}[31mname.md", "x")
    write(tmp_path / "memory/plain.md", f"# Plain {evil}\n\nbody {evil} tomatoes\n")
    write(tmp_path / "memory/typed.md", note("Typed", f"about {evil}", "tomatoes"))
    write(tmp_path / "memory/MEMORY.md", f"# Memory {evil}\n\n- [Gone](gone.md) — {evil}\n")
    looks = (["ls"], ["search", "tomatoes", "--explain"], ["show", "plain.md"], ["show", "MEMORY.md"], ["show", evil])
    more = (["prompt", "-m", "tomatoes"], ["ls", "--json"], ["doctor", "--json"], ["doctor"], ["doctor", "--fix"])
    for command in (*looks, *more):
        code, shown = screen(*command, cwd=tmp_path, NO_COLOR="1")
        assert code in (0, 1, 2) and shown
        assert not {ESC, BELL, "\u202e"} & set(shown), (command, shown)


def test_show_leaves_readable_text_alone(tmp_path: Path) -> None:
    """On a terminal a file keeps its wide spaces, joiners, tabs and lines; only what could steer the terminal is left out."""
    text = "名前：　全角\tタブ\n👩\u200d💻 می\u200cخواهم\ncafe\u0301\n"
    write(tmp_path / "memory/a.md", f"{text}{ESC}[1mbold")
    code, shown = screen("show", "a.md", cwd=tmp_path)
    assert (code, shown) == (0, f"{text}[1mbold\n")
