"""Facts and the timeline of an entity, over a folder of files."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from command import mdmemory, write
from counting import CountingBackend
from folders import memory as memory_file

from mdmemory import Memory, open_memory
from mdmemory.backends.local import LocalBackend
from mdmemory.errors import InvalidArguments

ANN = """
Met in Lund.

- works at:: [[Acme]] (2024-01 → 2025-03)
- works at:: [[beta inc|Beta]] (2025-04 →)
- lives in:: Kiel
- likes:: tea
- likes:: chess
"""
FILES = {
    "people/ann.md": memory_file("Ann", type="reference", body=ANN, aliases=["Annie", "A. B."]),
    "firms/acme.md": memory_file("Acme", "makes anvils", "reference"),
    "firms/beta inc.md": memory_file("Beta", type="reference", body="- owned by:: [Acme](acme.md) (2025 →)"),
    "offer.md": memory_file("Offer", "what was offered", "project", "See [[Acme]].\n\nAnd [[Acme]].", date="2024-06-01"),
    "visit.md": memory_file("Visit", "to the works", "project", tags=["acme"], date="2023-02-01"),
    "plain.md": memory_file("Plain", "no links, no facts", "project"),
}


def put(folder: Path, files: dict[str, bytes] = FILES) -> None:
    """Files, as a person puts them there."""
    for path, data in files.items():
        write(folder / path, data)


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    """People and firms."""
    put(tmp_path)
    async with open_memory(tmp_path) as memory:
        yield memory


async def said(memory: Memory, *asked: str | None, as_of: str | None = None) -> list[str]:
    """Subject, predicate and object of each fact."""
    return [f"{fact.subject} {fact.predicate} {fact.object}" for fact in await memory.facts(*asked, as_of=as_of)]


async def told(memory: Memory, entity: str, as_of: str | None = None) -> list[str]:
    """Each event as a line."""
    events = await memory.timeline(entity, as_of=as_of)
    return [f"{event.valid_from or ''}…{event.valid_until or ''} {event.kind} {event.text}" for event in events]


async def test_a_fact_holds_in_its_window(memory: Memory) -> None:
    """V3: as of May 2024 it is the old employer, today the new one, and in the month between neither is lost."""
    assert await said(memory, "Ann", "works at", as_of="2024-05") == ["Ann works at Acme"]
    assert await said(memory, "Ann", "works at") == ["Ann works at Beta"]
    assert await said(memory, "Ann", "works at", as_of="2025-03-31") == ["Ann works at Acme"]
    assert await said(memory, "Ann", "works at", as_of="2023-12-31") == []


async def test_facts_are_asked_by_any_part(memory: Memory) -> None:
    """V3: by subject, predicate or object, whatever the case; a link's object is found by what the file is called."""
    assert await said(memory, "people/ann", "WORKS-AT") == await said(memory, "annie", "works at") == ["Ann works at Beta"]
    assert await said(memory, None, None, "Beta") == await said(memory, None, None, "firms/beta inc.md") == ["Ann works at Beta"]
    assert await said(memory, None, None, "acme") == ["Beta owned by Acme"]
    assert await said(memory, None, None, "kiel") == ["Ann lives in Kiel"]
    assert await said(memory, "Nobody") == [] == await said(memory, "Ann", "owned by")


async def test_a_timeline_is_in_the_order_of_time(memory: Memory) -> None:
    """V3: facts of which the entity is the object, its own, and files that link to it or have its tag, each file once."""
    assert await told(memory, "Acme") == [
        "2023-02-01… tag Visit — to the works",
        "2024-01…2025-03 fact Ann — works at: Acme",
        "2024-06-01… link Offer — what was offered",
        "2025… fact Beta — owned by: Acme",
    ]
    assert [line.partition("fact ")[2] for line in await told(memory, "Ann")] == [
        "Ann — lives in: Kiel",
        "Ann — likes: tea",
        "Ann — likes: chess",
        "Ann — works at: Acme",
        "Ann — works at: Beta",
    ]


async def test_a_timeline_as_of_a_day(memory: Memory) -> None:
    """V3: only what held on that day."""
    assert await told(memory, "Acme", "2024-03") == [
        "2023-02-01… tag Visit — to the works",
        "2024-01…2025-03 fact Ann — works at: Acme",
    ]


async def test_an_entity_needs_no_file(memory: Memory, tmp_path: Path) -> None:
    """V3: a name that only facts, links and tags use has a timeline too."""
    put(tmp_path, {"bo.md": memory_file("Bo", body="- works at:: [[Gamma]] (2020)"), "e.md": memory_file("E", tags=["gamma"])})
    put(tmp_path, {"c.md": memory_file("C", body="- worked:: for [[Gamma#Past|them]] once (2019)\n- writes:: C#")})
    assert [line.split(" ")[1] for line in await told(memory, "gamma")] == ["fact", "fact", "tag"]
    assert [line.split(" ")[1] for line in await told(memory, "[[Gamma|the firm]]")] == ["fact", "fact", "tag"]
    assert (await said(memory, None, None, "c#"), await said(memory, None, None, "C")) == (["C writes C#"], [])
    assert await told(memory, "Nobody at all") == []


async def test_a_name_that_could_mean_several_is_refused(memory: Memory, tmp_path: Path) -> None:
    """V3: the error lists the files, a path is understood, and a name goes before an alias."""
    put(tmp_path, {"cats/ann.md": memory_file("Ann", "a cat"), "eve.md": memory_file("Eve", aliases=["Acme", "Annie"])})
    with pytest.raises(InvalidArguments, match=r"'Ann' could be cats/ann\.md, people/ann\.md; give the path"):
        await memory.timeline("Ann")
    with pytest.raises(InvalidArguments, match=r"'annie' could be eve\.md, people/ann\.md"):
        await memory.facts("annie")
    assert await said(memory, "people/ann.md", "works at") == ["Ann works at Beta"]
    assert "Beta — owned by: Acme" in (await told(memory, "Acme"))[-1]


async def test_contradictions_are_shown(memory: Memory, tmp_path: Path) -> None:
    """V3: of two open values both stay and name each other; what has no dates, or has ended, contradicts nothing."""
    write(tmp_path / "people/ann.md", FILES["people/ann.md"] + b"- works at:: [[Gamma]] (2026-02 \xe2\x86\x92)\n")
    found = {event.fact.object: event.contradicts for event in await memory.timeline("Ann") if event.fact}
    assert found["Beta"] == ("Gamma (people/ann.md, line 15)",) and found["Gamma"] == ("Beta (people/ann.md, line 11)",)
    assert [found[name] for name in ("Acme", "tea", "chess", "Kiel")] == [()] * 4


async def test_a_superseded_file_is_part_of_the_story(memory: Memory, tmp_path: Path) -> None:
    """V3, D4: its facts end where the new file begins, and the name means the new one."""
    old = memory_file("Boss", body="- is:: Dora", valid_from="2022")
    new = memory_file("Boss", body="- is:: Emil", supersedes="boss-old.md", valid_from="2024-09-01")
    put(tmp_path, {"boss-old.md": old, "boss.md": new})
    assert await told(memory, "boss") == [
        "2022…2024-09-01 fact Boss — is: Dora",
        "2024-09-01… supersedes Boss supersedes Boss (boss-old.md)",
        "2024-09-01… fact Boss — is: Emil",
    ]
    assert await said(memory, "Boss", as_of="2024-05") == ["Boss is Dora"]
    assert await said(memory, "Boss") == ["Boss is Emil"]


async def test_facts_last_no_longer_than_their_file(memory: Memory, tmp_path: Path) -> None:
    """M6: what has no dates of its own takes those of its file; an expired file is hidden, and told of in the timeline."""
    put(tmp_path, {"lease.md": memory_file("Lease", body="- rent:: 900", valid_from="2020", valid_until="2021-06")})
    assert (await said(memory, "Lease"), await said(memory, "Lease", as_of="2020-07")) == ([], ["Lease rent 900"])
    assert await told(memory, "Lease") == ["2020…2021-06 fact Lease — rent: 900"]


async def test_only_what_may_hold_facts_is_read(tmp_path: Path) -> None:
    """V3: the first question reads files with facts, or links, in one round trip; the next reads nothing, until one changes."""
    put(tmp_path)
    async with open_memory(tmp_path) as memory:  # what it learns outlasts it
        await memory.folder.refresh()
    backend = CountingBackend(LocalBackend(tmp_path))
    async with open_memory(backend) as memory:
        await memory.folder.refresh()
        assert {path for path, known in memory.folder.files.items() if known.may_state} == {"people/ann.md", "firms/beta inc.md"}
        assert [path for path, known in memory.folder.files.items() if not known.may_state and known.may_link] == ["offer.md"]
        reads = []
        for ask in (memory.facts, memory.facts, lambda: memory.timeline("Acme"), lambda: memory.timeline("Ann"), memory.facts):
            before = backend.calls.count("read")
            await ask()
            reads.append(backend.calls.count("read") - before)
        assert reads == [1, 0, 1, 0, 0]
        write(tmp_path / "people/ann.md", memory_file("Ann", body="- works at:: [[Gamma]]"))
        assert await said(memory, "Ann") == ["Ann works at Gamma"]
        (tmp_path / "people/ann.md").unlink()
        assert await said(memory) == ["Beta owned by Acme"]


def test_the_command_adds_and_ends_facts(tmp_path: Path) -> None:
    """V3: `mdmemory fact` writes one line, `--ends` ends what was open, `--until` ends the fact itself; `timeline` shows it."""
    put(tmp_path / "memory")
    added = mdmemory("fact", "people/ann.md", "works at", "[[Gamma]]", "--from", "2026-02", "--ends", cwd=tmp_path)
    assert "- works at:: [[beta inc|Beta]] (2025-04 → 2026-02)" in added.stdout and "[[Gamma]] (2026-02 →)" in added.stdout
    ended = mdmemory("fact", "people/ann.md", "works at", "[[Gamma]]", "--until", "2026-05", "--json", cwd=tmp_path)
    assert [fact["valid_until"] for fact in json.loads(ended.stdout)] == ["2025-03", "2026-02", "2026-05"]
    shown = mdmemory("timeline", "gamma", "--json", cwd=tmp_path)
    assert [(event["kind"], event["valid_from"]) for event in json.loads(shown.stdout)] == [("fact", "2026-02")]
    for arguments, code, message in [
        (("fact", "no.md", "a", "b"), 1, "There is no no.md in memory"),
        (("fact", "people/ann.md", "a", "b", "--ends"), 2, "--ends needs --from"),
        (("fact", "people/ann.md", "a", "b", "--from", "soon"), 2, "does not say this as one line"),
        (("timeline", "Ann", "--as-of", "soon"), 2, "as_of must be a day"),
    ]:
        done = mdmemory(*arguments, cwd=tmp_path)
        assert (done.returncode, message in done.stderr) == (code, True), done.stderr
