"""The conversations of a folder: added at the end at a cost that does not grow, read from there on, searched by words."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from counting import CountingBackend
from folders import on_disk
from journaling import file_in, looked, said, texts

from mdmemory import Config
from mdmemory.backends.local import LocalBackend
from mdmemory.backends.protocol import Append, Backend, File, FileProblem, Op, Range
from mdmemory.errors import InvalidArguments, InvalidPath, Unavailable, UnsafeFile
from mdmemory.files.journal import entry_bytes, file_of, new_message, parse
from mdmemory.folder.memory_folder import MemoryFolder


class ReadBytes(LocalBackend):
    """Notes which parts of which files are read, and what is appended."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.parts: list[tuple[str, Range | None]] = []
        self.appended: list[Append] = []
        self.brought = 0

    async def read(self, wanted: Mapping[str, Range | None]) -> Mapping[str, File | FileProblem]:
        """Note, and read."""
        self.parts += wanted.items()
        found = await super().read(wanted)
        self.brought += sum(len(file.data) for file in found.values() if isinstance(file, File))
        return found

    async def commit(self, commit_id: str, ops: list[Op]) -> Mapping[str, str]:  # type: ignore[override]  # lists are what it gets
        """Note, and commit."""
        self.appended += [op for op in ops if isinstance(op, Append)]
        return await super().commit(commit_id, ops)


async def test_a_conversation_is_a_file_that_says_what_it_is(tmp_path: Path) -> None:
    """V1: the first message makes the file of its month with frontmatter; it and all later ones come back byte for byte."""
    journals = await looked(on_disk(tmp_path))
    messages = [said("Hello\r\n", "m1"), said("## user · 2026-11-30 10:12:03Z · m1", "m2", "assistant"), said("\ufeff\0", "m3")]
    assert await journals.append("monday", messages[:2], {"user": "ada"}) == ()
    assert await journals.append("monday", messages[2:]) == ()
    place = tmp_path / file_of("monday", messages[0].at)
    data = place.read_bytes()
    assert data.startswith(b"---\nname: Conversation monday\n") and data.count(b"\n---\n") == 1 and b"\nuser: ada\n" in data
    assert list(parse(data).messages) == messages == await (await looked(on_disk(tmp_path))).messages("monday")


async def test_a_message_that_is_there_is_not_written_again(tmp_path: Path) -> None:
    """R2: the same id again leaves the bytes as they are, in this process and the next, however far back the first one is."""
    journals = await looked(on_disk(tmp_path))
    await journals.append("s", [said("first", "s-1"), *(said("x" * 1_000) for _ in range(100))])
    before = file_in(tmp_path, "s").read_bytes()
    assert len(before) > 65_536 + 1_000
    for again in (journals, await looked(on_disk(tmp_path))):
        assert await again.append("s", [said("first", "s-1")]) == ()
        assert file_in(tmp_path, "s").read_bytes() == before


async def test_an_id_that_comes_with_other_words_is_reported(tmp_path: Path) -> None:
    """R2: another message under an id that is taken is not written, and a warning says so; the others are."""
    journals = await looked(on_disk(tmp_path))
    await journals.append("s", [said("first", "s-1")])
    [warning] = await journals.append("s", [said("other", "s-1"), said("second", "s-2")])
    assert "s-1" in warning and texts(await journals.messages("s")) == ["first", "second"]
    assert b"other" not in file_in(tmp_path, "s").read_bytes()


async def test_an_append_reads_nothing_and_what_others_add_is_read_alone(tmp_path: Path) -> None:
    """An append is one commit with one entry; a look after another process's append reads that entry, and an unchanged file not."""
    others = await looked(on_disk(tmp_path))
    await others.append("s", [said("y" * 3_000) for _ in range(100)])
    await asyncio.sleep(0.05)  # older than what a scan takes for too fresh
    backend = ReadBytes(tmp_path)
    folder = MemoryFolder(backend, Config(watch=False))
    journals = await looked(folder)
    await journals.append("s", [said("mine"), said("mine too")])
    assert backend.parts == [] and len(backend.appended) == 1
    assert len(await journals.messages("s")) == 102
    await others.append("s", [said("theirs")])
    await asyncio.sleep(0.05)
    backend.parts.clear()
    backend.brought = 0
    await folder.refresh()
    assert texts(await journals.messages("s"))[-3:] == ["mine", "mine too", "theirs"]
    assert len(backend.parts) == 1 and backend.brought < 1_000
    for _ in range(2):
        await folder.refresh()
        await journals.messages("s")
    assert len(backend.parts) == 1


async def test_a_watched_journal_is_read_only_when_it_changed(tmp_path: Path) -> None:
    """With a watcher, what another process adds is seen without a scan, and nothing is read while nothing is told."""
    others = await looked(on_disk(tmp_path))
    await others.append("s", [said("one")])
    backend = ReadBytes(tmp_path)
    folder = MemoryFolder(backend)
    for _ in range(3):
        await folder.refresh()
    assert texts(await folder.journals.messages("s")) == ["one"]
    await others.append("s", [said("two")])
    await folder.refresh()
    assert texts(await folder.journals.messages("s")) == ["one", "two"]
    backend.parts.clear()
    await folder.refresh()
    assert texts(await folder.journals.messages("s")) == ["one", "two"] and backend.parts == []
    await folder.close()


async def test_a_journal_larger_than_one_read_is_read_in_parts(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Entries that lie across the parts, and one larger than a part, come whole, and nothing is taken for torn."""
    journals = await looked(on_disk(tmp_path))
    messages = [said(f"{n} " + "z" * 700_000, f"m{n}") for n in range(7)] + [said("w" * 9_000_000, "big"), said("last", "last")]
    await journals.append("s", messages)
    again = await looked(on_disk(tmp_path))
    assert await again.messages("s") == messages and caplog.messages == []


async def test_what_was_cut_off_is_passed_over_and_reported(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A torn tail loses its own entry only, is named once in the log, and the next append is whole."""
    journals = await looked(on_disk(tmp_path))
    await journals.append("s", [said("whole", "m1"), said("to be torn", "m2")])
    place = file_in(tmp_path, "s")
    place.write_bytes(place.read_bytes()[:-15])
    journals = await looked(on_disk(tmp_path))
    with caplog.at_level(logging.WARNING, "mdmemory"):
        assert texts(await journals.messages("s")) == ["whole"]
        await journals.append("s", [said("later", "m3"), said("to be torn", "m2")])
        assert texts(await journals.messages("s")) == ["whole", "later", "to be torn"]
    [report] = caplog.messages
    assert "m2" in report and "cut off" in report and str(tmp_path) not in report
    assert texts(await (await looked(on_disk(tmp_path))).messages("s")) == ["whole", "later", "to be torn"]


@pytest.mark.parametrize("blot", ["***", "************"])
@pytest.mark.parametrize("watch", [False, True])
async def test_what_a_person_changes_in_a_journal_is_read_anew(tmp_path: Path, blot: str, watch: bool) -> None:
    """A name blacked out shows at the next look, as long as it was or not; an emptied or deleted file is an empty conversation."""
    folder = on_disk(tmp_path, config=Config(watch=watch))
    journals = await looked(folder)
    await journals.append("s", [said("I am Ada Lovelace"), said("Hello")])
    for _ in range(3):  # from the second look on, the system tells
        await folder.refresh()
        await journals.messages("s")
    place = file_in(tmp_path, "s")
    place.write_bytes(place.read_bytes().replace(b"Ada Lovelace", blot.encode()))
    await folder.refresh()
    assert texts(await journals.messages("s")) == [f"I am {blot}", "Hello"]
    place.write_bytes(b"")
    await folder.refresh()
    assert await journals.messages("s") == []
    place.unlink()
    await folder.refresh()
    assert await journals.messages("s") == [] and journals.sessions == []
    await folder.close()


async def test_a_session_that_began_in_two_months_is_one(tmp_path: Path) -> None:
    """Files of several months with one name are one conversation, and what is new goes to the last."""
    for month, text in (("11", "November"), ("12", "December")):
        place = tmp_path / f"journal/2026/{month}/s.md"
        place.parent.mkdir(parents=True)
        place.write_bytes(entry_bytes(said(text)))
    journals = await looked(on_disk(tmp_path))
    await journals.append("s", [said("later")])
    assert texts(await journals.messages("s")) == ["November", "December", "later"] and journals.sessions == ["s"]
    assert b"later" in (tmp_path / "journal/2026/12/s.md").read_bytes()


async def test_older_messages_are_found_by_their_words(tmp_path: Path) -> None:
    """R3: 10 matches give 5, best first, none of those left out; what is added later is found too, in its own piece."""
    journals = await looked(on_disk(tmp_path))
    await journals.append("s", [said(f"the harbour is number {n}" if n % 10 == 0 else f"nothing {n}", f"m{n}") for n in range(120)])
    found = await journals.search("harbour", leave_out=await journals.window(["s"], 30))
    assert len(found) == 5 and {each.message.id for each in found} <= {f"m{n}" for n in range(0, 90, 10)}
    assert found[0].score == 1.0 or (found[0].score or 0) >= (found[-1].score or 0) > 0
    await journals.append("s", [said("a lighthouse", "new")])
    assert next(each.message.id for each in await journals.search("lighthouse")) == "new"
    assert await journals.search("???") == [] == await journals.search("harbour", limit=0)


async def test_all_conversations_are_read_in_one_round_trip(tmp_path: Path) -> None:
    """The first search of a process reads every conversation at once; one that can't be read is left out and named in the log."""
    journals = await looked(on_disk(tmp_path))
    for n in range(5):
        await journals.append(f"s{n}", [said(f"coffee number {n}")])
    backend = CountingBackend(LocalBackend(tmp_path))
    folder = MemoryFolder(backend, Config(watch=False))
    assert len(await (await looked(folder)).search("coffee")) == 5 and backend.calls == ["scan", "read"]
    assert len(await folder.journals.window(["s1", "s2"], 10)) == 2 and backend.calls == ["scan", "read"]


async def test_a_conversation_that_can_not_be_read_does_not_stop_the_search(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """S4: what is no file any more when it is read is left out, and the log names it; asked for by itself, it is an error."""
    journals = await looked(on_disk(tmp_path))
    for n in range(3):
        await journals.append(f"s{n}", [said("coffee")])
    folder = on_disk(tmp_path, config=Config(watch=False))
    await folder.refresh()
    place = file_in(tmp_path, "s1")
    place.unlink()
    place.mkdir()
    assert {each.session for each in await folder.journals.search("coffee")} == {"s0", "s2"}
    assert any("s1.md" in line for line in caplog.messages) and str(tmp_path) not in "".join(caplog.messages)
    with pytest.raises(UnsafeFile):
        await folder.journals.messages("s1")


async def test_a_search_may_be_narrowed(tmp_path: Path) -> None:
    """G3, S3: of 60 matches in one conversation and one in another, the filter gives exactly that one; days filter as well."""
    journals = await looked(on_disk(tmp_path))
    await journals.append("a", [said("coffee") for _ in range(60)])
    await journals.append("b", [said("coffee, too")])
    [found] = await journals.search("coffee", sessions="b")
    assert (found.session, found.message.text) == ("b", "coffee, too")
    today = f"{said('x').at:%Y-%m-%d}"
    assert len(await journals.search("coffee", limit=70, after=today, before=today)) == 61
    assert await journals.search("coffee", before="2020") == [] == await journals.search("coffee", sessions=["c"])
    for wrong in ({"session": "b"}, {"after": "yesterday"}):
        with pytest.raises(InvalidArguments):
            await journals.search("coffee", **wrong)  # type: ignore[arg-type]  # a filter that there is not


async def test_a_window_begins_with_no_answer_without_its_call(tmp_path: Path) -> None:
    """C8: an answer of a tool whose call is further back is left out; one after its call stays, in both forms."""
    journals = await looked(on_disk(tmp_path))
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "4"}
    trace = [
        said("How many?", "m1"),
        new_message({"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "type": "function"}]}, "m2"),
        new_message({"role": "tool", "tool_call_id": "c1", "content": "3"}, "m3"),
        new_message({"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Count", "input": {}}]}, "m4"),
        new_message({"role": "user", "content": [result]}, "m5"),
        said("Four.", "m6", "assistant"),
    ]
    await journals.append("s", trace)
    for k, first in ((6, "m1"), (5, "m2"), (4, "m4"), (3, "m4"), (2, "m6"), (1, "m6")):
        assert (await journals.window(["s"], k))[0].message.id == first
    assert await journals.window(["s"], 0) == []


async def test_what_can_not_be_written_raises_and_says_why(tmp_path: Path) -> None:
    """An unusable name, a link in the way and a folder never looked at are errors that show no host path; nothing is written."""
    folder = on_disk(tmp_path)
    with pytest.raises(Unavailable, match="not been looked at"):
        await folder.journals.append("s", [said("x")])
    journals = await looked(folder)
    with pytest.raises(InvalidPath, match="bytes"):
        await journals.append("x" * 300, [said("x")])
    (tmp_path / "journal").symlink_to(tmp_path.parent)
    with pytest.raises(UnsafeFile) as caught:
        await journals.append("s", [said("x")])
    assert str(tmp_path) not in str(caught.value)


@pytest.mark.parametrize("make", [LocalBackend, lambda root: CountingBackend(LocalBackend(root))], ids=["local", "wrapped"])
async def test_a_name_that_no_file_may_have_is_written_otherwise(make: Any, tmp_path: Path) -> None:
    """A session's id with slashes, dots or colons makes one plain file, and is found by its id again."""
    backend: Backend = make(tmp_path)
    journals = await looked(MemoryFolder(backend))
    for session in ("../../etc/passwd", ".hidden", "-rf", "user:ada/2026", "大明", "%41"):
        await journals.append(session, [said(session)])
    again = await looked(on_disk(tmp_path))
    assert sorted(again.sessions) == sorted(["../../etc/passwd", ".hidden", "-rf", "user:ada/2026", "大明", "%41"])
    for session in again.sessions:
        assert texts(await again.messages(session)) == [session]
    assert {path.parent.parent.parent.name for path in tmp_path.rglob("*.md")} == {"journal"}
