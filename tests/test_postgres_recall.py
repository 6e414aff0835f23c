"""Recall in the database: what is found there is what is found on a disk, by workers that know nothing."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
import pytest
from database import Server, as_admin
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_recall_quality import CORPUS, EXPECTED
from tiny_locomo import LOCOMO

from mdmemory import Config, Create, Memory, Mount, Replace, open_memory
from mdmemory.backends.memory import MemoryBackend
from mdmemory.backends.postgres import PostgresBackend
from mdmemory.backends.protocol import Put
from mdmemory.errors import InvalidArguments
from mdmemory.evals.locomo import load
from mdmemory.evals.run import evaluate
from mdmemory.folder.purge import purge

_numbers = itertools.count()
LANGUAGES = Config(languages=("english", "german"))
QUESTIONS = [line.partition(" → ")[0] for line in EXPECTED]


@pytest.fixture(scope="module")
def url(postgres: Server) -> str:
    """A database for all of these tests, each of which has a folder of its own."""
    return postgres.new_database()


@pytest.fixture
def place(url: str) -> str:
    """A folder that nobody has."""
    return f"{url}?folder=users/{next(_numbers)}"


def note(name: str, text: str, **fields: str) -> bytes:
    """A memory file."""
    more = "".join(f"{key}: {value}\n" for key, value in fields.items())
    return f"---\nname: {name}\ndescription: about {name}\ntype: project\n{more}---\n{text}\n".encode()


async def save(memory: Memory, **texts: str) -> None:
    """Write files of these names."""
    await memory.folder.refresh()
    there = memory.folder.files
    changes: list[Any] = []
    for name, text in texts.items():
        path, data = f"project/{name}.md", note(name, text)
        changes.append(Replace(path, data, there[path].etag or "") if path in there else Create(path, data))
    await memory.folder.apply(changes, "person", "test")


def found(matches: Sequence[Any]) -> list[tuple[str, float]]:
    """Paths and scores."""
    return [(match.path, round(match.score, 6)) for match in matches]


async def fill_from_corpus(place: str) -> None:
    """Commit the corpus of the quality guard."""
    files = {path.relative_to(CORPUS).as_posix(): path.read_bytes() for path in sorted(CORPUS.rglob("*.md"))}
    backend = PostgresBackend.from_url(place)
    await backend.commit("corpus", [Put(path, data) for path, data in files.items()])
    await backend.close()


async def test_it_finds_what_is_found_on_a_disk(place: str) -> None:
    """S1: every question of the quality guard has the same answers, in the same order, with the same scores and reasons."""
    await fill_from_corpus(place)
    async with open_memory(CORPUS, config=LANGUAGES) as disk, open_memory(place, config=LANGUAGES) as there:
        for _ in range(2):  # of what has just been read, and of what is kept
            for question in QUESTIONS:
                here, others = await disk.search(question, limit=5), await there.search(question, limit=5)
                assert [(m.path, m.name, m.explain["terms"], m.explain["lines"]) for m in others] == [
                    (m.path, m.name, m.explain["terms"], m.explain["lines"]) for m in here
                ]
                passages = await there.folder.search_passages(question, limit=5)
                assert passages == await disk.folder.search_passages(question, limit=5)


async def test_a_worker_that_knows_nothing_asks_twice(place: str, postgres: Server, url: str) -> None:
    """The first answer of a cold worker takes a scan and a look-up, whoever wrote the files; the second does too."""
    await fill_from_corpus(place)
    async with open_memory(place, config=LANGUAGES) as memory:
        await memory.search("tea")
    postgres.log(url)
    start = len(postgres.statements())
    async with open_memory(place, config=LANGUAGES) as memory:
        assert await memory.search(QUESTIONS[0])
        first = [line for line in postgres.statements(start) if "mdmemory." in line and "migration" not in line]
        assert await memory.search(QUESTIONS[1])
        second = [line for line in postgres.statements(start) if "mdmemory." in line and "migration" not in line][len(first) :]
    names = [[line.partition("FROM mdmemory.")[2].partition("(")[0] for line in lines] for lines in (first, second)]
    assert names == [["scan", "find"], ["scan", "find"]]


async def test_what_is_kept_is_sent_once(place: str) -> None:
    """Of a candidate that a worker has already, only the name comes."""
    await fill_from_corpus(place)
    async with open_memory(place, config=LANGUAGES) as memory:
        await memory.search(QUESTIONS[0], limit=32)
        recall: Any = memory.folder.catalog.recall
        kept = {path: seq for path, (seq, _) in recall._entries.items()}
        lookup = await recall._tables.find(["tea"], 32, also=list(kept), have=kept)
    assert kept and {each.path for each in (*lookup.found, *lookup.also)} >= kept.keys()
    assert all(each.units is None and each.body is None for each in (*lookup.found, *lookup.also) if each.path in kept)


async def test_what_others_change_is_found_at_the_next_search(place: str) -> None:
    """W2: two workers see each other's new, changed, renamed and deleted files, noted or not."""
    async with open_memory(place) as one, open_memory(place) as two:
        await save(one, tea="Alice drinks sencha.", dog="The dog is called Rex.")
        assert found(await two.search("sencha")) == found(await one.search("sencha")) != []
        await save(two, tea="Alice drinks oolong now.")
        assert [m.path for m in await one.search("oolong")] == ["project/tea.md"] and await one.search("sencha") == []
        await two.clear("project/dog.md".removesuffix("/dog.md"))
        assert await one.search("Rex") == [] == await two.search("oolong")


async def test_filters_come_before_the_candidates(place: str) -> None:
    """A2: with 60 better files of another kind, a filtered search finds the one that passes; `as_of` finds what held then."""
    async with open_memory(place) as memory:
        many = [Create(f"project/n{n}.md", note(f"n{n}", "harbour harbour harbour")) for n in range(60)]
        one = Create("reference/one.md", note("one", "the harbour " + "words " * 50).replace(b"type: project", b"type: reference"))
        old = Create("project/old.md", note("old", "the lighthouse", valid_until="2024-06-01"))
        await memory.folder.apply([*many, one, old], "person", "test")
        assert [m.path for m in await memory.search("harbour", type="reference")] == ["reference/one.md"]
        assert await memory.search("lighthouse") == []
        assert [m.path for m in await memory.search("lighthouse", as_of="2024-05")] == ["project/old.md"]


async def test_common_words_are_used_while_rare_ones_find_too_little(place: str) -> None:
    """S3: a word that every file holds still finds, and files with the rare word come first."""
    async with open_memory(place) as memory:
        await save(memory, **{f"n{n}": "the common ferry" + (" and a zeppelin" if n == 3 else "") for n in range(230)})
        matches = await memory.search("ferry zeppelin", limit=10)
        assert len(matches) == 10 and matches[0].path == "project/n3.md"
        assert len(await memory.search("ferry", limit=10)) == 10


async def test_it_is_one_of_several_folders(place: str, tmp_path: Path) -> None:
    """A database may be the home, and another one a mount: they are ranked with a folder on a disk as one."""
    team = place + "-team"
    async with open_memory(team) as memory:
        await save(memory, boat="The team's boat is blue.", plan="The plan is old.")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/boat.md").write_bytes(note("boat", "How to paint a blue boat."))
    mounts = {"team/": Mount(team, access="read"), "docs/": Mount(tmp_path / "docs", access="read")}
    async with open_memory(place, mounts=mounts) as memory:
        await memory.folder.apply([Create("user/me.md", note("me", "I sail a blue boat."))], "person", "test")
        paths = [match.path for match in await memory.search("blue boat")]
        assert sorted(paths) == ["docs/boat.md", "team/project/boat.md", "user/me.md"]
        assert [m.path for m in await memory.search("boat", mount="team")] == ["team/project/boat.md"]


async def test_what_is_kept_counts_only_for_the_same_bytes(place: str, url: str) -> None:
    """Notes of another form, of older bytes or lost are as if there were none; nothing is found by what is not there any more."""
    async with open_memory(place) as memory:
        await save(memory, tea="Alice drinks sencha.")
        await memory.search("sencha")
    folder = place.partition("folder=")[2]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT set_config('mdmemory.folder', %s, false)", [folder])
        (form,) = connection.execute("SELECT form FROM mdmemory.recall WHERE path = 'project/tea.md'").fetchone() or ("",)
        for change in (
            "DELETE FROM mdmemory.recall",
            "UPDATE mdmemory.recall SET seq = seq - 1",
            "UPDATE mdmemory.recall SET form = '0'",
        ):
            connection.execute(f"{change} WHERE folder = (SELECT id FROM mdmemory.folder)".encode())
            async with open_memory(place) as memory:
                assert [m.path for m in await memory.search("sencha")] == ["project/tea.md"]
            there = connection.execute(
                "SELECT 1 FROM mdmemory.recall JOIN mdmemory.file USING (folder, path, seq) WHERE form = %s", [form]
            )
            assert there.fetchone() is not None, "it is kept again"
        backend = PostgresBackend.from_url(place)
        await backend.commit("past", [Put("project/tea.md", note("tea", "Alice drinks oolong."))])  # by who keeps nothing
        await backend.close()
    async with open_memory(place) as memory:
        assert [m.path for m in await memory.search("oolong")] == ["project/tea.md"] and await memory.search("sencha") == []


async def test_what_is_purged_is_in_no_table(place: str, url: str) -> None:
    """M7: a text that is purged is found in no table, words of it included; what the database keeps for a while is said."""
    async with open_memory(place) as memory:
        await save(memory, tea="Alice drinks xylophonic sencha.", dog="A dog.")
        await save(memory, tea="Alice drinks xylophonic oolong.")
        await memory.search("xylophonic")
        assert rows_with(url, "xylophon") != []
        purged = await purge(memory.folder, text="xylophonic")
        assert purged.left == () and any("vacuumed" in told for told in purged.beyond)
        assert rows_with(url, "xylophon") == []
        assert [m.path for m in await memory.search("dog")] == ["project/dog.md"]


def rows_with(url: str, text: str) -> list[str]:
    """The tables in which it stands, in clear or as bytes."""
    found = []
    with psycopg.connect(as_admin(url), autocommit=True) as connection:
        names = connection.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'mdmemory'").fetchall()
        for (name,) in names:
            forms = [text, text.encode().hex()]
            query = f"SELECT 1 FROM mdmemory.{name} AS each WHERE each::text LIKE ANY (%s) LIMIT 1"
            if connection.execute(query.encode(), [[f"%{form}%" for form in forms]]).fetchone():
                found.append(name)
    return found


async def test_vectors_are_used_where_they_are_given(place: str) -> None:
    """An injected `embed` finds a file that shares no word with the query."""

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0, 0.0] if "vessel" in text or "boat" in text else [0.0, 1.0] for text in texts]

    async with open_memory(place, config=Config(embed=embed)) as memory:
        await save(memory, ship="A vessel in the bay.", tea="Alice drinks sencha.")
        assert [m.path for m in await memory.search("boat")] == ["project/ship.md"]


WORDS = st.sampled_from(
    ["tea", "Tee", "boat", "läuft", "茶道", "it's", "x" * 3000, "a'b\\\\c", "2024-05-01", "Ann: hi?", "🙂", "'quoted'"]
)
TEXTS = st.lists(WORDS, max_size=12).map(" ".join)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXTS, min_size=1, max_size=5), query=TEXTS)
def test_any_words(url: str, texts: list[str], query: str) -> None:
    """Whatever a file and a query hold, a database answers as the tables of a process do."""

    async def run() -> None:
        place = f"{url}?folder=any/{next(_numbers)}"
        async with open_memory(place) as there, open_memory(MemoryBackend()) as here:
            changes = [Create(f"n{n}.md", note(f"n{n}", text)) for n, text in enumerate(texts)]
            for memory in (there, here):
                await memory.folder.apply(changes, "person", "test")
            one, other = await there.search(query), await here.search(query)
            assert [m.path for m in one] == [m.path for m in other]

    asyncio.run(run())


async def test_an_evaluation_measures_the_same_there(url: str, tmp_path: Path) -> None:
    """V9: `eval --on` makes the memories in a database, and what it measures is what is measured in one process."""
    data = tmp_path / "locomo.json"
    data.write_text(json.dumps(LOCOMO), encoding="utf-8")
    here = await evaluate(load(data))
    on = f"{url}?folder=eval-{next(_numbers)}/{{conversation}}"
    assert await evaluate(load(data), on=on) == here == await evaluate(load(data), on=on)
    assert here["questions"] > 0


async def test_an_evaluation_writes_into_no_other_memory(place: str, tmp_path: Path) -> None:
    """V9: a memory that holds something else, be it another conversation, is left as it is, and that is said."""
    data = tmp_path / "locomo.json"
    another = json.loads(json.dumps(LOCOMO).replace("Ida", "Eva"))
    data.write_text(json.dumps([*LOCOMO, *another]), encoding="utf-8")
    async with open_memory(place) as memory:
        await save(memory, tea="Alice drinks sencha.")
    for where in (place, f"{place}-empty"):
        with pytest.raises(InvalidArguments, match="name an empty one"):
            await evaluate(load(data), on=where)
    async with open_memory(place) as memory:
        await memory.folder.refresh()
        assert sorted(memory.folder.files) == ["project/tea.md"]
