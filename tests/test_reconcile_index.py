"""MEMORY.md and the conversations of two folders that are kept together."""

from __future__ import annotations

import asyncio

import pytest
from reconciling import Two, contents, delete, edit, keep, note, same, synced_folders

from mdmemory.backends.memory import MemoryBackend
from mdmemory.care.reconcile.journals import meet
from mdmemory.files.journal import Message, entry_bytes, new_message, opening, parse
from mdmemory.folder.known import INDEX
from mdmemory.folder.memory_folder import MemoryFolder

__all__ = ["synced_folders"]
LINES = "# Mine\n\nRead this first.\n"
PATH = "journal/2026/11/talk.md"


async def index(folder: MemoryFolder) -> str:
    """The text of MEMORY.md."""
    await folder.refresh()
    return await folder.index_file() or ""


async def write(folder: MemoryFolder, old: str, new: str) -> None:
    """Change a text of the index as an editor does."""
    text = await index(folder)
    assert old in text
    await edit(folder, INDEX, text.replace(old, new, 1).encode())


async def test_peoples_lines_travel_and_ours_are_each_sides_own(two: Two) -> None:
    """Lines that people wrote on both sides are on both; files that came are listed; nothing is written twice."""
    await write(two.here, "", LINES)
    await write(two.there, "- [N0]", "## There\n- [N0]")
    await keep(two.here, "new.md", note("New"))
    await two.sync()
    for folder in (two.here, two.there):
        lines = (await index(folder)).splitlines()
        assert {"# Mine", "Read this first.", "## There"} <= set(lines) and lines.count("- [New](new.md) — about New") == 1
        assert len(lines) == len(set(lines)) + (lines.count("") - 1)
    await same(two)
    await write(two.there, "Read this first.", "Read this at last.")
    assert await two.sync() == [("merge", "here", INDEX)]
    assert "at last" in await index(two.here) and "first" not in await index(two.here)
    await write(two.here, "## There\n", "")
    assert await two.sync() == [("merge", "there", INDEX)]
    assert "## There" not in await index(two.there)


async def test_a_pointer_in_a_persons_words_travels(two: Two) -> None:
    """A line that someone worded anew is so on both sides, and goes with its file."""
    await write(two.here, "- [N5](n5.md) — about N5", "- [the fifth](n5.md), read it")
    await two.sync()
    assert "- [the fifth](n5.md), read it" in await index(two.there) and "about N5" not in await index(two.there)
    await same(two)
    await delete(two.there, "n5.md")
    await two.sync()
    assert "n5.md" not in await index(two.here) + await index(two.there)
    await same(two)


async def test_both_changed_the_same_line_of_the_index(two: Two) -> None:
    """Both lines are kept, and it is said."""
    await write(two.here, "", "# Title\n")
    await two.sync()
    await write(two.here, "# Title", "# My title")
    await write(two.there, "# Title", "# Their title")
    done = await two.synced()
    assert [step.reason for step in done.steps] == ["both changed the same lines: both are kept"] * 2
    for folder in (two.here, two.there):
        assert {"# My title", "# Their title"} <= set((await index(folder)).splitlines())
    await same(two)


async def test_an_index_that_went_is_made_again(two: Two) -> None:
    """Where MEMORY.md was deleted, people's lines are not taken for deleted: they come back from the other side."""
    await write(two.here, "", LINES)
    await two.sync()
    await edit(two.there, INDEX, None)
    await two.sync()
    for folder in (two.here, two.there):
        assert "Read this first." in await index(folder) and (await index(folder)).count("(n") == 12
    await same(two)


async def test_a_header_that_an_editor_changed_is_no_line_of_a_person(two: Two) -> None:
    """The index line of before, which is out of date until the next save, does not travel as if someone had written it."""
    await edit(two.here, "n1.md", note("N1").replace(b"about N1", b"about another"))
    await two.sync()
    for folder in (two.here, two.there):
        assert (await index(folder)).count("n1.md") == 1 and "about another" in await index(folder)
    await same(two)


async def test_a_full_index_stays_within_its_limits() -> None:
    """With more files than lines both sides keep to the limit, and neither takes the other's for a person's."""
    two = Two(MemoryBackend(), MemoryBackend())
    for number in range(250):
        await edit(two.here if number % 2 else two.there, f"n{number}.md", note(f"N{number}"))
    await two.sync()
    for folder in (two.here, two.there):
        assert (await index(folder)).count("\n") <= 200
    await same(two)


def message(id: str, text: str) -> Message:
    """A message of a conversation."""
    return new_message({"role": "user", "content": text}, id)


FIRST = message("1", "first")
HEAD = opening("talk", FIRST) + entry_bytes(FIRST)
TWO, THREE, FOUR = (entry_bytes(message(id, id)) for id in ("two", "three", "four"))


def ids(data: bytes) -> list[str]:
    """The ids of the messages, in order."""
    return [each.id for each in parse(data).messages]


@pytest.fixture
async def talks() -> Two:
    """Two folders with the same conversation."""
    two = Two(MemoryBackend(), MemoryBackend())
    await edit(two.here, PATH, HEAD)
    assert await two.sync() == [("create", "there", PATH)]
    return two


async def both(two: Two) -> tuple[bytes, bytes]:
    """The conversation here and there."""
    return await two.here.read(PATH), await two.there.read(PATH)


async def test_the_longer_conversation_wins(talks: Two) -> None:
    """What is said on one side goes to the other byte for byte; then nothing is read until something is said."""
    await edit(talks.there, PATH, HEAD + TWO + THREE)
    assert await talks.sync() == [("append", "here", PATH)]
    assert await both(talks) == (HEAD + TWO + THREE, HEAD + TWO + THREE)
    assert await talks.sync() == []
    assert PATH not in [*talks.backends[0].paths, *talks.backends[1].paths]


async def test_a_conversation_that_both_went_on_with(talks: Two) -> None:
    """Both have all messages, each once, and nothing more is done."""
    await edit(talks.here, PATH, HEAD + TWO)
    await edit(talks.there, PATH, HEAD + THREE)
    assert await talks.sync() == [("append", "here", PATH), ("append", "there", PATH)]
    assert [ids(data) for data in await both(talks)] == [["1", "two", "three"], ["1", "three", "two"]]
    assert await talks.sync() == []
    await edit(talks.here, PATH, (await both(talks))[0] + FOUR)
    assert await talks.sync() == [("append", "there", PATH)]
    assert ids((await both(talks))[1]) == ["1", "three", "two", "four"]


async def test_what_a_person_took_out_stays_out(talks: Two) -> None:
    """Messages that one side deleted do not come back; a deleted conversation neither, until it is gone on with."""
    await edit(talks.there, PATH, HEAD + TWO + THREE)
    await talks.sync()
    await edit(talks.here, PATH, HEAD + THREE)
    assert await talks.sync() == [] and (await both(talks))[0] == HEAD + THREE
    await edit(talks.here, PATH, None)
    done = await talks.synced()
    assert [step.action for step in done.steps] == ["left"] and "stays deleted" in done.steps[0].reason
    assert await talks.sync() == [] and await talks.there.read(PATH) == HEAD + TWO + THREE
    await edit(talks.there, PATH, HEAD + TWO + THREE + FOUR)
    assert await talks.sync() == [("create", "here", PATH)]


@pytest.mark.parametrize("kept", [HEAD, HEAD + THREE, HEAD + TWO], ids=["both", "the first", "the last"])
async def test_what_was_taken_out_does_not_come_with_what_is_said_later(talks: Two, kept: bytes) -> None:
    """Where one side deleted messages and the other goes on, only the new ones come, the other way round too."""
    for one, other in ((talks.here, talks.there), (talks.there, talks.here)):
        await edit(one, PATH, HEAD + TWO + THREE)
        await edit(other, PATH, HEAD + TWO + THREE)
        await talks.sync()
        await edit(one, PATH, kept)
        await edit(other, PATH, HEAD + TWO + THREE + FOUR)
        assert [step[0] for step in await talks.sync()] == ["append"]
        assert await one.read(PATH) == kept + FOUR and await other.read(PATH) == HEAD + TWO + THREE + FOUR
        assert await talks.sync() == []


async def test_a_folder_of_conversations_alone_that_was_wiped(talks: Two) -> None:
    """A folder that lost its marker was made anew, and gets its conversations again, though no file tells of it."""
    talks = Two(talks.backends[0].inner, MemoryBackend())
    done = await talks.synced()
    assert [(step.action, step.side) for step in done.steps] == [("create", "there")] and "made anew" in done.notes[0]
    assert await both(talks) == (HEAD, HEAD) and await talks.sync() == []


async def test_half_an_entry_waits_for_its_end(talks: Two) -> None:
    """An entry that is being written is brought when it is whole."""
    await edit(talks.there, PATH, HEAD + TWO + THREE[:20])
    assert await talks.sync() == [("append", "here", PATH)]
    assert ids((await both(talks))[0]) == ["1", "two"]
    await edit(talks.there, PATH, HEAD + TWO + THREE)
    await talks.sync()
    assert ids((await both(talks))[0]) == ["1", "two", "three"]


async def test_conversations_of_two_hosts_meet() -> None:
    """Sessions that were held on two sides are both on both, and can be gone on with."""
    two = Two(MemoryBackend(), MemoryBackend())
    for folder, session in ((two.here, "home"), (two.there, "host")):
        await folder.refresh()
        await folder.journals.append(session, [message("a", session)])
    await two.sync()
    for folder in (two.here, two.there):
        await folder.refresh()
        assert sorted(folder.journals.sessions) == ["home", "host"]
    await two.here.journals.append("host", [message("b", "and on")])
    assert [step[0] for step in await two.sync()] == ["append"]
    assert [each.id for each in await two.there.journals.messages("host")] == ["a", "b"]
    assert await two.sync() == [] and await contents(two.here) == {}


def test_a_large_conversation_goes_in_parts() -> None:
    """A file of more than a write may hold is begun with whole entries, and the rest is added."""
    data = HEAD + b"".join(entry_bytes(message(str(number), "word " * 2000)) for number in range(2, 900))
    first, *rest = meet(PATH, None, None, data).here
    assert len(data) > 8_000_000 and len(first.data) < 5_000_000 and first.data + b"".join(op.data for op in rest) == data
    assert parse(first.data).torn == ()


async def test_two_syncs_at_once_say_nothing_twice(talks: Two) -> None:
    """Two syncs of one pair that run at once leave each message once on each side."""
    second = Two(talks.backends[0].inner, talks.backends[1].inner)
    await edit(talks.here, PATH, HEAD + TWO)
    await edit(talks.there, PATH, HEAD + THREE)
    await asyncio.gather(talks.sync(), second.sync())
    await talks.sync()
    assert [sorted(ids(data)) for data in await both(talks)] == [["1", "three", "two"]] * 2
    assert all(data.count(b"<!-- end two ") == 1 for data in await both(talks))
