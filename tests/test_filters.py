"""Filters: which files a search may find."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from command import mdmemory, note, write

from mdmemory import Memory, open_memory
from mdmemory.errors import InvalidArguments
from mdmemory.files.memory_file import Header
from mdmemory.recall.filters import Filed, Filters, condition, narrow, outdated

PLAN = Header("Plan", "", "project", tags=("Q1", "ship"), fields={"cost": "40", "status": "open"})
OLD_PLAN = Header("Old plan", "", "project", fields={"cost": "100", "team": ["Anna", "Ben"]})
FILES = [
    Filed(
        "plans/plan.md",
        Header("Plan", "", "project", tags=("Q1", "ship"), fields={"cost": "40", "status": "open"}),
        date(2024, 5, 17),
    ),
    Filed(
        "plans/old/plan.md", Header("Old plan", "", "project", fields={"cost": "100", "team": ["Anna", "Ben"]}), date(2023, 1, 2)
    ),
    Filed("me.md", Header("Me", "", "user", tags=("q1",), pinned=True), date(2024, 6, 1)),
]


@pytest.mark.parametrize(
    ("filters", "paths"),
    [
        ({}, ["me.md", "plans/old/plan.md", "plans/plan.md"]),
        ({"type": "user"}, ["me.md"]),
        ({"type": ["user", "project"]}, ["me.md", "plans/old/plan.md", "plans/plan.md"]),
        ({"path": "plans"}, ["plans/old/plan.md", "plans/plan.md"]),
        ({"path": "/plans/old/"}, ["plans/old/plan.md"]),
        ({"path": "me.md"}, ["me.md"]),
        ({"path": ["*.md", "nowhere"]}, ["me.md", "plans/old/plan.md", "plans/plan.md"]),
        ({"path": "plan"}, []),
        ({"tags": "#q1"}, ["me.md", "plans/plan.md"]),
        ({"tags": ["q1", "ship"]}, ["plans/plan.md"]),
        ({"after": "2024-05-17"}, ["me.md", "plans/plan.md"]),
        ({"before": "2024-05"}, ["plans/old/plan.md", "plans/plan.md"]),
        ({"after": date(2023, 1, 1), "before": "2023"}, ["plans/old/plan.md"]),
        ({"type": "project", "where": {"cost": {"lt": 50}}}, ["plans/plan.md"]),
    ],
)
def test_files_pass_all_filters_given(filters: Filters, paths: list[str]) -> None:
    """Type, path, tags, date and fields narrow the search together."""
    assert sorted(narrow(FILES, filters)) == paths


@pytest.mark.parametrize(
    ("where", "places"),
    [
        ({"status": "open"}, [0]),
        ({"status": {"eq": "OPEN"}}, [0]),
        ({"status": {"ne": "open"}}, [1, 2]),
        ({"cost": {"in": [40, 41]}}, [0]),
        ({"cost": {"nin": [40]}}, [1, 2]),
        ({"cost": {"gt": 40}}, [1]),
        ({"cost": {"gte": 40, "lt": 100}}, [0]),
        ({"cost": {"lte": "100"}}, [0, 1]),
        ({"team": {"contains": "anna"}}, [1]),
        ({"team": "Ben"}, [1]),
        ({"name": {"contains": "PLAN"}}, [0, 1]),
        ({"path": {"contains": "old"}}, [1]),
        ({"pinned": True}, [2]),
        ({"day": {"gte": "2024-06"}}, [2]),
        ({"and": [{"type": "project"}, {"not": {"status": "open"}}]}, [1]),
        ({"or": [{"cost": 100}, {"type": "user"}]}, [1, 2]),
        ({"not": {"or": [{"cost": 100}, {"type": "user"}]}}, [0]),
        ({"and": []}, [0, 1, 2]),
        ({"or": []}, []),
        ({"missing": {"gt": 1}}, []),
        ({"missing": {"ne": 1}}, [0, 1, 2]),
        ({"missing": {"contains": ""}}, []),
        ({"fields": "x"}, []),
    ],
)
def test_conditions_compare_fields(where: dict[str, Any], places: list[int]) -> None:
    """M4: numbers as numbers, the rest as text without case; a field that is not there is equal to nothing and has no order."""
    assert [place for place, file in enumerate(FILES) if condition(where)(file)] == places


@pytest.mark.parametrize(
    ("value", "wanted", "is_equal"),
    [
        ("Nan", "nan", True),
        ("12345678901234567890", 12345678901234567891, False),
        ("12345678901234567890", "12345678901234567890", True),
        ("infinity", "inf", False),
        ("1_000", 1000, False),
        ("0.1", 0.1, True),
        (" 1e3", "1000.0", True),
        ("1e999999999999999999999", 1, False),
        (True, 1, True),
    ],
)
def test_what_is_a_number(value: Any, wanted: Any, is_equal: bool) -> None:
    """M4: numbers are compared to the last digit, and what only sounds like one, such as a person's name, is text."""
    file = Filed("a.md", Header("A", "", fields={"key": value}), date(2024, 1, 1))
    assert condition({"key": wanted})(file) is is_equal and condition({"key": {"ne": wanted}})(file) is not is_equal
    assert condition({"key": {"gte": wanted, "lte": wanted}})(file) is is_equal


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"colour": "red"}, "unknown filter colour; there are type"),
        ({"where": {"cost": {"over": 3}}}, "unknown operator 'over'; there are eq"),
        ({"where": {"cost": {"in": "abc"}}}, "'in' takes a list"),
        ({"where": {"and": {"a": 1}}}, "'and' takes a list"),
        ({"where": ["a"]}, "a condition maps fields"),
        ({"after": "soon"}, "after must be a day such as 2024-05-17"),
        ({"as_of": "2024-13"}, "as_of must be a day"),
    ],
)
def test_a_wrong_filter_is_refused(filters: Any, message: str) -> None:
    """A typing error must not look like an empty memory: the message says what there is."""
    with pytest.raises(InvalidArguments, match=message):
        narrow(FILES, filters)


def job(path: str, day: str = "2020-01-01", **header: Any) -> Filed:
    """A file with dates of validity."""
    return Filed(path, Header(header.pop("name", path), "", **header), date.fromisoformat(day))


JOBS = [
    job("a.md", name="First job", valid_from="2020-03", valid_until="2022"),
    job("b.md", valid_from="2023-01-01"),
    job("c.md", valid_from="2025-06-01", supersedes="b.md"),
    job("d.md", valid_until="whenever"),
    job("e.md", day="2024-01-01", supersedes="[[first JOB]]"),
]


@pytest.mark.parametrize(
    ("as_of", "valid"),
    [("2019-12-31", "de"), ("2020-03-01", "ade"), ("2022-12-31", "ade"), ("2024-05-01", "bde"), ("2025-06-01", "cde")],
)
def test_validity_is_asked_as_of_a_day(as_of: str, valid: str) -> None:
    """From the first day to the last, both included, until superseded; what is no date hides nothing."""
    hidden = outdated(JOBS, date.fromisoformat(as_of))
    assert "".join(job.path[0] for job in JOBS if job.path not in hidden) == valid


def test_without_a_day_only_what_is_over_is_left_out() -> None:
    """What is not yet valid is found: people plan."""
    later = job("later.md", valid_from="2999-01-01")
    assert outdated([*JOBS, later]) == {"a.md", "b.md"}


def test_a_file_may_supersede_another_of_its_own_name() -> None:
    """The new one stays, though it bears the name that it says is superseded."""
    assert outdated([job("old.md", name="Job"), job("new.md", name="Job", supersedes="Job")]) == {"old.md"}


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    """Many notes alike, one of which is of another type, and one of which supersedes another."""
    for number in range(400):
        (tmp_path / f"{number}.md").write_text(
            f"---\nname: N{number}\ndescription: deploy friday\ntype: project\n---\ndeploy friday\n"
        )
    (tmp_path / "z.md").write_text("---\nname: Z\ndescription: x\ntype: user\n---\nsome words, then deploy, then many more words\n")
    (tmp_path / "new.md").write_text("---\nname: New\ndescription: boats\ntype: user\nsupersedes: old\n---\nboat in Kiel\n")
    (tmp_path / "old.md").write_text("---\nname: Old\ndescription: boats\ntype: user\n---\nboat in Rostock\n")
    async with open_memory(tmp_path) as memory:
        yield memory


async def test_the_only_file_that_passes_is_found_among_many(memory: Memory) -> None:
    """S3: the filter comes before ranking, so that hundreds of better matches don't crowd out the one that passes."""
    assert [match.path for match in await memory.search("deploy friday", limit=1, type="user")] == ["z.md"]
    assert [match.path for match in await memory.search("deploy friday", where={"name": {"eq": "Z"}})] == ["z.md"]
    assert {found.path for found in await memory.folder.search_passages("deploy", type="user")} == {"z.md"}


def test_the_command_takes_filters(tmp_path: Path) -> None:
    """`mdmemory search` narrows by type, path, tag and day, and refuses what is no day."""
    write(tmp_path / "memory/a.md", note("A", "a boat", kind="project"))
    write(tmp_path / "memory/x/b.md", note("B", "a boat").replace("type:", "tags: [sea]\nvalid_until: 2020\ntype:"))
    for options, path in [(["-t", "project"], "a.md"), (["--as-of", "2020-06", "--tag", "sea"], "x/b.md")]:
        found = mdmemory("search", "boat", "--json", *options, cwd=tmp_path)
        assert [match["path"] for match in json.loads(found.stdout)] == [path]
    assert mdmemory("search", "boat", "-p", "x", "--json", cwd=tmp_path).stdout == "[]\n"
    wrong = mdmemory("search", "boat", "--as-of", "soon", cwd=tmp_path)
    assert (wrong.returncode, "as_of must be a day" in wrong.stderr) == (2, True)


async def test_superseded_files_come_and_go(memory: Memory, tmp_path: Path) -> None:
    """D4: a file is left out from the moment another supersedes it until that one is gone."""
    assert [match.path for match in await memory.search("boat")] == ["new.md"]
    (tmp_path / "new.md").unlink()
    assert [match.path for match in await memory.search("boat")] == ["old.md"]


async def test_a_filter_without_words_to_search_for_finds_nothing(memory: Memory) -> None:
    """S2: filters narrow a search; an empty query stays empty."""
    assert await memory.search("", type="user") == []
    with pytest.raises(InvalidArguments, match="unknown filter"):
        await memory.search("boat", kind="user")  # type: ignore[call-arg]  # what a caller without a type checker may write


async def test_a_least_score(tmp_path: Path) -> None:
    """V4: with `min_score` only files that cover so much of the query are found, in Python and in the terminal."""
    (tmp_path / "all.md").write_text("A red boat in the harbour.")
    (tmp_path / "part.md").write_text("A boat.")
    async with open_memory(tmp_path) as memory:
        both = await memory.search("red boat harbour")
        assert [match.path for match in both] == ["all.md", "part.md"]
        assert [match.path for match in await memory.search("red boat harbour", min_score=0.9)] == ["all.md"]
    done = mdmemory("search", "red", "boat", "harbour", "--min-score", "0.9", "-f", ".", cwd=tmp_path)
    assert "all.md" in done.stdout and "part.md" not in done.stdout
