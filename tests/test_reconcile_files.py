"""Two folders kept together: exact bytes, what can't be on the other side, and how many calls it takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import mdmemory, write
from local_shell import KINDS, LocalShell
from reconciling import Two, contents, edit, keep, note, rename, same, synced_folders

from mdmemory.backends.local import LocalBackend
from mdmemory.backends.memory import MemoryBackend
from mdmemory.backends.shell import ShellBackend
from mdmemory.care.reconcile import Pair, reconcile
from mdmemory.care.reconcile.state import place_of
from mdmemory.errors import InvalidArguments
from mdmemory.files.journal import entry_bytes, new_message, opening
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.mounted_folder import MountedFolder
from mdmemory.folder.mounts import Mount, Part
from mdmemory.folder.permissions import allow_all
from mdmemory.folder.purge import purge

FIRST = new_message({"role": "user", "content": "The key is hunter2-hunter2."})
TALK = "journal/2026/11/talk.md"
BROKEN = b"---\nname: a\nname: b\n---\n"
ODD = {
    "bom.md": b"\xef\xbb\xbf" + note("BOM"),
    "crlf.md": note("CRLF").replace(b"\n", b"\r\n"),
    "broken.md": BROKEN,
    "plain.md": b"no frontmatter, no final newline",
    "empty.md": b"",
    "sub/deep/Käse.md": note("Umlaut", "你好\r\nmixed\n"),
}


__all__ = ["synced_folders"]


async def test_nothing_changed_is_one_look_at_each_side(two: Two) -> None:
    """A sync of which nothing comes scans both once, and reads what it noted the last time and no other file."""
    await two.sync()
    assert await two.sync() == []
    here, there = two.backends
    assert (here.calls, here.paths) == (["read", "scan"], [place_of("other")]) and there.calls == ["scan"]


async def test_many_changes_are_few_round_trips(two: Two) -> None:
    """Two hundred changed files take as many calls as two do, but for a look at those that were there."""
    counts = []
    for number in (1, 100):
        for file in range(number):
            await keep(two.here, f"more{file}.md", note(f"More{file}", f"{number}\n"))
            await keep(two.there, f"others{file}.md", note(f"Others{file}", f"{number}\n"))
        assert len(await two.sync()) == 2 * number
        counts.append([len(backend.calls) for backend in two.backends])
    assert sum(counts[1]) <= sum(counts[0]) + 2 and sum(counts[0]) <= 16
    await same(two)


async def test_bytes_are_exact_both_ways(tmp_path: Path) -> None:
    """Byte order mark, CRLF, broken frontmatter, plain and empty files travel as they are, and changes to them too."""
    two = Two(LocalBackend(tmp_path / "here"), MemoryBackend())
    for number, (path, data) in enumerate(ODD.items()):
        await edit(two.here if number % 2 else two.there, path, data)
    assert sorted(step[0] for step in await two.sync()) == ["create"] * len(ODD)
    assert await contents(two.there) == ODD
    await same(two)
    for number, (path, data) in enumerate(ODD.items()):
        await edit(two.there if number % 2 else two.here, path, data + b"more\r\n")
    await two.sync()
    assert await contents(two.here) == {path: data + b"more\r\n" for path, data in ODD.items()}
    await same(two)
    await two.close()


async def test_what_can_not_be_on_the_other_side_is_left_and_said(tmp_path: Path) -> None:
    """Twins by name, what is no UTF-8, what is too large, links and pictures stop nothing else, and are said."""
    two = Two(LocalBackend(tmp_path / "here"), MemoryBackend())
    root = tmp_path / "here"
    await keep(two.here, "good.md", note("Good"))
    await keep(two.there, "Readme.md", note("Readme"))
    for path, data in {"readme.md": b"x", "latin.md": b"\xe4\xf6", "big.md": b"x" * 5_300_000, "p.png": b"p"}.items():
        (root / path).write_bytes(data)
    (root / "a-b.md").write_bytes(b"one")
    (root / "a b.md").write_bytes(b"two")
    (root / "link.md").symlink_to("good.md")
    done = await two.synced()
    found = {step.path: (step.action, step.reason) for step in done.steps}
    assert found["good.md"][0] == "create" and found["a b.md"][0] == "create"
    assert {path for path, (action, _) in found.items() if action == "left"} == {
        "a-b.md", "readme.md", "Readme.md", "latin.md", "big.md"}  # fmt: skip
    assert "UTF-8" in found["latin.md"][1] and "5 MiB" in found["big.md"][1] and "taken for" in found["a-b.md"][1]
    assert done.notes and "link.md, p.png" in done.notes[0] and done.needs_person
    assert (await two.synced()).notes == ()
    await two.close()


async def test_a_file_where_the_other_side_has_a_folder(tmp_path: Path) -> None:
    """Neither is written over the other, both are said, the rest goes on, and it is not tried twice in one sync."""
    two = Two(LocalBackend(tmp_path / "here"), MemoryBackend())
    await keep(two.here, "a.md", note("A"))
    await keep(two.there, "a.md/b.md", note("B"))
    await keep(two.there, "c.md", note("C"))
    assert await two.sync() == [("left", "there", "a.md"), ("left", "here", "a.md/b.md"), ("create", "here", "c.md")]
    assert [step[0] for step in await two.sync()] == ["left", "left"]
    assert two.backends[0].calls.count("commit") == 2  # as it was looked at, and as it is
    await two.close()


async def test_what_can_not_be_looked_at_is_not_deleted(tmp_path: Path) -> None:
    """D1: a file or folder that became a link is left on the other side."""
    two = Two(LocalBackend(tmp_path / "here"), MemoryBackend())
    for path in ("a.md", "b/c.md", "d.md"):
        await keep(two.here, path, note(path))
    await two.sync()
    (tmp_path / "here/a.md").unlink()
    (tmp_path / "here/a.md").symlink_to("d.md")
    (tmp_path / "here/b").rename(tmp_path / "elsewhere")
    (tmp_path / "here/b").symlink_to(tmp_path / "elsewhere")
    assert [step[0] for step in await two.sync()] == ["left", "left"]
    assert len(two.there.files) == 3
    await two.close()


async def test_a_thousand_files_in_bounded_commits(tmp_path: Path) -> None:
    """A first sync of a thousand files writes two hundred at once."""
    two = Two(LocalBackend(tmp_path / "here"), MemoryBackend())
    (tmp_path / "here").mkdir()
    for number in range(1000):
        (tmp_path / f"here/n{number:04}.md").write_bytes(note(f"N{number}"))
    assert len(await two.sync()) == 1000
    assert two.backends[1].calls.count("commit") <= 8 and len(two.backends[0].calls) <= 24
    await same(two)
    await two.close()


async def test_large_files_are_read_once(tmp_path: Path) -> None:
    """A file of which a look does not tell the etag is read when it changed, and not again."""
    two = Two(MemoryBackend(), MemoryBackend())
    await keep(two.here, "large.md", note("Large", "word \n" * 60_000))
    assert await two.sync() == [("create", "there", "large.md")]
    await two.sync()
    fresh = Two(two.backends[0].inner, two.backends[1].inner)
    assert await fresh.sync() == []
    assert (
        fresh.backends[0].paths.count("large.md") == fresh.backends[1].paths.count("large.md") == 1
    )  # its first 256 KB, for recall
    await edit(two.there, "large.md", note("Large", "word \n" * 59_999 + "other\n"))
    assert await fresh.sync() == [("update", "here", "large.md")]
    await same(fresh)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_sandbox_reached_by_a_shell(kind: str, tmp_path: Path) -> None:
    """A folder behind a shell, as one in a sandbox is, is kept together with one on the disk, in a few calls."""
    shell = LocalShell(kind, tmp_path)
    two = Two(LocalBackend(tmp_path / "here"), ShellBackend(shell, str(tmp_path / "there")))
    for number, (path, data) in enumerate(ODD.items()):
        await edit(two.here if number % 2 else two.there, path, data)
    assert sorted(step[0] for step in await two.sync()) == ["create"] * len(ODD)
    assert await contents(two.there) == ODD
    await same(two)
    await edit(two.there, "plain.md", None)
    await rename(two.here, "crlf.md", "moved/crlf.md")
    assert await two.sync() == [("rename", "there", "moved/crlf.md"), ("delete", "here", "plain.md")]
    await same(two)
    await two.close()


async def test_what_was_purged_is_not_brought_back(tmp_path: Path) -> None:
    """A text that was purged at home goes from the other side's file too, also where that was edited meanwhile, and stays away."""
    two = Two(LocalBackend(tmp_path / "here"), MemoryBackend())
    secret = "hunter2-hunter2"
    talk = opening("talk", FIRST) + entry_bytes(FIRST)
    await keep(two.here, "a.md", note("A", f"one\n\nthe key is {secret}\n\nthree\n"))
    await edit(two.there, TALK, talk)
    await two.sync()
    await keep(two.there, "a.md", note("A", f"one\n\nthe key is {secret}\n\nTHREE\n"))
    await purge(two.here, text=secret, journal=True)
    await two.sync()
    assert await two.there.read("a.md") == note("A", "one\n\nthe key is (purged)\n\nTHREE\n")
    await edit(two.there, TALK, talk + entry_bytes(new_message({"role": "user", "content": "And on."})))
    assert await two.sync() == [("append", "here", TALK)]
    assert secret.encode() not in await two.here.read(TALK) and b"And on." in await two.here.read(TALK)
    assert not [path for path in (tmp_path / "here").rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    await two.close()


async def test_folders_with_mounts_are_refused() -> None:
    """A memory of several folders is not synced as one, and the message says what to name."""
    home = MountedFolder({"": Part(Mount("memory://"), MemoryFolder(MemoryBackend()))}, allow_all)
    with pytest.raises(InvalidArguments, match="Name the folder itself"):
        await reconcile(Pair(home, MemoryFolder(MemoryBackend()), "other", "mine"))


@pytest.mark.parametrize(
    "location",
    [
        "home",
        "home/",
        "home/sub",
        "file://{0}/home",
        "file://localhost{0}/home/sub",
        "file://{0}/%68ome/sub",
        "file://{0}/link/sub",
    ],
)
def test_a_folder_and_itself(location: str, tmp_path: Path) -> None:
    """A folder is not kept together with itself or with a part of itself, which would never end."""
    write(tmp_path / "home/sub/a.md", note("A"))
    (tmp_path / "link").symlink_to("home")
    done = mdmemory("sync", "home", location.format(tmp_path), cwd=tmp_path)
    assert done.returncode == 2 and "the same folder" in done.stderr and not (tmp_path / "home/.mdmemory").exists()


def test_what_went_wrong_is_said(tmp_path: Path) -> None:
    """Something that a person must see to is exit code 1, and what can't be meant is 2."""
    write(tmp_path / "a/x.md", note("X", "here\n"))
    write(tmp_path / "b/x.md", note("X", "there\n"))
    done = mdmemory("sync", "a", "b", "--json", cwd=tmp_path)
    assert done.returncode == 1 and [step["action"] for step in json.loads(done.stdout)["steps"]] == ["conflict"]
    assert mdmemory("sync", "a", "b", cwd=tmp_path).stdout == "Nothing has changed here or in b.\n"
    assert mdmemory("sync", "a", "b", "--watch", "--dry-run", cwd=tmp_path).returncode == 2
    assert mdmemory("sync", "a/x.md", "b", cwd=tmp_path).returncode == 1
