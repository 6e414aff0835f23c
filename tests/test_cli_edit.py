"""`mdmemory edit`: with real programs as editors, which is all that it knows of them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from command import Finished, mdmemory, note, write

HOME = note("Where the user lives", "home city", "Hangzhou.\n\nUTC+8.")


def edit(cwd: Path, name: str, program: str, *options: str) -> Finished:
    """Edit a file with a Python program, which finds its text in `text` and leaves another there."""
    script = cwd / "editor.py"
    code = f"import sys\nfrom pathlib import Path\nplace = Path(sys.argv[1])\ntext = place.read_text()\n{program}\n"
    script.write_text(f"{code}place.write_text(text)\n")
    return mdmemory("edit", name, *options, cwd=cwd, EDITOR=f"{sys.executable} {script}", VISUAL="")


def test_an_edit_is_saved_and_listed(tmp_path: Path) -> None:
    """What was written is in the file and its index line, and the history knows the person."""
    write(tmp_path / "memory/user/home.md", HOME)
    done = edit(tmp_path, "Where the user lives", "text = text.replace('home city', 'where home is')")
    assert done.returncode == 0 and done.stdout == "Saved user/home.md.\n"
    assert "where home is" in (tmp_path / "memory/MEMORY.md").read_text()
    assert json.loads(mdmemory("log", "--json", cwd=tmp_path).stdout)[0]["author"] == "person"
    assert edit(tmp_path, "user/home.md", "pass").stdout == "Nothing was changed.\n"


def test_a_name_says_nothing_to_a_shell(tmp_path: Path) -> None:
    """An agent chose the file's name, and older clicks open editors through a shell: the copy has a plain one."""
    write(tmp_path / 'memory/user/$(touch `here`)".md', HOME)
    done = edit(tmp_path, "Where the user lives", "text = text.replace('Hangzhou', place.name)")
    assert done.returncode == 0
    assert "\n--touch--here---.md.\n" in (tmp_path / 'memory/user/$(touch `here`)".md').read_text()


def test_what_cannot_be_read_is_not_saved(tmp_path: Path) -> None:
    """F2: with broken frontmatter the file stays as it is, and what was typed is kept in a file that is named."""
    write(tmp_path / "memory/home.md", HOME)
    done = edit(tmp_path, "home", "text = text.replace('home city', '\"home \"city\"')", "--json")
    assert done.returncode == 1 and "Nothing was saved" in done.stderr and (tmp_path / "memory/home.md").read_text() == HOME
    kept = Path(done.stderr.rpartition("your text is in ")[2].strip().removesuffix("."))
    assert '"home "city"' in kept.read_text()


def test_an_edit_meets_another(tmp_path: Path) -> None:
    """E4: lines that someone else changed meanwhile are merged with; the same line is a conflict, and no text is lost."""
    write(tmp_path / "memory/home.md", HOME)
    other = f"Path({str(tmp_path / 'memory/home.md')!r}).write_text(text.replace('UTC+8', 'China Standard Time'))\n"
    done = edit(tmp_path, "home.md", other + "text = text.replace('Hangzhou', 'Suzhou')")
    now = (tmp_path / "memory/home.md").read_text()
    assert done.returncode == 0 and "Suzhou" in now and "China Standard Time" in now
    other = other.replace("UTC+8", "Suzhou").replace("China Standard Time", "Nanjing")
    done = edit(tmp_path, "home.md", other + "text = text.replace('Suzhou', 'Wuxi')")
    kept = Path(done.stderr.rpartition("your text is in ")[2].strip().removesuffix("."))
    assert done.returncode == 1 and "Nanjing" in (tmp_path / "memory/home.md").read_text() and "Wuxi" in kept.read_text()


def test_the_index_and_a_broken_file_can_be_edited(tmp_path: Path) -> None:
    """People's own words of MEMORY.md, and a file that only a person can mend."""
    write(tmp_path / "memory/MEMORY.md", "# Mine\n")
    write(tmp_path / "memory/broken.md", "---\nname: A\nname: B\n---\n")
    assert edit(tmp_path, "MEMORY.md", "text += '\\nAsk Ann.\\n'").returncode == 0
    assert "Ask Ann." in (tmp_path / "memory/MEMORY.md").read_text()
    assert edit(tmp_path, "broken.md", "text = text.replace('name: B', 'description: b')").returncode == 0
    assert mdmemory("ls", cwd=tmp_path).stdout.count("A — b") == 1


def test_a_name_that_nobody_has(tmp_path: Path) -> None:
    """No editor is opened for a file that is not there, nor for a name that two files have."""
    for path in ("a.md", "sub/a.md"):
        write(tmp_path / "memory" / path, note("Alpha", "the first"))
    for name, words in (("beta", "There is no"), ("alpha", "could be")):
        done = edit(tmp_path, name, f"Path({str(tmp_path / 'opened')!r}).touch()")
        assert done.returncode and words in done.stderr and not (tmp_path / "opened").exists()
