"""Two folders kept together: what each changed is on both, nothing that anyone wrote is lost, and what is wrong is said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from reconciling import TEXT, Two, contents, delete, edit, keep, note, rename, same, synced_folders

from mdmemory.backends.memory import MemoryBackend
from mdmemory.backends.protocol import File
from mdmemory.care import history
from mdmemory.care.doctor.names import original_of
from mdmemory.care.reconcile.state import MARKER, place_of, read_state
from mdmemory.errors import PermissionDenied
from mdmemory.files.history import TOMBSTONES, read_tombstones

__all__ = ["synced_folders"]


async def test_a_first_sync_brings_everything_to_both(two: Two) -> None:
    """Both have all files, byte for byte, and an index of them; the next sync has nothing to do."""
    await same(two)
    assert await two.here.read("n4.md") == note("N4") and await two.there.read("n5.md") == note("N5")
    for folder in (two.here, two.there):
        assert (await folder.index_file() or "").count("(n") == 12


async def test_changes_travel_both_ways(two: Two) -> None:
    """What either side made, changed or deleted is so on both; the history of each says who brought it, and can take it back."""
    await keep(two.here, "n1.md", note("N1", "from home\n"))
    await edit(two.here, "n2.md", note("N2", "from an editor\n"))
    await keep(two.there, "n3.md", note("N3", "from an agent\n"))
    await delete(two.here, "n4.md")
    await edit(two.there, "n5.md", None)
    await keep(two.there, "new.md", note("New"))
    assert await two.sync() == [
        ("update", "there", "n1.md"),
        ("update", "there", "n2.md"),
        ("update", "here", "n3.md"),
        ("delete", "there", "n4.md"),
        ("delete", "here", "n5.md"),
        ("create", "here", "new.md"),
    ]
    await same(two)
    event = (await history.events(two.there, limit=1))[0]
    assert (event.author, event.reason) == ("sync", "sync with mine")
    await history.undo(two.there, event)
    assert await two.there.read("n4.md") == note("N4") and await two.there.read("n1.md") == note("N1")


async def test_edits_of_different_lines_are_merged(two: Two) -> None:
    """Both sides' lines are in the file on both sides, also after several rounds, by hand or not."""
    for word in ("ONE", "UNO", "EIN"):
        await edit(two.here, "n1.md", note("N1", TEXT.replace("one", word)))
        await keep(two.there, "n1.md", note("N1", TEXT.replace("three", word)))
        assert await two.sync() == [("merge", "both", "n1.md")]
        assert await two.here.read("n1.md") == note("N1", f"{word}\n\ntwo\n\n{word}\n")
        await same(two)
        await edit(two.there, "n1.md", note("N1"))
        await two.sync()


async def test_the_same_lines_are_both_kept(two: Two) -> None:
    """The local text stays, the other one is beside it on both sides, under a name that the doctor knows, and it is said."""
    await keep(two.here, "n1.md", note("N1", "mine\n"))
    await keep(two.there, "n1.md", note("N1", "theirs\n"))
    done = await two.synced()
    (step,) = done.steps
    assert (step.action, step.path) == ("conflict", "n1.md") and done.needs_person
    (copy,) = (path for path in two.here.files if original_of(path) == "n1.md")
    assert copy in step.reason
    for folder in (two.here, two.there):
        assert await folder.read("n1.md") == note("N1", "mine\n") and await folder.read(copy) == note("N1", "theirs\n")
    await same(two)


async def test_a_merge_that_would_break_the_frontmatter_keeps_both(two: Two) -> None:
    """Where each side adds the same field in another place, the merged lines can't be read: so both texts are kept."""
    data = b"---\nname: N1\ndescription: about N1\ntype: project\n---\n\none\n"
    await edit(two.here, "n1.md", data.replace(b"name: N1\n", b"name: N1\ntags: [a]\n"))
    await edit(two.there, "n1.md", data.replace(b"type: project\n", b"type: project\ntags: [b]\n"))
    assert [step[0] for step in await two.sync()] == ["conflict"]
    await same(two)


async def test_a_change_wins_over_a_deletion(two: Two) -> None:
    """What one side deleted and the other changed is back on both, and it is said."""
    await delete(two.here, "n1.md")
    await keep(two.there, "n1.md", note("N1", "still needed\n"))
    await delete(two.there, "n2.md")
    await keep(two.here, "n2.md", note("N2", "still needed\n"))
    done = await two.synced()
    assert [(step.path, step.side, step.reason[:7]) for step in done.steps] == [
        ("n1.md", "here", "deleted"),
        ("n2.md", "there", "deleted"),
    ]
    await same(two)
    found = await two.here.read_many(["n1.md"]), (await two.here.backend.read({TOMBSTONES: None}))[TOMBSTONES]
    assert isinstance(found[1], File) and "n1.md" not in read_tombstones(found[1].data).paths


async def test_renames_follow_as_renames(two: Two) -> None:
    """A file that was renamed keeps its history on the other side, and what was changed there meanwhile; folders too."""
    await rename(two.here, "n1.md", "people/ann.md")
    await keep(two.there, "n1.md", note("N1", "changed meanwhile\n"))
    await edit(two.there, "n2.md", None)
    await edit(two.there, "moved/n2.md", note("N2"))
    assert await two.sync() == [
        ("rename", "here", "moved/n2.md"),
        ("update", "here", "people/ann.md"),
        ("rename", "there", "people/ann.md"),
    ]
    await same(two)
    assert await two.here.read("people/ann.md") == note("N1", "changed meanwhile\n")
    files = [file for event in await history.events(two.here) for file in event.files if file.path == "moved/n2.md"]
    assert files and files[0].moved_from == "n2.md"


async def test_a_lost_state_deletes_nothing(two: Two) -> None:
    """Without what was noted, or with what is damaged, equal files are equal, different ones are both kept, and nothing goes."""
    for damage in (None, b"{", b'{"id": 3}'):
        await edit(two.here, place_of("other"), damage)
        await edit(two.here, "n1.md", note("N1", f"mine {damage!r}\n"))
        await edit(two.there, "n2.md", None)
        done = [step for step in await two.sync() if step[0] != "left"]
        assert [step[0] for step in done] == ["conflict", "create"]
        assert len([path for path in two.there.files if original_of(path) is None]) == 12
        await same(two)


async def test_what_was_forgotten_does_not_come_back(two: Two) -> None:
    """A deleted file that the other side still has, though nothing is known of a last sync, is left there and said."""
    await delete(two.here, "n1.md")
    await edit(two.here, place_of("other"), None)
    assert await two.sync() == [("left", "here", "n1.md")]
    assert "n1.md" not in two.here.files
    await edit(two.there, "n1.md", note("N1", "said anew\n"))
    assert await two.sync() == [("create", "here", "n1.md")]
    await same(two)


async def test_a_first_sync_that_was_cut_short(two: Two) -> None:
    """What a side had forgotten stays away from it also when the first sync ended in its middle."""
    await delete(two.here, "n1.md")
    state, _ = await read_state(two.here, place_of("other"))
    begun = replace(state, etags={"n0.md": state.etags["n0.md"]}, is_whole=False)
    await edit(two.here, place_of("other"), begun.as_bytes())
    assert await two.sync() == [("left", "here", "n1.md")]
    assert await two.sync() == [("left", "here", "n1.md")] and "n1.md" not in two.here.files
    await delete(two.there, "n1.md")
    await same(two)


async def test_many_deletions_need_a_word(two: Two) -> None:
    """More than ten deletions, or a fifth, are refused, nothing else is done, and the number that allows them is told."""
    for number in range(40):
        await keep(two.here, f"more{number}.md", note(f"More{number}"))
    await two.sync()
    await delete(two.there, *(f"more{number}.md" for number in range(11)))
    await keep(two.here, "new.md", note("New"))
    await rename(two.here, "n0.md", "moved.md")
    for options in ({}, {"dry_run": True}, {"max_deletions": 10}):
        with pytest.raises(PermissionDenied, match=r"11 of 52 files would be deleted.*max-deletions 11"):
            await two.sync(**options)
    assert "more0.md" in two.here.files and not {"new.md", "moved.md"} & two.there.files.keys()
    assert len(await two.sync(max_deletions=11)) == 13
    await same(two)


async def test_an_empty_side_empties_nothing(two: Two) -> None:
    """All files of a side gone is asked about, however few they are; one made anew is filled again."""
    await delete(two.there, *two.there.files)
    with pytest.raises(PermissionDenied, match=r"12 of 12 files would be deleted\. One of the two folders is empty"):
        await two.sync()
    fresh = Two(two.backends[0], MemoryBackend())
    done = await fresh.synced()
    assert [step.action for step in done.steps] == ["create"] * 12 and "wiped or made anew" in done.notes[0]
    await same(fresh)


async def test_an_unmounted_home_is_filled_again(two: Two) -> None:
    """A home that lost all, with what was noted in it, is filled from the other side, which loses nothing."""
    fresh = Two(MemoryBackend(), two.backends[1])
    assert [step[0] for step in await fresh.sync()] == ["create"] * 12
    await same(fresh)


async def test_a_dry_run_writes_nothing(two: Two) -> None:
    """What would be done is said, with differences if wanted, and no side is written to."""
    await keep(two.here, "n1.md", note("N1", "mine\n"))
    await keep(two.there, "n1.md", note("N1", "theirs\n"))
    await delete(two.there, "n2.md")
    await keep(two.here, "n3.md", note("N3", "THREE\n"))
    before = await contents(two.here), await contents(two.there)
    planned = await two.synced(dry_run=True)
    shown = await two.synced(diff=True)
    assert all("commit" not in backend.calls for backend in two.backends)
    assert (await contents(two.here), await contents(two.there)) == before
    assert planned.steps == shown.steps and "+THREE" in {line for step in shown.steps for line in step.diff.split("\n")}
    done = await two.synced()
    assert done.steps == planned.steps


async def test_a_dry_run_tells_what_comes_with_a_rename(two: Two) -> None:
    """What the other side changed in a file that was renamed here is told, and shown, before anything is written."""
    await rename(two.here, "n1.md", "new.md")
    await keep(two.there, "n1.md", note("N1", TEXT.replace("one", "ONE")))
    await rename(two.there, "n2.md", "sub/n2.md")
    await edit(two.here, "n2.md", note("N2", "mine\n"))
    would = [(step.action, step.side, step.path) for step in (await two.synced(dry_run=True)).steps]
    shown = {(step.action, step.path): step.diff for step in (await two.synced(diff=True)).steps}
    assert "+ONE" in shown["update", "new.md"] and "+mine" in shown["update", "sub/n2.md"]
    assert would == await two.sync() and ("update", "here", "new.md") in would and ("update", "there", "sub/n2.md") in would
    await same(two)


async def test_two_homes_of_one_folder(two: Two) -> None:
    """Two people's folders that are kept together with one end up the same, each by its own state."""
    second = Two(MemoryBackend(), two.backends[1].inner)
    await second.sync()
    await keep(two.here, "n1.md", note("N1", "from the first\n"))
    await delete(second.here, "n2.md")
    for each in (two, second, two, second):
        await each.sync()
    assert await contents(two.here) == await contents(second.here)
    assert (await two.here.read("n1.md")).endswith(b"from the first\n") and "n2.md" not in two.here.files
    found = await two.there.backend.read(
        {MARKER + (await read_state(each.here, place_of("other")))[0].id: None for each in (two, second)}
    )
    assert all(isinstance(file, File) for file in found.values())
