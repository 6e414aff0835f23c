"""What is no longer valid: kept, shown to people and to whoever asks, and not brought up by itself."""

from __future__ import annotations

from pathlib import Path

from command import mdmemory
from folders import index_of, memory
from test_filters import job

from mdmemory import Memory, Replace, ScriptedModel, open_memory
from mdmemory.agent.selector import shortlist
from mdmemory.backends.protocol import etag_of
from mdmemory.recall.filters import outdated

FILES = {
    "job/acme.md": memory("Acme", "employer of the user", body="Works at Acme.", valid_until="2024-12"),
    "job/beta.md": memory("Beta", "employer of the user", body="Works at Beta.", valid_from="2025-01-15"),
    "home/old.md": memory("Old home", "city of the user", body="Lives in Rostock."),
    "home/new.md": memory("New home", "city of the user", body="Lives in Kiel.", supersedes="home/old.md"),
}
HIDDEN = {"job/acme.md", "home/old.md"}


def put(folder: Path) -> None:
    """The files, as a person would put them there."""
    for path, data in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


async def test_search_leaves_it_out_until_asked_as_of_a_day(memory: Memory, folder: Path) -> None:
    """M6, V3: past `valid_until` a file is hidden, as of a day before it is found, and it is kept."""
    put(folder)
    assert [match.path for match in await memory.search("employer")] == ["job/beta.md"]
    assert [match.path for match in await memory.search("employer", as_of="2024-05")] == ["job/acme.md"]
    assert [match.path for match in await memory.search("employer", as_of="2024-12-31")] == ["job/acme.md"]
    assert memory.folder.outdated == HIDDEN and (folder / "job/acme.md").read_bytes() == FILES["job/acme.md"]


async def test_an_agent_is_not_shown_it_unasked(memory: Memory, folder: Path) -> None:
    """M6: neither the prompt's index, nor the headers a model chooses from, nor a hint name it; Read gives it."""
    put(folder)
    async with memory.session("monday").turn("Who is the employer of the user, and which city?") as turn:
        prompt, hint = await turn.system_prompt(), await turn.take_hint()
        read = await turn.tools.call("Read", {"file_path": "job/acme.md"})
    shown = shortlist(memory.folder, ["job/acme.md"])
    assert hint and {file.path for file in hint.files} == FILES.keys() - HIDDEN == set(shown)
    assert [path for path in FILES if path in prompt] == ["job/beta.md", "home/new.md"]
    assert "Works at Acme." in read.text and not read.is_error


async def test_a_model_cannot_choose_it(folder: Path) -> None:
    """M6: a file that a model names is not brought when it is over."""
    put(folder)
    picks = {"files": [{"path": "home/old.md", "reason": "?"}, {"path": "home/new.md", "reason": "the city"}]}
    async with open_memory(folder, model=ScriptedModel([picks])) as memory, memory.session().turn("Which city?") as turn:
        hint = await turn.take_hint(wait_s=5)
    assert hint and [file.path for file in hint.files] == ["home/new.md"]


async def test_people_see_it(folder: Path, tmp_path: Path) -> None:
    """M6: it stays in MEMORY.md and in `mdmemory ls`, and no command deletes it."""
    put(folder)
    assert mdmemory("init", cwd=tmp_path).returncode == 0
    listed = mdmemory("ls", cwd=tmp_path).stdout
    assert all(path in listed and f"({path})" in index_of(folder) for path in FILES)
    found = mdmemory("search", "employer", "--as-of", "2024-05", cwd=tmp_path).stdout
    assert "job/acme.md" in found and "job/beta.md" not in found


async def test_what_has_just_ended_is_no_news(memory: Memory, folder: Path) -> None:
    """M6: a file that a person renames and ends during a conversation is not announced."""
    put(folder)
    session = memory.session("monday")
    async with session.turn("Hello") as turn:
        await turn.system_prompt()
    for path in ("job/beta.md", "home/new.md"):
        data = (folder / path).read_bytes()
        ended = data.replace(b"valid_from", b"valid_until").replace(b"of the user", b"of somebody")
        await memory.folder.apply([Replace(path, ended, etag_of(data), data)], "person", "test")
    assert "home/new.md" in session.index_news() and "job/beta.md" not in session.index_news()


def test_what_was_superseded_does_not_come_back() -> None:
    """V3: when the file that superseded another expires, neither is valid."""
    files = [job("old.md"), job("new.md", supersedes="old", valid_from="2021", valid_until="2022")]
    assert outdated(files) == {"old.md", "new.md"}
