"""The last turns, as another process finds them: bounded, disposable, and nothing of what was said."""

from __future__ import annotations

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from folders import everything, memory

from mdmemory import Config, ScriptedModel, open_memory
from mdmemory.agent import past_turns
from mdmemory.agent.past_turns import last_turns, note_turn, turns_file
from mdmemory.agent.selector import Pick
from mdmemory.agent.turn import TurnStatus
from mdmemory.files.changes import Create
from mdmemory.folder.purge import purge

HOME = memory("Home", "where I live", body="In Oslo.")


async def test_a_turn_is_found_by_another_process(tmp_path: Path) -> None:
    """H1: the file that was chosen, why, by whom, whether it was given and when; nothing of it lies in the folder."""
    async with open_memory(tmp_path / "memory") as ours:
        await ours.folder.apply([Create("user/home.md", HOME)], "person", "test")
        async with ours.session("monday").turn("My secret question: where do I live?") as turn:
            await turn.take_hint()
            before = everything(tmp_path / "memory")
            assert last_turns(ours.folder) == [], "it has not ended"
            await turn.finish("In Oslo.")
            await turn.finish("In Oslo.")
        file = turns_file(ours.folder)
        assert file is not None and stat.S_IMODE(file.stat().st_mode) == 0o600 and "secret" not in file.read_text()
    assert set(everything(tmp_path / "memory")) == set(before)
    async with open_memory(tmp_path / "memory") as other:
        (found,) = last_turns(other.folder)
    assert (found.session, found.hint_calls, found.late, found.degraded) == ("monday", (1,), False, None)
    (chosen,) = found.files
    assert (chosen.path, chosen.source, chosen.is_given) == ("user/home.md", "lexical", True) and "live" in chosen.reason


async def test_what_the_model_chose_from_is_found(tmp_path: Path) -> None:
    """H1: with a model, the files whose headers it saw are noted, the nearest first, and what words alone would have given."""
    model = ScriptedModel([{"files": [{"path": "user/boat.md", "reason": "the ferry"}]}])
    async with open_memory(tmp_path / "memory", model=model, config=Config(journal=False)) as ours:
        files = {"user/home.md": HOME, "user/boat.md": memory("Boat", "the ferry"), "user/pet.md": memory("Pet", "a cat")}
        await ours.folder.apply([Create(path, data) for path, data in files.items()], "person", "test")
        async with ours.session("monday").turn("where do I live?") as turn:
            await turn.take_hint(wait_s=5)
        (found,) = last_turns(ours.folder)
    assert [(file.path, file.source) for file in found.files] == [("user/boat.md", "model")]
    assert found.offered[0] == "user/home.md" and set(found.offered) == files.keys() and found.offered_count == 3
    (near,) = found.lexical
    assert (near.path, near.source, near.is_given) == ("user/home.md", "lexical", False)
    assert near.score is not None and near.score > 0 and near.reason == "shares the words live"
    assert turn.status.offered == found.offered and all(f"- {path}" in str(model.calls[0]) for path in found.offered)


async def test_what_is_offered_is_noted_though_the_model_fails(tmp_path: Path) -> None:
    """H1: a model that fails or comes too late leaves what it was offered; a memory without one has nothing to offer."""
    async with open_memory(tmp_path / "memory", model=ScriptedModel([OSError("no route")])) as ours:
        await ours.folder.apply([Create("user/home.md", HOME)], "person", "test")
        async with ours.session("monday").turn("where do I live?") as turn:
            await turn.take_hint(wait_s=5)
        (found,) = last_turns(ours.folder)
    assert found.offered == ("user/home.md",) and found.files == found.lexical and found.files[0].is_given
    async with open_memory(tmp_path / "memory") as ours:
        async with ours.session("tuesday").turn("where do I live?"):
            pass
        found = last_turns(ours.folder)[0]
    assert (found.offered, found.offered_count) == ((), 0) and [file.path for file in found.lexical] == ["user/home.md"]


@pytest.mark.parametrize(("name", "kept"), [("f{}", past_turns.MAX_OFFERED), ("x" * 180 + "{}", 10), ("茶" * 60 + "{}", 10)])
async def test_so_many_are_noted_and_no_more(tmp_path: Path, name: str, kept: int) -> None:
    """H1: of many files the first are noted, and how many there were; a line stays small, however long their names are."""
    paths = tuple(f"{name.format(number)}.md" for number in range(100, 400))
    picks = tuple(Pick(path, f"shares the words {'茶' * 10_000}", "lexical", 0.5) for path in paths[:5])
    async with open_memory(tmp_path / "memory") as ours:
        note_turn(ours.folder, "s", TurnStatus(offered=paths, lexical=picks, degraded="degraded: " + "茶" * 10_000))
        (found,) = last_turns(ours.folder)
        file = turns_file(ours.folder)
        assert file is not None and file.stat().st_size < 9_000
    assert (found.offered, found.offered_count, len(found.lexical)) == (paths[:kept], 300, 5)


async def test_turns_that_were_noted_before_are_read(tmp_path: Path) -> None:
    """A line from before offered files were noted is a turn like any other."""
    async with open_memory(tmp_path / "memory") as ours:
        note_turn(ours.folder, "s", TurnStatus())
        file = turns_file(ours.folder)
        assert file is not None
        line = json.loads(file.read_text())
        file.write_text(json.dumps({key: line[key] for key in line.keys() - {"offered", "offered_count", "lexical"}}) + "\n")
        (found,) = last_turns(ours.folder)
    assert (found.session, found.offered, found.lexical) == ("s", (), ())


async def test_the_latest_come_first_and_the_file_stays_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many turns there are, whole lines of the latest are kept; what makes no sense is passed over."""
    monkeypatch.setattr(past_turns, "MAX_BYTES", 5_000)
    async with open_memory(tmp_path / "memory") as ours:
        for number in range(100):
            note_turn(ours.folder, f"s{number}", TurnStatus())
        file = turns_file(ours.folder)
        assert file is not None and file.stat().st_size < 5_200
        with file.open("ab") as lines:
            lines.write(b'\xff\n{"at": 1}\n[]\nnull\n{"torn')
        found = last_turns(ours.folder, limit=12)
        assert [turn.session for turn in found] == [f"s{number}" for number in range(99, 87, -1)]
        note_turn(ours.folder, "after", TurnStatus())
        assert last_turns(ours.folder)[0].session == "after", "what was cut off takes nothing with it"
        assert list(file.parent.glob("*turns*")) == [file] and stat.S_IMODE(file.stat().st_mode) == 0o600


ODD = [{"waited_s": "long"}, {"files": [["a.md", "why", "model", "much", True]]}, {"hint_calls": ["x"]}, {"tokens": None},
    {"at": 5}, {"selector_s": []}, {"at": "0001-01-01T00:00:00+14:00"}, {"offered_count": "x"}, {"files": [["a.md"]]}]  # fmt: skip


@pytest.mark.parametrize("odd", ODD, ids=str)
async def test_a_line_of_other_types_is_passed_over(tmp_path: Path, odd: dict[str, object]) -> None:
    """What stands in a line is what the page can show: else the line makes no sense."""
    async with open_memory(tmp_path / "memory") as ours:
        note_turn(ours.folder, "s", TurnStatus())
        file = turns_file(ours.folder)
        assert file is not None
        line = json.loads(file.read_text())
        naive = {**line, "at": "2026-01-01T00:00:00", "files": [[["a.md"], "why", "model", None, True]]}
        file.write_text("".join(json.dumps({**line, **each}) + "\n" for each in ({}, odd, naive)) + "[" * 50_000)
        naive_turn, found = last_turns(ours.folder)
    assert found.session == "s" and naive_turn.at.tzinfo is not None and naive_turn.files[0].path == "['a.md']"


async def test_many_processes_note_turns_at_once(tmp_path: Path) -> None:
    """Lines of several writers stand whole beside each other."""
    async with open_memory(tmp_path / "memory") as ours:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda number: note_turn(ours.folder, f"s{number}", TurnStatus()), range(200)))
        assert len(last_turns(ours.folder, limit=500)) == 200


async def test_without_a_place_there_is_no_trace(tmp_path: Path) -> None:
    """A memory without a cache file notes nothing, and a turn goes on when its file can't be written."""
    async with open_memory(tmp_path / "memory", config=Config(cache=False)) as ours:
        async with ours.session().turn("hello") as turn:
            await turn.finish("hi")
        assert turns_file(ours.folder) is None and last_turns(ours.folder) == []
    async with open_memory(tmp_path / "memory") as ours:
        file = turns_file(ours.folder)
        assert file is not None
        file.mkdir()
        async with ours.session().turn("hello") as turn:
            await turn.finish("hi")
        assert last_turns(ours.folder) == [] and turn.status.degraded is None


async def test_what_is_purged_is_in_no_turn(tmp_path: Path) -> None:
    """M7: the name of a file that is forgotten for good stands in no past turn either."""
    async with open_memory(tmp_path / "memory") as ours:
        await ours.folder.apply([Create("user/home.md", HOME)], "person", "test")
        async with ours.session("monday").turn("where do I live?") as turn:
            await turn.take_hint()
        assert len(last_turns(ours.folder)) == 1
        await purge(ours.folder, ["user/home.md"])
        await ours.folder.refresh()
        assert last_turns(ours.folder) == []
