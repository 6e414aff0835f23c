"""Search and Add as an agent calls them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import pytest
from agent_calls import ROLE, call, refused
from folders import memory as note
from hypothesis import given
from hypothesis import strategies as st

from mdmemory import Config, Memory, Toolset, open_memory, read_only
from mdmemory.agent.adding import from_content
from mdmemory.agent.searching import search_keywords
from mdmemory.backends.memory import MemoryBackend
from mdmemory.backends.paths import check
from mdmemory.config import Candidate
from mdmemory.errors import Unavailable
from mdmemory.files.memory_file import parse
from mdmemory.files.naming import shortened, slug
from mdmemory.folder.memory_folder import MemoryFolder

NOTES = {
    "user/tea.md": note("Tea", "what the user drinks", body="Green tea in the morning, coffee never."),
    "user/home.md": note("Home", "where the user lives", body="Hangzhou, where the green tea grows."),
    "project/coffee.md": note("Coffee machine", "the office kitchen", "project", "The coffee machine is cleaned on Fridays."),
    "project/release.md": note("Releases", "when we ship", "project", "On Tuesdays."),
}


@pytest.fixture
def notes(folder: Path) -> None:
    """Four memory files on disk."""
    for path, data in NOTES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


def paths_in(answer: str) -> list[str]:
    """The files that a Search answered, in its order."""
    return [line.split(" (")[0] for line in answer.splitlines() if ".md (" in line]


@pytest.mark.usefixtures("notes")
async def test_several_keywords_are_merged(tools: Toolset) -> None:
    """A2: three keywords that overlap give each file once, at most `limit`, and first the one that fits most of them."""
    answer = await call(tools, "Search", keywords=["green tea", "coffee", "morning"])
    assert paths_in(answer)[0] == "user/tea.md" and sorted(paths_in(answer)) == [
        "project/coffee.md",
        "user/home.md",
        "user/tea.md",
    ]
    assert "> Green tea in the morning, coffee never." in answer
    assert paths_in(await call(tools, "Search", keywords=["green tea", "coffee", "morning"], limit=2))[0] == "user/tea.md"
    assert len(paths_in(await call(tools, "Search", keywords=["green tea", "coffee", "morning"], limit=2))) == 2


@pytest.mark.usefixtures("notes")
async def test_filters_narrow_a_search(tools: Toolset) -> None:
    """A2: filters are those of every search; one that there is not is said with those there are."""
    answer = await call(tools, "Search", keywords=["coffee"], filters={"type": "project"})
    assert paths_in(answer) == ["project/coffee.md"]
    assert "there are type, path, mount, tags" in await refused(tools, "Search", keywords=["coffee"], filters={"colour": "red"})
    assert "No memory file" in await call(tools, "Search", keywords=["xylophone", " "])
    assert paths_in(await call(tools, "Search", keywords="coffee")) == ["project/coffee.md", "user/tea.md"]  # type: ignore[arg-type]  # models forget the brackets


@pytest.mark.usefixtures("notes")
async def test_one_failing_query_does_not_sink_the_rest(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A2: a keyword whose search fails is left out, with a log line; only when all fail the search does."""

    class Shaky(MemoryBackend):
        """Can't be read while the scorer's texts are asked for the second time."""

        reads = 0

        async def read(self, wanted, /):  # type: ignore[no-untyped-def]  # as its base has it
            self.reads += 1
            if self.reads in self.bad:
                raise Unavailable("the folder is busy")
            return await super().read(wanted)

        bad: Sequence[int] = ()

    async def even(query: str, candidates: Sequence[Candidate]) -> Sequence[float]:
        return [0.5] * len(candidates)

    backend = Shaky()
    memory = MemoryFolder(backend, Config(scorer=even))
    for path, data in NOTES.items():
        await memory.backend.commit(path, [_put(path, data)])
    await memory.refresh()
    caplog.set_level(logging.WARNING, "mdmemory")
    backend.bad = [backend.reads + 2]
    found = await search_keywords(memory, ["tea", "coffee", "tuesdays"], 5, {})
    assert {match.path for match, _ in found} == {"user/tea.md", "user/home.md", "project/release.md"} and "busy" in caplog.text
    backend.bad = range(100)
    with pytest.raises(Unavailable):
        await search_keywords(memory, ["tea", "coffee"], 5, {})


def _put(path: str, data: bytes):  # type: ignore[no-untyped-def]  # the operation's type says nothing here
    from mdmemory.backends.protocol import ABSENT, Put

    return Put(path, data, ABSENT)


async def test_add_stores_only_the_content(tools: Toolset, folder: Path) -> None:
    """A3: the content is in the file word for word, and the thinking is in no file."""
    content = "Prefers window seats\n\n* on trains\n* never on ferries, `<they rock>`"
    answer = await call(tools, "Add", thinking="The user seems to travel a lot", content=content)
    assert answer.startswith("Created project/prefers-window-seats.md.")
    text = (folder / "project/prefers-window-seats.md").read_text()
    description = '"* on trains * never on ferries, `<they rock>`"'
    head = f"name: Prefers window seats\ndescription: {description}\ntype: project"
    assert text == f"---\n{head}\n---\n\n{content}\n"
    assert not [path for path in folder.rglob("*") if path.is_file() and b"travel a lot" in path.read_bytes()]
    again = await call(tools, "Add", thinking="again", content=content)
    assert "already has this content" in again and len(list(folder.rglob("*.md"))) == 2
    await call(tools, "Add", thinking="x", content=f"{content}\n* or planes", type="user")
    await call(tools, "Add", thinking="x", content=f"{content}\n* or planes")
    assert (folder / "user/prefers-window-seats.md").exists() and (folder / "project/prefers-window-seats-2.md").exists()


async def test_add_takes_a_whole_file_too(tools: Toolset, folder: Path) -> None:
    """A3: content that brings its own frontmatter is the file; an unknown type and no content are refused."""
    assert "Created user/role.md" in await call(tools, "Add", thinking="", content=ROLE)
    assert (folder / "user/role.md").read_text() == ROLE
    assert "must be one of user, feedback" in await refused(tools, "Add", thinking="", content="x", type="person")
    assert "content is empty" in await refused(tools, "Add", thinking="", content=" \n")


async def test_what_was_added_is_found_at_once(tools: Toolset, memory: Memory, folder: Path) -> None:
    """A6: a search right after an Add, a Write or another process's save finds it; nothing is waited for or indexed by hand."""
    await call(tools, "Add", thinking="", content="The user's cat is called Miso.")
    assert paths_in(await call(tools, "Search", keywords=["Miso"])) == ["project/the-user-s-cat-is-called-miso.md"]
    async with open_memory(folder) as other:
        await call(
            Toolset(other.folder, "agent:b"), "Write", file_path="dog.md", content=ROLE.replace("A surveyor", "Owns a poodle")
        )
    assert paths_in(await call(tools, "Search", keywords=["poodle"])) == ["dog.md"]
    assert [match.path for match in await memory.search("poodle")] == ["dog.md"]


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        ("auto", ["Read", "Write", "Edit", "Delete", "Add"]),
        ("agent", ["Read", "Write", "Edit", "Delete", "Search", "Add"]),
        ("both", ["Read", "Write", "Edit", "Delete", "Search", "Add"]),
    ],
)
async def test_the_mode_gives_the_tools(mode: str, names: list[str], memory: Memory) -> None:
    """A1: with hints alone there is no Search; Add is there wherever the agent may write."""
    assert Toolset(memory.folder, "agent:a", mode=mode).names == names  # type: ignore[arg-type]  # the parameter is one of the three
    locked = MemoryFolder(MemoryBackend(), policy=read_only)
    assert "Add" not in Toolset(locked, "agent:a").names


@given(st.text(max_size=200))
def test_any_content_becomes_a_file_or_is_refused(content: str) -> None:
    """A3: whatever the text, it stands in the file as it is, under a path that a memory may have; or it is no text."""
    from mdmemory.errors import MdmemoryError

    try:
        made = from_content(MemoryFolder(MemoryBackend()), content)
    except MdmemoryError:
        return
    file = parse(check(made.path), made.data)
    assert file.header.name.strip() and content.strip("\n") in made.data.decode()


def test_names_become_paths() -> None:
    """Slugs keep every script and nothing that a path may not have; long names are cut at a word."""
    assert slug("What's new? v2.0") == "what-s-new-v2-0" and slug("住在 杭州!") == "住在-杭州" and slug("...") == "note"
    assert slug("नमस्ते दुनिया") == "नमस्ते-दुनिया"
    assert shortened("one  two\nthree", 9) == "one two…"
