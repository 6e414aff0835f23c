"""What saving does to MEMORY.md, on a real disk."""

from __future__ import annotations

import asyncio
import os
import random
import stat
from pathlib import Path

import pytest
from children import NOBODY, end, open_folder, start
from folders import index_of, log_of, memory, objects_of, on_disk, visible
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mdmemory.backends.protocol import etag_of
from mdmemory.config import Config
from mdmemory.errors import Conflict, InvalidMemoryFile
from mdmemory.files.changes import Change, Create, Delete, Rename, Replace
from mdmemory.files.index import own_lines, pointers
from mdmemory.folder.memory_folder import MemoryFolder

A, B = memory("Alpha", "the first"), memory("Beta", "the second")
MINE = "\ufeff# My memory\r\n\r\nhand-written, *kept*  \r\n\r\n## Links\r\n* [my own words](a.md) of Alpha\r\nsee [[b]] too\r\n"


def targets(root: Path) -> list[str]:
    """The files that the index points to, line by line."""
    return [pointer.target for pointer in pointers(index_of(root), visible(root))]


async def edit_index(folder: MemoryFolder, root: Path, old: str, new: str, author: str = "agent:a") -> None:
    """Edit MEMORY.md as the Edit tool does."""
    before = index_of(root)
    assert old in before
    data = before.encode()
    await folder.apply([Replace("MEMORY.md", before.replace(old, new).encode(), etag_of(data), data)], author, "Edit")


async def test_the_newest_and_the_pinned_stay(tmp_path: Path) -> None:
    """I1: of 202 files the newest and the pinned are in index and prompt; a last line counts the others."""
    folder = on_disk(tmp_path)
    await folder.apply([Create("pinned.md", memory("Pinned", pinned="true"))], "person", "test")
    for start_at in range(0, 201, 67):
        names = range(start_at, start_at + 67)
        await folder.apply([Create(f"n{n:03}.md", memory(f"Note {n}")) for n in names], "person", "test")
    for text in (index_of(tmp_path), (await folder.prompt_index()).text):
        lines = text.splitlines()
        assert len(lines) == 200 and lines[-1].startswith("- _3 ") and "list" in lines[-1]
        assert {"pinned.md", "n200.md"} <= {pointer.target for pointer in pointers(text)}
        assert all(line.endswith("— what it says") for line in lines[:-1])


async def test_a_full_index_is_a_warning(tmp_path: Path) -> None:
    """I7: a save that fills the index beyond its bytes goes through, within the limits, and warns with the figures."""
    folder = on_disk(tmp_path, config=Config(index_max_bytes=600))
    applied = await folder.apply([Create(f"n{n}.md", memory(f"Note {n}", "d" * 60)) for n in range(9)], "agent:a", "test")
    assert len(visible(tmp_path)) == 10 and len(index_of(tmp_path).encode()) <= 600
    assert applied.index is not None and applied.index.not_shown > 0
    assert f"{applied.index.shown} of 9" in applied.warnings[0] and "600 bytes" in applied.warnings[0]


async def test_inline_content_is_refused_for_agents_only(tmp_path: Path) -> None:
    """I4: an agent that writes the memory itself into the index is told to write a file; a person may."""
    folder = on_disk(tmp_path, {"MEMORY.md": "# Mine\n"})
    inline = b"# Mine\n\n" + b"The user is a surveyor who likes short answers. " * 12 + b"\n"
    change = Replace("MEMORY.md", inline, etag_of(b"# Mine\n"))
    with pytest.raises(InvalidMemoryFile, match="Write a memory file"):
        await folder.apply([change], "agent:a", "Write")
    assert visible(tmp_path) == {"MEMORY.md": b"# Mine\n"}
    await folder.apply([change], "person", "Write")
    assert visible(tmp_path) == {"MEMORY.md": inline}


def test_two_processes_save_at_the_same_time(tmp_path: Path) -> None:
    """I5: of two processes that save at once, and edit the index at once, every line survives."""

    def work(name: str) -> None:
        async def save() -> None:
            folder = on_disk(tmp_path)
            base = index_of(tmp_path).encode()
            mine = Replace("MEMORY.md", base + f"A line by {name}.\n".encode(), etag_of(base), base)
            await folder.apply([mine], f"agent:{name}", "Edit")
            await folder.apply([Create(f"{name}.md", memory(name))], f"agent:{name}", "Write")

        asyncio.run(save())

    on_disk(tmp_path, {"MEMORY.md": "# Mine\n"})
    assert [end(child) for child in [start(lambda name=name: work(name)) for name in "xy"]] == [0, 0]  # type: ignore[misc]  # each its own
    lines = index_of(tmp_path).splitlines()
    assert {"# Mine", "A line by x.", "A line by y."} < set(lines) and sorted(targets(tmp_path)) == ["x.md", "y.md"]


@pytest.mark.parametrize(("processes", "files", "limit"), [(16, 10, 200), (8, 8, 20)])
def test_many_processes_make_files(processes: int, files: int, limit: int, tmp_path: Path) -> None:
    """I5: every one of 160 files by 16 processes is in the index; where they don't all fit, the others are counted."""

    def work(number: int) -> None:
        async def save() -> None:
            folder = on_disk(tmp_path, config=Config(index_max_lines=limit))
            await folder.refresh()
            for n in range(files):
                name = f"p{number:02}-{n}"
                await folder.apply([Create(f"{name}.md", memory(name))], f"agent:{number}", "Write")

        asyncio.run(save())

    children = [start(lambda number=number: work(number)) for number in range(processes)]  # type: ignore[misc]  # each its own
    assert [end(child) for child in children] == [0] * processes
    lines, made = index_of(tmp_path).splitlines(), processes * files
    fit = made if made <= limit else limit - 1
    assert len(visible(tmp_path)) == made + 1 and len(set(targets(tmp_path))) == len(targets(tmp_path)) == fit
    assert len(lines) == min(made, limit) and (made == fit or lines[-1].startswith(f"- _{made - fit} more memory files are not"))
    assert not [entry for entry in log_of(tmp_path) if entry.get("author") == "outside"]


def test_an_index_that_cannot_be_read_is_left_alone() -> None:
    """I6: when the look at MEMORY.md fails it is not taken for absent: the memory is saved, the index kept, with a warning."""

    async def save(root: Path) -> None:
        folder = on_disk(root)
        applied = await folder.apply([Create("a.md", A)], "agent:a", "Write")
        assert applied.index is None and "left as it is" in applied.warnings[0] and "permission" in applied.warnings[0]

    with open_folder() as root:
        root.chmod(0o777)
        index = root / "MEMORY.md"
        index.write_bytes(b"# Mine\n")
        index.chmod(0)
        was = index.stat()
        assert end(start(lambda: asyncio.run(save(root)), uid=NOBODY)) == 0
        now = index.stat()
        assert (now.st_ino, now.st_size, stat.S_IMODE(now.st_mode)) == (was.st_ino, 7, 0)
        assert (root / "a.md").read_bytes() == A
        index.chmod(0o644)
        assert index.read_bytes() == b"# Mine\n"


@pytest.mark.parametrize("data", [b"# caf\xe9\n", "# UTF-16\n".encode("utf-16")])
async def test_an_index_that_is_not_utf8(data: bytes, tmp_path: Path) -> None:
    """I6: a MEMORY.md that is not UTF-8 is never rewritten by a save; a person may replace it by one that is."""
    folder = on_disk(tmp_path, {"MEMORY.md": data})
    applied = await folder.apply([Create("a.md", A)], "agent:a", "Write")
    assert visible(tmp_path) == {"a.md": A, "MEMORY.md": data} and "not UTF-8" in applied.warnings[0]
    await folder.apply([Replace("MEMORY.md", b"# Mine\n", etag_of(data))], "person", "mend")
    await folder.apply([Create("b.md", B)], "agent:a", "Write")
    assert index_of(tmp_path) == "# Mine\n\n- [Alpha](a.md) — the first\n- [Beta](b.md) — the second\n"


async def test_an_index_that_is_a_folder_or_a_link(tmp_path: Path) -> None:
    """I6, N3: whatever stands in the index's place, the memory is saved and what stands there is left."""
    (tmp_path / "MEMORY.md").mkdir()
    applied = await on_disk(tmp_path).apply([Create("a.md", A)], "agent:a", "Write")
    assert applied.warnings and (tmp_path / "MEMORY.md").is_dir()
    (tmp_path / "MEMORY.md").rmdir()
    (tmp_path / "MEMORY.md").symlink_to(tmp_path / "elsewhere")
    applied = await on_disk(tmp_path).apply([Create("b.md", B)], "agent:a", "Write")
    assert applied.warnings and (tmp_path / "MEMORY.md").is_symlink() and not (tmp_path / "elsewhere").exists()


async def test_a_line_that_the_agent_adds_itself(tmp_path: Path) -> None:
    """I8: a file and its index line written by hand, in whichever order, come to one line a file."""
    folder = on_disk(tmp_path, {"MEMORY.md": "# Mine\n"})
    await edit_index(folder, tmp_path, "# Mine\n", "# Mine\n- [Alpha](a.md) — the first\n- [Beta, mine](b.md): soon\n")
    await folder.apply([Create("a.md", A)], "agent:a", "Write")
    await folder.apply([Create("b.md", B)], "agent:a", "Write")
    await edit_index(folder, tmp_path, "# Mine\n", "# Mine\n- [Alpha](a.md) — the first\n")
    assert sorted(targets(tmp_path)) == ["a.md", "b.md"] and "- [Beta, mine](b.md): soon\n" in index_of(tmp_path)


async def test_a_file_whose_ending_is_in_capitals(tmp_path: Path) -> None:
    """I8: a NOTE.MD that a person made has one line like any other, whatever is saved beside it."""
    folder = on_disk(tmp_path, {"NOTE.MD": A})
    for name in "xy":
        await folder.apply([Create(f"{name}.md", B)], "agent:a", "Write")
    assert targets(tmp_path) == ["NOTE.MD", "x.md", "y.md"]


async def test_lines_of_people_are_kept_and_ours_follow(tmp_path: Path) -> None:
    """A reworded pointer stays and counts; ours follows the header; deletion takes pointers away; a rename changes targets only."""
    folder = on_disk(tmp_path, {"a.md": A, "b.md": B, "MEMORY.md": MINE})
    await folder.apply(
        [Replace("a.md", memory("Alpha", "other words"), etag_of(A)), Create("c.md", memory("Gamma"))], "agent:a", "t"
    )
    assert index_of(tmp_path) == MINE.replace("see", "- [Gamma](c.md) — what it says\r\nsee")
    await folder.apply([Replace("c.md", memory("Gamma", "new"), etag_of(memory("Gamma")))], "agent:a", "t")
    assert index_of(tmp_path) == MINE.replace("see", "- [Gamma](c.md) — new\r\nsee")
    await folder.apply([Rename("a.md", "dir/über a.md"), Rename("b.md", "dir/b.md"), Rename("c.md", "dir/c.md")], "person", "t")
    moved = MINE.replace("(a.md)", "(dir/über%20a.md)").replace("see", "- [Gamma](dir/c.md) — new\r\nsee")
    assert index_of(tmp_path) == moved
    await folder.apply([Delete("dir/über a.md"), Delete("dir/b.md"), Delete("dir/c.md")], "person", "t")
    assert index_of(tmp_path) == MINE.replace("* [my own words](a.md) of Alpha\r\n", "")


async def test_a_pointer_taken_away_returns(tmp_path: Path) -> None:
    """A pointer that an edit of the index takes away returns while its file is there; one whose file is gone does not."""
    folder = on_disk(tmp_path, {"MEMORY.md": "# Mine\n\n- [x](gone.md)\n"})
    await folder.apply([Create("a.md", A), Create("b.md", B)], "agent:a", "Write")
    base = index_of(tmp_path).encode()
    applied = await folder.apply([Replace("MEMORY.md", b"# New\n", etag_of(base), base)], "agent:a", "Write")
    assert index_of(tmp_path) == "# New\n\n- [Alpha](a.md) — the first\n- [Beta](b.md) — the second\n"
    assert applied.files[0].after == index_of(tmp_path).encode()
    (tmp_path / "MEMORY.md").write_bytes(b"# By a person\n")
    await folder.apply([Delete("b.md")], "agent:a", "Delete")
    assert index_of(tmp_path) == "# By a person\n\n- [Alpha](a.md) — the first\n"


async def test_a_broken_file_keeps_its_last_good_line(tmp_path: Path) -> None:
    """A file that a person breaks keeps its line, through other saves, until it is mended; then the line follows."""
    folder = on_disk(tmp_path)
    await folder.apply([Create("a.md", A)], "agent:a", "Write")
    (tmp_path / "a.md").write_bytes(b"---\nname: [\n---\n")
    await folder.refresh()
    await folder.apply([Create("b.md", B)], "agent:a", "Write")
    assert "- [Alpha](a.md) — the first\n" in index_of(tmp_path)
    (tmp_path / "a.md").write_bytes(memory("Alpha", "mended"))
    await folder.refresh()
    await folder.apply([Delete("b.md")], "agent:a", "Write")
    assert index_of(tmp_path) == "- [Alpha](a.md) — mended\n"


async def test_only_lines_of_people_enter_the_history(tmp_path: Path) -> None:
    """The history holds the lines that people wrote in the index, and none of ours."""
    folder = on_disk(tmp_path, {"MEMORY.md": "# Mine\n"})
    await folder.apply([Create("a.md", A), Create("b.md", B)], "agent:a", "Write")
    await edit_index(folder, tmp_path, "# Mine", "# Mine\nA note of mine.", "person")
    await folder.apply([Delete("a.md")], "agent:a", "Delete")
    kept = b"".join([*objects_of(tmp_path), (tmp_path / ".mdmemory/log.jsonl").read_bytes()])
    assert b"A note of mine." in kept and b"[Beta](b.md)" not in kept and "— the first".encode() not in kept


pieces = st.sampled_from(["# H", "", "text  ", "* [mine](n1.md) words", "see [[n2]]", "```", "- [x](n0.md)", "<!-- c -->", "\ttab"])


@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(pieces, st.sampled_from(["\n", "\r\n"])).map("".join), max_size=10), st.integers(0, 2**32))
def test_fifty_saves_keep_what_people_wrote(tmp_path_factory: pytest.TempPathFactory, lines: list[str], seed: int) -> None:
    """I3, W3: over 50 random saves people's lines stay byte for byte, and no file that a person made is written to."""
    root = tmp_path_factory.mktemp("memory")
    rng = random.Random(seed)
    human = {f"h{n}.md": memory(f"H{n}") if n else b"plain, without frontmatter" for n in range(4)} | {"x.txt": b"other"}
    folder = on_disk(root, {**human, "MEMORY.md": "".join(lines)})
    stamps = {path: (root / path).stat() for path in human}

    def change() -> Change:
        path = f"n{rng.randrange(5)}.md"
        known = folder.files.get(path)
        if known is None:
            return Create(path, memory(f"N{rng.randrange(9)}", body=str(rng.random())))
        if rng.random() < 0.3:
            return Delete(path) if rng.random() < 0.5 else Rename(path, f"m{rng.randrange(10**9)}.md")
        return Replace(path, memory(f"N{rng.randrange(9)}", body=str(rng.random())), known.etag or "")

    async def save() -> None:
        own = own_lines(index_of(root), folder.listed).splitlines(keepends=True)
        for _ in range(50):
            await folder.apply([change()], "agent:a", "test")
        left = iter(index_of(root).splitlines(keepends=True))
        words = [line for line in own if "](n" not in line and "[[" not in line]
        assert all(any(line.rstrip("\n") == other.rstrip("\n") for other in left) for line in words)

    asyncio.run(save())
    assert {path: (root / path).read_bytes() for path in human} == human
    assert {path: (root / path).stat().st_mtime_ns for path in human} == {p: s.st_mtime_ns for p, s in stamps.items()}
    assert {path: os.stat(root / path).st_ino for path in human} == {path: stamp.st_ino for path, stamp in stamps.items()}


async def test_the_index_itself_can_conflict(tmp_path: Path) -> None:
    """An edit of the index based on a text that is gone, in the same lines, is a conflict with the current text."""
    folder = on_disk(tmp_path, {"MEMORY.md": "# One\n"})
    with pytest.raises(Conflict) as caught:
        await folder.apply([Replace("MEMORY.md", b"# Two\n", etag_of(b"# Zero\n"), b"# Zero\n")], "agent:a", "Edit")
    assert caught.value.current == "# One\n"
