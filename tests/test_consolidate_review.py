"""What a person does with a proposal, while others write, in several folders, and when the process dies."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from children import end, start
from consolidating import LOSSY, MERGE, OTHERS, TEA, WHOLE, files_of, made, proposed, reply, tea, waiting, wish
from folders import log_of, memory, on_disk
from mounting import mounted, put
from test_history_kill import killed
from test_recovery import healed, places

from mdmemory import Config
from mdmemory.care.consolidate import consolidate
from mdmemory.care.history import events, undo
from mdmemory.errors import Conflict, InvalidArguments, InvalidMemoryFile, InvalidPath, NotThere, PermissionDenied
from mdmemory.files.changes import Change, Delete
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.proposals import accept, edit, find_proposal, list_proposals, reject
from mdmemory.folder.proposals.proposal import _measured
from mdmemory.folder.proposals.queue import places as places_of
from mdmemory.folder.purge import purge

__all__ = ["places"]


async def test_what_changed_since_is_not_overwritten(tmp_path: Path) -> None:
    """D2, E5: an edit between proposal and yes makes it stale: it says so, is not accepted or edited, and the next run is anew."""
    folder = tea(tmp_path)
    proposal = await waiting(folder, MERGE)
    (tmp_path / "user/morning.md").write_bytes(memory("Morning", "mornings", body="Every morning the user drinks black tea."))
    (stale,) = await list_proposals(folder)
    assert stale.is_stale and stale.stale == "user/morning.md has changed since"
    for act in (accept(folder, proposal, force=True), edit(folder, proposal, {"user/tea.md": "# Tea\n"})):
        with pytest.raises(Conflict, match=r"out of date: user/morning\.md has changed since"):
            await act
    assert (tmp_path / "user/drinks.md").exists()
    (cluster,) = (await consolidate(folder)).clusters
    assert "user/morning.md" in cluster.texts and (await proposed(folder, reply())).proposals == ()
    assert await list_proposals(folder) == []


@pytest.mark.parametrize(("what", "told"), [("gone", "user/tea-from.md is gone"), ("taken", "user/all.md is there by now")])
async def test_a_source_that_went_and_a_place_that_is_taken(tmp_path: Path, what: str, told: str) -> None:
    """D2: a proposal whose source is gone, or whose place is taken, says so and writes nothing."""
    folder = tea(tmp_path)
    proposal = await waiting(folder, wish("merge", list(TEA), made("user/all.md", WHOLE)))
    if what == "gone":
        (tmp_path / "user/tea-from.md").unlink()
    else:
        (tmp_path / "user/all.md").write_bytes(memory("All", "all"))
    before = files_of(tmp_path)
    with pytest.raises(Conflict, match=told):
        await accept(folder, proposal, force=True)
    assert files_of(tmp_path) == before
    assert len((await consolidate(folder)).clusters) == 1


async def test_an_edit_in_the_very_moment_is_a_conflict(tmp_path: Path) -> None:
    """D2, E5: what is edited after the last look and before the write is neither lost nor merged away."""
    folder = tea(tmp_path)
    proposal = await waiting(folder, MERGE)
    edited = memory("Tea", "drinks green tea", body="Drinks green tea, never coffee. Not even at night.")

    def policy(change: Change, author: str) -> Any:
        (tmp_path / "user/tea.md").write_bytes(edited)
        return "allow"

    with pytest.raises(Conflict):
        await accept(on_disk(tmp_path, policy=policy), proposal)
    assert files_of(tmp_path) == {**TEA, **OTHERS, "user/tea.md": edited}


async def test_edited_by_a_person(tmp_path: Path) -> None:
    """D2: a person's words take the place of the model's, losses are counted anew, and what waits is what is accepted."""
    folder = tea(tmp_path)
    proposal = await waiting(folder, LOSSY)
    for texts, error in (
        ({"user/home.md": "x"}, InvalidArguments),
        ({"user/tea.md": " "}, InvalidMemoryFile),
        ({"user/tea.md": "---\nname: [\n---\n"}, InvalidMemoryFile),
        ({"user/tea.md": "half \ud800"}, InvalidMemoryFile),
    ):
        with pytest.raises(error):
            await edit(folder, proposal, texts)
    text = proposal.texts["user/tea.md"][1] or ""
    edited = await edit(folder, proposal.id[:4], {"user/tea.md": text + "With honey from Yunnan, at 80 degrees.\n"})
    assert edited.is_edited and edited.id == proposal.id and edited.guard == "" and edited.losses.details == ()
    with pytest.raises(Conflict, match="edited meanwhile"):
        await accept(folder, proposal, force=True)
    await accept(folder, edited)
    assert (tmp_path / "user/tea.md").read_text().endswith("With honey from Yunnan, at 80 degrees.\n")
    assert log_of(tmp_path)[-2]["reason"].startswith(f"merge {proposal.id}, edited: ")


async def test_what_is_decided_is_decided(tmp_path: Path) -> None:
    """D2: what was accepted or rejected can't be decided again; an unknown id is an error, and so is one that begins several."""
    folder = tea(tmp_path)
    await proposed(folder, reply(wish("retire", ["user/tea.md"]), wish("retire", ["user/drinks.md"])))
    one, two = await list_proposals(folder)
    await reject(folder, one)
    await accept(folder, two, force=True)
    for proposal in (one, two):
        for act in (accept(folder, proposal, force=True), reject(folder, proposal.id), edit(folder, proposal, {})):
            with pytest.raises(NotThere, match="`mdmemory review` lists"):
                await act
    for unknown in ("ffffffff", ""):
        with pytest.raises(NotThere):
            await find_proposal(folder, unknown)


async def test_two_processes_accept_at_once(tmp_path: Path) -> None:
    """D2: of two processes that accept the same proposal at the same time, both succeed, and one undo takes it back."""
    proposal = await waiting(tea(tmp_path), MERGE)
    ready, go = os.pipe()

    def work() -> None:
        async def run() -> None:
            folder = on_disk(tmp_path, config=Config(watch=False))
            await list_proposals(folder)
            os.read(ready, 1)
            with contextlib.suppress(NotThere):  # the other one was quicker altogether
                await accept(folder, proposal)

        asyncio.run(run())

    children = [start(work) for _ in range(2)]
    os.write(go, b"12")
    assert [end(child) for child in children] == [0, 0]
    folder = on_disk(tmp_path)
    assert files_of(tmp_path).keys() == {"user/tea.md", *OTHERS} and await list_proposals(folder) == []
    assert (await consolidate(folder)).clusters == ()
    await undo(folder, (await events(folder, author="consolidation"))[0])
    assert files_of(tmp_path) == {**TEA, **OTHERS}


@pytest.mark.slow
def test_killed_while_it_is_accepted(places: Path) -> None:
    """E6, D2: after a kill at any step of an accept, the next open finds the merge done or not begun, and never half of it."""
    seed, call, code, ends = places / "seed", 1, -signal.SIGKILL, set()
    asyncio.run(waiting(tea(seed), MERGE))

    async def work(folder: MemoryFolder) -> None:
        await accept(folder, (await list_proposals(folder))[0])

    while code == -signal.SIGKILL:
        root = places / str(call)
        code = killed(seed, root, call, work)
        asyncio.run(healed(root))
        is_done = files_of(root).keys() == {"user/tea.md", *OTHERS}
        assert is_done or files_of(root) == {**TEA, **OTHERS}
        assert not (root / ".mdmemory/tombstones").exists()
        waits = asyncio.run(list_proposals(on_disk(root)))
        assert waits == [] if is_done else [each.stale for each in waits] == [""]
        assert is_done is False or asyncio.run(consolidate(on_disk(root))).clusters == ()
        ends.add(is_done)
        call += 3
    assert code == 0 and ends == {False, True}


async def test_each_mount_has_its_own_queue(tmp_path: Path) -> None:
    """D2: files of two folders are never in one proposal, which waits where its files are; what is only read is left alone."""
    for name in ("home", "team", "docs"):
        put(tmp_path / name, TEA)
    async with mounted(tmp_path, team={}, docs={"access": ["read"]}, inbox={"access": ["append"]}) as memory:
        team = [f"team/{path}" for path in TEA]
        good = wish("merge", team, made("team/user/tea.md", WHOLE))
        escapes = [
            wish("merge", team, made(path, WHOLE)) for path in ("user/other.md", "docs/tea.md", "inbox/tea.md", "Team/tea.md")
        ]
        report = await proposed(
            memory.folder, reply(MERGE), reply(*escapes, wish("merge", list(TEA), made("user/x.md", "x")), good)
        )
        assert [sorted(cluster.texts) for cluster in report.clusters] == [sorted(TEA), sorted(team)]
        assert len(report.problems) == 5 and len(report.proposals) == 2
        for proposal in await list_proposals(memory.folder):
            await accept(memory.folder, proposal, force=True)
    assert [sorted(files_of(tmp_path / name)) for name in ("home", "team", "docs")] == [["user/tea.md"]] * 2 + [sorted(TEA)]
    assert [(tmp_path / name / ".mdmemory/proposals").exists() for name in ("home", "team", "docs")] == [True, True, False]


async def test_the_policy_is_asked(tmp_path: Path) -> None:
    """D2: what a policy forbids is not done, whoever accepted it, and the proposal goes on waiting."""
    proposal = await waiting(tea(tmp_path), MERGE)
    folder = on_disk(tmp_path, policy=lambda change, author: "deny" if author == "consolidation" else "allow")
    with pytest.raises(PermissionDenied):
        await accept(folder, proposal, force=True)
    assert files_of(tmp_path) == {**TEA, **OTHERS} and len(await list_proposals(folder)) == 1


@pytest.mark.parametrize("wanted", [{"paths": ["user/tea-from.md"]}, {"text": "Yunnan"}])
async def test_purge_reaches_what_waits(tmp_path: Path, wanted: Any) -> None:
    """D3: what is purged is in no proposal any longer."""
    folder = tea(tmp_path)
    await waiting(folder, MERGE)
    assert b"Yunnan" in (tmp_path / ".mdmemory/proposals").read_bytes()
    purged = await purge(folder, wanted.get("paths", ()), text=wanted.get("text"))
    assert purged.left == () and await list_proposals(folder) == []
    assert b"Yunnan" not in (tmp_path / ".mdmemory/proposals").read_bytes()


async def test_a_merge_is_not_forgetting(tmp_path: Path) -> None:
    """D3: what was merged away may be learnt anew under its old name, other than what was deleted."""
    folder = tea(tmp_path)
    await accept(folder, await waiting(folder, MERGE))
    assert not (tmp_path / ".mdmemory/tombstones").exists()
    await folder.apply([Delete("user/tea.md")], "person", "forget")
    assert (tmp_path / ".mdmemory/tombstones").read_text().count("\n") == 1


ABSENT = [["absent.md", None, "x"]]


async def test_a_damaged_queue_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """D2: lines of the queue that can't be read are passed over, and one whose paths lead elsewhere can't be accepted."""
    folder = tea(tmp_path)
    proposal = await waiting(folder, MERGE)
    queue = tmp_path / ".mdmemory/proposals"
    forged = {"id": "f" * 8, "kind": "merge", "at": "2026-11-30T00:00:00+00:00", "reason": "x", "files": ABSENT}
    lines = [
        {**forged, "files": [["../out.md", None, "x"]]},
        {**forged, "id": "e" * 8, "files": [[".mdmemory/log.jsonl", None, "x"]]},
        {**forged, "files": 1}, {**forged, "at": "soon", "files": []}, {**forged, "kind": "burn", "files": []}, [1],
        {**forged, "id": "d" * 8, "files": []}, {**forged, "id": "c" * 8, "at": "0001-01-01T00:00:00+14:00"},
        {**forged, "id": "c" * 8, "files": [["a.md", None, "\ud800"]]}, {**forged, "id": "c" * 8, "reason": "\ud800"},
        {**forged, "id": "c" * 8, "kind": "retire", "files": [["a.md", None, None]]}, {**forged, "id": ""},
    ]  # fmt: skip
    queue.write_bytes(queue.read_bytes() + b"\xff\n{\n" + b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    found = {each.id for each in await list_proposals(folder)}
    assert found == {proposal.id, "f" * 8, "e" * 8}
    for id in found - {proposal.id}:
        with pytest.raises(InvalidPath):
            await accept(folder, id, force=True)
    await accept(folder, proposal)
    assert not (tmp_path.parent / "out.md").exists()


async def test_a_queue_that_is_full_takes_no_more(tmp_path: Path) -> None:
    """D2: while a hundred proposals wait, no more are made."""
    folder = tea(tmp_path)
    proposal = await waiting(folder, MERGE)
    (place,) = places_of(folder)
    others = [replace(proposal, id=f"{number:08}") for number in range(99)]
    await place.change(lambda queue: replace(queue, waiting=(*queue.waiting, *others)))
    with pytest.raises(InvalidArguments, match="100 proposals wait already"):
        await place.change(lambda queue: replace(queue, waiting=(*queue.waiting, replace(proposal, id="one more"))))


async def test_a_proposal_is_compared_once(tmp_path: Path) -> None:
    """D2: however often what waits is listed, shown and told, its texts are compared when they are new."""
    folder = tea(tmp_path)
    proposal = await waiting(folder, MERGE)
    assert proposal.guard == "" and proposal.losses.lines
    known = _measured.cache_info().misses
    for _ in range(3):
        (again,) = await list_proposals(folder)
        assert again.as_json()["lost"]["lines"] and again.is_lossless in (True, False)
    assert _measured.cache_info().misses == known
    edited = await edit(folder, again, {"user/tea.md": (again.texts["user/tea.md"][1] or "") + "Or 90 degrees.\n"})
    assert "90" in edited.losses.new and _measured.cache_info().misses == known + 1
