"""Several folders are searched, listed and indexed as one."""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from counting import CountingBackend
from folders import memory, on_disk
from hypothesis import given, settings
from hypothesis import strategies as st
from mounting import mounted, put

from mdmemory import Config, Create, Memory, Mount, ScriptedModel, open_memory
from mdmemory.backends.local import LocalBackend
from mdmemory.errors import InvalidArguments
from mdmemory.folder.opening import open_folder
from mdmemory.recall.collections import Collections
from mdmemory.recall.entries import Document
from mdmemory.recall.ranking import LexicalIndex, Ranking

PREFIXES = ("", "team/", "team/old/")
WORDS = st.lists(st.sampled_from("kiwi plum pear fig lime date Anna: Bob:".split()), min_size=1, max_size=12).map(" ".join)


async def paths(memory_: Memory, query: str, **more: object) -> list[str]:
    """What a search finds."""
    return [match.path for match in await memory_.search(query, **more)]  # type: ignore[arg-type]  # whatever the test gives


def filled(files: Mapping[str, str]) -> LexicalIndex:
    """An index of these files, all of one time."""
    index = LexicalIndex()
    for path, text in files.items():
        index.put(path, Document(text.replace(" Anna:", "\nAnna:").replace(" Bob:", "\nBob:")), 10**18)
    return index


@settings(max_examples=60, deadline=None)
@given(files=st.dictionaries(st.sampled_from([f"{p}{n}.md" for p in PREFIXES for n in range(4)]), WORDS), query=WORDS)
def test_several_collections_rank_as_one(files: dict[str, str], query: str) -> None:
    """C1: the order, the scores and the reasons are those of one folder with the same files, however they lie in mounts."""
    inside: dict[str, dict[str, str]] = {prefix: {} for prefix in PREFIXES}
    for path, text in files.items():
        prefix = max((prefix for prefix in PREFIXES if path.startswith(prefix)), key=len)
        inside[prefix][path.removeprefix(prefix)] = text
    together = Ranking(Collections({prefix: filled(part).collection for prefix, part in inside.items()}, PREFIXES))
    for ranking in (together, filled(files)):
        found = ranking.rank(query, limit=20, now_ns=time.time_ns(), half_life_days=1e9)
        passages = ranking.rank_passages(query, limit=20)
        if ranking is together:
            first = found, passages
    assert [(item.path, dict(item.explain)) for item in first[0]] == [(item.path, dict(item.explain)) for item in found]
    assert first[1] == passages


async def test_one_ranking_over_all_mounts(tmp_path: Path) -> None:
    """C1: the best file comes first wherever it lies; what a mount hides in the home's own folder is neither found nor listed."""
    put(tmp_path, {
        "home/me.md": memory("Me", "my own file", body="kiwi and plum"),
        "home/team/hidden.md": memory("Hidden", "in the place of a mount", body="kiwi kiwi plum pear"),
        "team/plan.md": memory("Plan", "what comes next", body="kiwi, plum and pear"),
        "docs/guide.md": "# Guide\n\nkiwi\n",
    })  # fmt: skip
    async with mounted(tmp_path, team={}, docs={"access": "read"}) as memory_:
        assert await paths(memory_, "kiwi plum pear") == ["team/plan.md", "me.md", "docs/guide.md"]
        assert await paths(memory_, "kiwi plum pear", limit=1) == ["team/plan.md"] and await paths(memory_, "kiwi", limit=0) == []
        assert set(memory_.folder.files) == set(memory_.folder.listed) == {"me.md", "team/plan.md", "docs/guide.md"}
        assert len(memory_.folder.files) == 3 and "team/hidden.md" not in memory_.folder.files
        passages = await memory_.folder.search_passages("kiwi plum pear", limit=9)
        assert {passage.path for passage in passages} == {"team/plan.md", "me.md", "docs/guide.md"}
        assert "hidden" not in (await memory_.folder.prompt_index()).text


async def test_a_mount_has_limits_of_its_own(tmp_path: Path) -> None:
    """C1: `top_k` and `min_score` hold for the files of their mount, and what they leave out makes room for others."""
    put(tmp_path, {f"docs/{n}.md": f"# Kiwi {n}\n\nkiwi plum\n" for n in range(9)})
    put(tmp_path, {f"team/{n}.md": "# Note\n\nonly the plum\n" for n in range(3)} | {"home/a.md": "# Note\n\nplum\n"})
    async with mounted(tmp_path, docs={"access": "read", "top_k": 2}, team={"min_score": 0.9}) as memory_:
        found = await paths(memory_, "kiwi plum")
        assert len(found) == 3 and "a.md" in found and sum(path.startswith("docs/") for path in found) == 2
        assert len(await paths(memory_, "plum", limit=10)) == 6
        passages = await memory_.folder.search_passages("kiwi plum", limit=20)
        assert {passage.path for passage in passages} == set(found)


@pytest.mark.parametrize("limits", [{"top_k": 1}, {"min_score": 0.9}])
async def test_a_mount_with_limits_crowds_nobody_out(tmp_path: Path, limits: dict[str, Any]) -> None:
    """C1: however many files of a mount with limits would come first, the files of others are found in their place."""
    put(tmp_path, {f"docs/{n}.md": "# Kiwi\n\nkiwi kiwi\n" for n in range(260)})
    put(tmp_path, {f"home/{n}.md": f"# Note\n\nkiwi {'among other fruit ' * 50}\n" for n in range(8)})
    put(tmp_path, {"home/plum.md": f"# Note\n\nkiwi plum {'among other fruit ' * 80}\n"})
    async with mounted(tmp_path, docs={"access": "read", **limits}) as memory_:
        query = "kiwi" if "top_k" in limits else "kiwi plum"
        found = await paths(memory_, query, limit=9)
        assert len(found) == 9 and sum(path.startswith("docs/") for path in found) == limits.get("top_k", 0)
        passages = await memory_.folder.search_passages(query, limit=9)
        assert {passage.path for passage in passages} <= {*found, "plum.md"} and len(passages) == 9


async def test_a_mount_is_silent_in_other_stages(tmp_path: Path) -> None:
    """C1: a mount for stage `plan` is found, hinted and listed there, in no other stage; a stage that there is not raises."""
    put(tmp_path, {"home/a.md": memory("A", body="kiwi"), "ideas/b.md": memory("B", body="kiwi")})
    async with mounted(tmp_path, ideas={"stages": ("plan",)}) as memory_:
        assert await paths(memory_, "kiwi") == await paths(memory_, "kiwi", stage="plan") == ["a.md", "ideas/b.md"]
        assert await paths(memory_, "kiwi", stage="write") == ["a.md"]
        for stage, is_there in (("plan", True), ("write", False)):
            async with memory_.session(stage=stage).turn("kiwi") as turn:
                for text in (await turn.system_prompt(), str(await turn.take_hint())):
                    assert ("ideas/" in text) is is_there
                assert not (await turn.tools.call("Read", {"file_path": "ideas/b.md"})).is_error
        with pytest.raises(InvalidArguments, match="no stage 'final'; there are plan, write"):
            await memory_.search("kiwi", stage="final")
        with pytest.raises(InvalidArguments, match="no stage 'final'"):
            memory_.session(stage="final")
    async with open_memory(tmp_path / "home") as alone:
        with pytest.raises(InvalidArguments, match=r"none: name them in Config\.stages"):
            await alone.search("kiwi", stage="plan")


async def test_search_in_one_mount(tmp_path: Path) -> None:
    """A5: by the filter `mount`, or by a path, one agent's memory is searched; without it, all of the user's."""
    put(tmp_path, {
        "home/me.md": memory("Me", body="kiwi"), "anna/a.md": memory("A", body="kiwi"), "ben/b.md": memory("B", body="kiwi"),
    })  # fmt: skip
    async with mounted(tmp_path, anna={}, ben={}) as memory_:
        assert set(await paths(memory_, "kiwi")) == {"anna/a.md", "ben/b.md", "me.md"}
        for mount in ("anna", "anna/", ["anna"]):
            assert await paths(memory_, "kiwi", mount=mount) == ["anna/a.md"]
        assert await paths(memory_, "kiwi", path="anna") == ["anna/a.md"]
        assert await paths(memory_, "kiwi", mount="ben") == await paths(memory_, "kiwi", mount=("ben/",)) == ["ben/b.md"]
        assert await paths(memory_, "kiwi", mount=".") == ["me.md"] and len(await paths(memory_, "kiwi", mount=(".", "ben"))) == 2
        with pytest.raises(InvalidArguments, match=r"no mount 'carl' to search; there are \., anna, ben"):
            await memory_.search("kiwi", mount="carl")


async def test_what_supersedes_does_so_in_its_own_mount(tmp_path: Path) -> None:
    """M5: a file hides another by name or path in its own mount only, so that nobody can hide another's memories."""
    new = memory("New home", body="kiwi", supersedes="home.md")
    put(tmp_path, {"home/home.md": memory("Home", body="kiwi"), "team/home.md": memory("Home", body="kiwi"), "team/new.md": new})
    put(tmp_path, {"home/names.md": memory("Names", body="kiwi", supersedes="team/new.md")})
    async with mounted(tmp_path, team={}) as memory_:
        assert sorted(await paths(memory_, "kiwi")) == ["home.md", "names.md", "team/new.md"]


async def test_the_index_of_all_mounts_keeps_to_the_limits_of_one(tmp_path: Path) -> None:
    """I3, C1: pinned and newest files of every mount are shown first, links lead to whole paths, and the rest is counted."""
    put(tmp_path, {f"home/{n:03}.md": memory(f"Home {n:03}") for n in range(150)})
    put(tmp_path, {f"docs/{n:03}.md": f"# Doc {n:03}\n" for n in range(150)})
    put(
        tmp_path,
        {"docs/pinned.md": memory("Pinned", pinned="true"), "docs/MEMORY.md": "# Docs\n\nBegin with [the first](000.md).\n"},
    )
    config = Config(cache=False, index_max_lines=100)
    async with mounted(tmp_path, config, docs={"access": "read"}) as memory_:
        await memory_.folder.apply([Create("new.md", memory("New"))], "person", "test")
        await memory_.folder.refresh()
        shown = await memory_.folder.prompt_index()
    lines = shown.text.splitlines()
    assert len(lines) <= 100 and lines[-1].startswith(f"- _{302 - shown.shown} entries")
    assert "- [New](new.md) — what it says" in lines and "- [Pinned](docs/pinned.md) — what it says" in lines
    assert "Begin with [the first](docs/000.md)." in lines and lines.index("## docs/") > lines.index(
        "- [New](new.md) — what it says"
    )


async def test_only_what_changed_is_read_again(tmp_path: Path) -> None:
    """C4: of a mounted folder of documents, one edited file is read again and a deleted one is gone; nothing else is read."""
    put(tmp_path, {f"docs/{n}.md": f"# Doc {n}\n\nkiwi {n}\n" for n in range(30)})
    docs = CountingBackend(LocalBackend(tmp_path / "docs"))
    async with open_memory(tmp_path / "home", mounts={"docs/": Mount(docs, "read")}, config=Config(cache=False)) as memory_:
        await memory_.folder.refresh()
        time.sleep(0.05)  # what has just been written counts as changed
        await memory_.folder.refresh()
        docs.calls.clear()
        (tmp_path / "docs/3.md").write_text("# Doc 3\n\nplum\n")
        (tmp_path / "docs/4.md").unlink()
        assert await memory_.folder.refresh() == {"docs/3.md", "docs/4.md"}
        assert docs.calls == ["scan"] and docs.heads == 1
        assert await paths(memory_, "plum") == ["docs/3.md"] and "docs/4.md" not in memory_.folder.files


async def test_a_mount_that_is_away_leaves_the_others(tmp_path: Path) -> None:
    """C1: when one folder can't be looked at, what is known of it stays, the others go on, and the turn says so once."""
    put(tmp_path, {"home/a.md": memory("A", body="kiwi"), "team/b.md": memory("B", body="kiwi")})
    async with mounted(tmp_path, team={}) as memory_:
        await memory_.folder.refresh()
        (tmp_path / "team").rename(tmp_path / "gone")
        put(tmp_path, {"home/c.md": memory("C", body="kiwi")})
        async with memory_.session().turn("kiwi") as turn:
            assert turn.status.degraded is not None and turn.status.degraded.startswith("degraded: team/ could not be looked at")
            assert str(tmp_path) not in turn.status.degraded
            prompt, hint = await turn.system_prompt(), str(await turn.take_hint())
        assert "(team/b.md)" in prompt and "(c.md)" in prompt and "File c.md" in hint and "File team/b.md" not in hint
        (tmp_path / "gone").rename(tmp_path / "team")
        async with memory_.session().turn("kiwi") as turn:
            assert turn.status.degraded is None and "team/b.md" in str(await turn.take_hint())


async def test_what_others_change_in_a_mount_is_news(tmp_path: Path) -> None:
    """C6: a session hears of a new file in a mount with the next hint, and no longer names one that is deleted."""
    put(tmp_path, {"team/old.md": memory("Old", body="pear")})
    other = on_disk(tmp_path / "team")
    async with mounted(tmp_path, team={}) as memory_:
        session = memory_.session()
        async with session.turn("Hello") as turn:
            assert "(team/old.md)" in await turn.system_prompt()
        await other.apply([Create("new.md", memory("New", "what came"))], "agent:other", "Write")
        (tmp_path / "team/old.md").unlink()
        async with session.turn("Hello again") as turn:
            prompt = await turn.system_prompt()
            assert "(team/old.md)" not in prompt and "[New](team/new.md) — what came" in prompt + str(await turn.take_hint())


async def test_a_model_chooses_among_all_mounts(tmp_path: Path) -> None:
    """H1, C1: the selector sees the headers of all mounts, and its picks are quoted."""
    put(tmp_path, {"home/a.md": memory("A"), "team/b.md": memory("B", body="Ask Anna.")})
    model = ScriptedModel([{"files": [{"path": "team/b.md", "reason": "whom to ask"}]}])
    async with open_memory(tmp_path / "home", mounts={"team": Mount(tmp_path / "team")}, model=model) as memory_:
        turn = await memory_.session(write_back="off").turn("Whom do I ask?")
        assert "Ask Anna." in str(await turn.take_hint(wait_s=5))
    assert "a.md" in str(model.calls) and "team/b.md" in str(model.calls)


async def test_folders_that_are_forgotten_watch_no_more(tmp_path: Path) -> None:
    """W1: a memory with mounts that is dropped unclosed is freed at once, and so are its watchers."""
    put(tmp_path, {"home/a.md": memory("A"), "home/.mdmemory/.gitignore": "*\n", "team/b.md": memory("B")})
    folder = open_folder(tmp_path / "home", {"team/": Mount(tmp_path / "team")}, Config(cache=False))
    for _ in range(3):
        await folder.refresh()
    assert await folder.search("body")
    forgotten = weakref.ref(folder)
    del folder
    assert forgotten() is None
