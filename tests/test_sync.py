"""Pull and push: what changed on one side travels, what both changed is merged or left, and a wiped side wipes nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import mdmemory

from mdmemory import Create, Delete, MemoryFolder, Replace
from mdmemory.backends.local import LocalBackend
from mdmemory.backends.memory import MemoryBackend
from mdmemory.backends.protocol import Put, etag_of
from mdmemory.care.sync import sync
from mdmemory.errors import PermissionDenied


def note(name: str, body: str = "one\n\ntwo\n\nthree\n") -> bytes:
    """A memory file's bytes."""
    return f"---\nname: {name}\ndescription: about {name}\ntype: project\n---\n\n{body}".encode()


class Pair:
    """A local folder and a sandbox's, with what a person and an agent do in them."""

    def __init__(self, root: Path) -> None:
        self.mine, self.backend = MemoryFolder(LocalBackend(root)), MemoryBackend()
        self.other = MemoryFolder(self.backend)

    async def put(self, folder: MemoryFolder, path: str, data: bytes) -> None:
        """Write a file, whatever was there."""
        await folder.refresh()
        there = path in folder.files
        change = Replace(path, data, etag_of(await folder.read(path))) if there else Create(path, data)
        await folder.apply([change], "person", "test")

    async def pull(self, **options: bool) -> list[tuple[str, str]]:
        """Bring the sandbox's changes home."""
        return [(step.action, step.path) for step in await sync(self.mine, self.other, "test", push=False, **options)]

    async def push(self, **options: bool) -> list[tuple[str, str]]:
        """Bring the local changes there."""
        return [(step.action, step.path) for step in await sync(self.mine, self.other, "test", push=True, **options)]


@pytest.fixture
async def pair(tmp_path: Path) -> Pair:
    """Two folders with the same ten files, synced once."""
    pair = Pair(tmp_path / "mine")
    for number in range(10):
        await pair.put(pair.other, f"n{number}.md", note(f"N{number}"))
    assert [action for action, _ in await pair.pull()] == ["create"] * 11
    return pair


async def test_a_first_pull_brings_everything(pair: Pair) -> None:
    """The first pull brings every file, with its bytes, and the index; a second has nothing to do."""
    assert await pair.mine.read("n3.md") == note("N3")
    assert (await pair.mine.index_file()) == (await pair.other.index_file())
    assert await pair.pull() == [] and await pair.push() == []


async def test_changes_travel_one_way(pair: Pair) -> None:
    """A pull brings the sandbox's changes and deletions, and leaves what only the person changed; a push brings that there."""
    await pair.put(pair.other, "n1.md", note("N1", "from the sandbox\n"))
    await pair.other.apply([Delete("n2.md")], "agent:a", "test")
    await pair.put(pair.mine, "n3.md", note("N3", "from the person\n"))
    assert await pair.pull() == [("merge", "MEMORY.md"), ("update", "n1.md"), ("delete", "n2.md")]
    assert b"from the sandbox" in await pair.mine.read("n1.md") and "n2.md" not in pair.mine.files
    assert b"from the person" in await pair.mine.read("n3.md")
    assert await pair.push() == [("update", "n3.md")]
    assert b"from the person" in await pair.other.read("n3.md")
    assert await pair.pull() == [] and await pair.push() == []


async def test_both_changed(pair: Pair) -> None:
    """Changes of different lines are merged; of the same lines, nothing is touched and the file is reported, every time."""
    await pair.put(pair.other, "n1.md", note("N1", "ONE\n\ntwo\n\nthree\n"))
    await pair.put(pair.mine, "n1.md", note("N1", "one\n\ntwo\n\nTHREE\n"))
    await pair.put(pair.other, "n2.md", note("N2", "theirs\n"))
    await pair.put(pair.mine, "n2.md", note("N2", "mine\n"))
    assert await pair.pull() == [("merge", "n1.md"), ("left", "n2.md")]
    assert await pair.mine.read("n1.md") == note("N1", "ONE\n\ntwo\n\nTHREE\n")
    assert b"mine" in await pair.mine.read("n2.md")
    assert await pair.push() == [("update", "n1.md"), ("left", "n2.md")]
    assert b"theirs" in await pair.other.read("n2.md")


async def test_deletions_do_not_come_back(pair: Pair) -> None:
    """What a person deleted is not brought back by a pull, also when the sandbox changed it; then it is reported."""
    await pair.mine.apply([Delete("n1.md"), Delete("n2.md")], "person", "test")
    await pair.put(pair.other, "n2.md", note("N2", "changed\n"))
    assert await pair.pull() == [("left", "n2.md")]
    assert "n1.md" not in pair.mine.files and "n2.md" not in pair.mine.files
    assert ("delete", "n1.md") in await pair.push()


async def test_a_wiped_sandbox_wipes_nothing(pair: Pair) -> None:
    """A sandbox made anew lacks the marker: a pull refuses, also when it has new files of the same name; a push fills it again."""
    pair.backend = MemoryBackend()
    pair.other = MemoryFolder(pair.backend)
    await pair.put(pair.other, "n0.md", note("N0", "made anew\n"))
    with pytest.raises(PermissionDenied, match="wiped or made anew"):
        await pair.pull()
    assert len(pair.mine.files) == 10 and await pair.mine.read("n0.md") == note("N0")
    assert [step for step in await pair.push() if step[1] != "MEMORY.md"] == [
        ("left", "n0.md"),
        *(("create", f"n{number}.md") for number in range(1, 10)),
    ]
    assert await pair.pull() == [("left", "n0.md")] and await pair.other.read("n3.md") == note("N3")


async def test_many_deletions_need_a_word(pair: Pair) -> None:
    """More deletions than a fifth, or five, are refused without force, and nothing else of that pull is done."""
    await pair.put(pair.other, "new.md", note("New"))
    await pair.other.apply([Delete(f"n{number}.md") for number in range(6)], "agent:a", "test")
    for options in ({}, {"dry_run": True}):
        with pytest.raises(PermissionDenied, match="6 of 10 files would be deleted"):
            await pair.pull(**options)
    assert len(pair.mine.files) == 10
    assert ("delete", "n0.md") in await pair.pull(dry_run=True, force=True)
    assert len(pair.mine.files) == 10
    await pair.pull(force=True)
    assert sorted(pair.mine.files) == ["n6.md", "n7.md", "n8.md", "n9.md", "new.md"]


async def test_peoples_lines_of_the_index_travel(pair: Pair) -> None:
    """Lines that people wrote into MEMORY.md on both sides are on both sides after a pull and a push."""
    for folder, line in ((pair.mine, "# At home\n"), (pair.other, "# There\n")):
        text = (await folder.index_file() or "").encode()
        await folder.apply([Replace("MEMORY.md", line.encode() + text, etag_of(text), text)], "person", "test")
    await pair.pull()
    await pair.push()
    for folder in (pair.mine, pair.other):
        assert {"# At home", "# There"} <= set((await folder.index_file() or "").splitlines())


async def test_a_broken_file_stays_where_it_is(pair: Pair) -> None:
    """A file with broken frontmatter is reported and does not stop the others."""
    await pair.backend.commit("outside", [Put("broken.md", b"---\nname: a\nname: b\n---\n")])
    await pair.put(pair.other, "new.md", note("New"))
    assert [step for step in await pair.pull() if step[1] != "MEMORY.md"] == [("left", "broken.md"), ("create", "new.md")]


async def test_what_can_not_be_looked_at_is_not_deleted(tmp_path: Path) -> None:
    """D1: a file or folder that became a link, or that the scan skipped, is left on the other side and reported."""
    there, mine = MemoryFolder(LocalBackend(tmp_path / "there")), MemoryFolder(LocalBackend(tmp_path / "mine"))
    for path in ("a.md", "b/c.md", "d.md"):
        await there.apply([Create(path, note(path))], "person", "test")
    await sync(mine, there, "test", push=False)
    (tmp_path / "there/a.md").unlink()
    (tmp_path / "there/a.md").symlink_to("d.md")
    (tmp_path / "there/b").rename(tmp_path / "elsewhere")
    (tmp_path / "there/b").symlink_to(tmp_path / "elsewhere")
    steps = await sync(mine, there, "test", push=False, force=True)
    assert [(step.action, step.path) for step in steps if step.path != "MEMORY.md"] == [("left", "a.md"), ("left", "b/c.md")]
    assert sorted(mine.files) == ["a.md", "b/c.md", "d.md"]


async def test_a_hundred_files_and_one_that_can_not_be_taken(tmp_path: Path) -> None:
    """A first sync of many files brings all but the odd one, whose name looks like another's, and says why."""
    pair = Pair(tmp_path / "mine")
    await pair.other.apply([Create(f"n{number}.md", note(f"N{number}")) for number in range(120)], "person", "test")
    await pair.backend.commit("outside", [Put("N7.md", note("Twin"))])
    steps = await pair.pull()
    assert [step for step in steps if step[0] == "left"] == [("left", "n7.md")] and len(steps) == 122
    assert len(pair.mine.files) == 120
    index = await pair.mine.index_file() or ""
    assert index.count("(n8.md)") == 1 and index.count("\n") <= 200


async def test_two_partners_of_one_sandbox(pair: Pair, tmp_path: Path) -> None:
    """A second folder kept in step with the same sandbox does not make it look wiped, and deletions stay deletions."""
    second = MemoryFolder(LocalBackend(tmp_path / "second"))
    await sync(second, pair.other, "test", push=False)
    await pair.mine.apply([Delete("n1.md")], "person", "test")
    assert ("delete", "n1.md") in await pair.push()
    assert await pair.pull() == [] and "n1.md" not in pair.mine.files
    assert ("delete", "n1.md") in [(step.action, step.path) for step in await sync(second, pair.other, "test", push=False)]


async def test_force_lets_the_source_win(pair: Pair) -> None:
    """What both changed is settled by force: the source's version is taken, the other one stays in the target's history."""
    for folder, words in ((pair.mine, "mine\n"), (pair.other, "theirs\n")):
        await pair.put(folder, "n1.md", note("N1", words))
        text = (await folder.index_file() or "").encode()
        edited = text.replace(b"- [N5](n5.md)", f"- [{words.strip()}](n5.md)".encode())
        await folder.apply([Replace("MEMORY.md", edited, etag_of(text), text)], "person", "test")
    assert await pair.pull() == [("left", "MEMORY.md"), ("left", "n1.md")]
    assert [path for _, path in await pair.push(force=True)] == ["MEMORY.md", "n1.md"]
    assert b"mine" in await pair.other.read("n1.md") and "[mine](n5.md)" in (await pair.other.index_file() or "")
    assert await pair.pull() == [] and await pair.push() == []


async def test_a_merge_begins_from_what_both_last_had(pair: Pair) -> None:
    """After a merge, further edits of different lines are merged again, also those made by hand."""
    await pair.put(pair.other, "n1.md", note("N1", "ONE\n\ntwo\n\nthree\n"))
    await pair.put(pair.mine, "n1.md", note("N1", "one\n\ntwo\n\nTHREE\n"))
    await pair.pull()
    await pair.push()
    await pair.backend.commit("outside", [Put("n1.md", note("N1", "ONE!\n\ntwo\n\nTHREE\n"))])
    await pair.pull()
    await pair.backend.commit("outside2", [Put("n1.md", note("N1", "ONE!!\n\ntwo\n\nTHREE\n"))])
    await pair.put(pair.mine, "n1.md", note("N1", "ONE!\n\ntwo\n\nTHREE!\n"))
    assert ("merge", "n1.md") in await pair.pull()
    assert await pair.mine.read("n1.md") == note("N1", "ONE!!\n\ntwo\n\nTHREE!\n")


def test_the_commands(tmp_path: Path) -> None:
    """`mdmemory pull` and `push` say what they did, in a table or as JSON, and exit with 1 when something needs a person."""
    there = tmp_path / "there"
    there.mkdir()
    (there / "a.md").write_bytes(note("A"))
    done = mdmemory("pull", there.as_uri(), "--json", cwd=tmp_path)
    assert done.returncode == 0 and json.loads(done.stdout)[0] == {"path": "a.md", "action": "create", "reason": ""}
    assert (tmp_path / "memory/a.md").read_bytes() == note("A")
    assert mdmemory("pull", there.as_uri(), cwd=tmp_path).stdout == f"Nothing has changed in {there.as_uri()}.\n"
    (there / "a.md").write_bytes(note("A", "x\n"))
    (tmp_path / "memory/a.md").write_bytes(note("A", "y\n"))
    done = mdmemory("push", there.as_uri(), cwd=tmp_path)
    assert done.returncode == 1 and "left" in done.stdout and "the same lines were changed" in done.stdout
