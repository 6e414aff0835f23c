"""`mdmemory doctor` on folders with the faults that people report; the sessions in tests/transcripts show it at length."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from command import mdmemory, note, write


def findings(cwd: Path, *options: str) -> list[dict[str, Any]]:
    """What doctor finds; its exit code says whether any of it is more than an info."""
    done = mdmemory("doctor", "--json", *options, cwd=cwd)
    found: list[dict[str, Any]] = json.loads(done.stdout)["findings"]
    assert done.returncode == any(finding["level"] != "info" for finding in found) and done.stderr == ""
    return found


def test_every_kind_of_broken_file_is_named_with_its_line(tmp_path: Path) -> None:
    """F2, F5, F8, F9, C7: each broken file is one finding with its reason, the others are fine, and not a byte changes."""
    files: dict[str, str | bytes] = {
        "quotes.md": '---\nname: Q\ndescription: "abc "def" ghi"\ntype: user\n---\n',
        "latin.md": b"caf\xe9\n",
        "utf16.md": "# Notes\n".encode("utf-16"),
        "twice.md": "---\nname: A\nname: B\n---\n",
        "anchor.md": "---\nname: &a A\ndescription: *a\n---\n",
        "tagged.md": "---\nname: !!python/object:os.system x\n---\n",
        "good.md": note("Good", "fine"),
    }
    for name, content in files.items():
        write(tmp_path / "memory" / name, content)
    mdmemory("init", cwd=tmp_path)
    before = {path: path.read_bytes() for path in (tmp_path / "memory").glob("*.md")}
    broken = findings(tmp_path, "--fix")
    assert {finding["path"] for finding in broken} == set(files) - {"good.md"}
    assert {finding["code"] for finding in broken} == {"broken", "encoding"} and all(finding["message"] for finding in broken)
    assert {finding["path"]: finding["line"] for finding in broken}["quotes.md"] == 3
    assert {path: path.read_bytes() for path in (tmp_path / "memory").glob("*.md")} == before


def test_what_is_valid_and_hardly_meant_is_named_too(tmp_path: Path) -> None:
    """F1: a `#` that YAML takes for a comment, and a type that nobody knows, are findings."""
    write(tmp_path / "memory/pr.md", "---\nname: PR\ndescription: Tracking PR #762\ntype: project\n---\n\nOpen.\n")
    write(tmp_path / "memory/kind.md", note("Kind", "of another type", kind="idea"))
    mdmemory("init", cwd=tmp_path)
    assert {(finding["path"], finding["code"]) for finding in findings(tmp_path)} == {
        ("pr.md", "yaml-comment"),
        ("kind.md", "unknown-type"),
    }


def test_what_is_not_followed_is_named_with_the_reason(tmp_path: Path) -> None:
    """N3: links and pipes are neither followed nor waited for; a hard link is read and reported."""
    write(tmp_path / "outside.md", "secret")
    write(tmp_path / "memory/a.md", note("A", "a"))
    (tmp_path / "memory/link.md").symlink_to(tmp_path / "outside.md")
    (tmp_path / "memory/folder").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "memory/pipe.md")
    os.link(tmp_path / "outside.md", tmp_path / "memory/hard.md")
    mdmemory("init", cwd=tmp_path)
    skipped = {finding["path"]: finding["message"] for finding in findings(tmp_path) if finding["code"] == "skipped"}
    assert set(skipped) == {"link.md", "folder", "pipe.md", "hard.md"} and all(skipped.values())
    assert "secret" not in mdmemory("show", "link.md", cwd=tmp_path).stdout
    assert mdmemory("ls", cwd=tmp_path).stderr.count("skipped ") == 4


def test_copies_of_sync_programs_are_named_with_their_original(tmp_path: Path) -> None:
    """N6: a conflicted copy is listed beside the file that it belongs to."""
    write(tmp_path / "memory/plan.md", note("Plan", "the plan"))
    write(tmp_path / "memory/plan (Ann's conflicted copy 2025-01-02).md", note("Plan", "the other plan"))
    mdmemory("init", cwd=tmp_path)
    (finding,) = findings(tmp_path)
    assert finding["code"] == "conflicted-copy" and "plan.md" in finding["message"] and not finding["fixable"]


def test_memories_written_into_the_index_are_named(tmp_path: Path) -> None:
    """I4: text that a model wrote into MEMORY.md is reported, and --fix deletes nothing of it."""
    text = (
        f"# Memory\n\n{note('Home', 'where the user lives', 'Lives in Hangzhou.')}\n"
        + "He wants short answers, in Chinese. " * 20
        + "\n"
    )
    write(tmp_path / "memory/MEMORY.md", text)
    assert "inline-content" in {finding["code"] for finding in findings(tmp_path, "--fix")}
    assert (tmp_path / "memory/MEMORY.md").read_text() == text


def test_a_large_folder_is_repaired_with_one_command(tmp_path: Path) -> None:
    """I2: 868 files and an index of 84 lines: --fix lists what fits, the newest for sure, and says how many more there are."""
    for number in range(868):
        write(tmp_path / f"memory/n{number:03}.md", note(f"Note {number}", f"the number {number}"))
        os.utime(tmp_path / f"memory/n{number:03}.md", (1_700_000_000 + number, 1_700_000_000 + number))
    old = "".join(f"- [Note {number}](n{number:03}.md) — the number {number}\n" for number in range(84))
    write(tmp_path / "memory/MEMORY.md", old)
    missing = [finding for finding in findings(tmp_path) if finding["code"] == "no-pointer"]
    assert missing and all(finding["fixable"] for finding in missing)
    assert [finding["code"] for finding in findings(tmp_path, "--fix")] == ["index-full"]
    index = (tmp_path / "memory/MEMORY.md").read_text()
    assert len(index.splitlines()) <= 200 and len(index.encode()) <= 25_000
    assert "(n867.md)" in index and "669 more memory files" in index
