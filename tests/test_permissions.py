"""Who may write what: AM8 as far as one folder goes, and AM7 below the tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from folders import everything, memory, on_disk, visible
from mounting import mounted

from mdmemory.backends.protocol import etag_of
from mdmemory.config import Config
from mdmemory.errors import InvalidMemoryFile, PermissionDenied
from mdmemory.files.changes import Change, Create, Delete, Rename, Replace
from mdmemory.folder.permissions import allow_all, read_only

A = memory("Alpha")
PLAIN = b"# A heading\n\nand a line\n"
CHANGES = (Create("new.md", A), Replace("a.md", memory("Alpha", "new"), etag_of(A)), Delete("a.md"), Rename("a.md", "z.md"))


def in_time(answer: Any) -> Callable[[Change, str], Any]:
    """A policy, or a person, that takes a moment."""

    async def later(change: Change, author: str) -> Any:
        await asyncio.sleep(0)
        return answer

    return later


def at_once(answer: Any) -> Callable[[Change, str], Any]:
    """A policy, or a person, that answers at once."""
    return lambda change, author: answer


@pytest.mark.parametrize("change", CHANGES, ids=str)
@pytest.mark.parametrize(
    ("policy", "confirm", "reason"),
    [
        (read_only, None, "is not allowed here"),
        (at_once("deny"), at_once(True), "is not allowed here"),
        (in_time("deny"), None, "is not allowed here"),
        (at_once("no such answer"), at_once(True), "is not allowed here"),
        (at_once("ask"), None, "nobody to ask"),
        (at_once("ask"), at_once(False), "refused by the user"),
        (in_time("ask"), in_time(False), "refused by the user"),
        (in_time("ask"), in_time(None), "refused by the user"),
    ],
)
async def test_what_is_denied_is_not_written(policy: Any, confirm: Any, reason: str, change: Change, tmp_path: Path) -> None:
    """AM8: a change that the policy or the person denies leaves every byte as it was, and says that nothing was written."""
    folder = on_disk(tmp_path, {"a.md": A}, policy=policy, confirm=confirm)
    with pytest.raises(PermissionDenied, match=f"{reason}.*Nothing was written"):
        await folder.apply([change], "agent:a", "test")
    assert everything(tmp_path) == {"a.md": etag_of(A)}


@pytest.mark.parametrize(
    ("policy", "confirm"),
    [(allow_all, None), (in_time("allow"), None), (at_once("ask"), at_once(True)), (in_time("ask"), in_time(True))],
)
async def test_what_is_allowed_is_written(policy: Any, confirm: Any, tmp_path: Path) -> None:
    """AM8: policies and persons may answer at once or in time."""
    await on_disk(tmp_path, policy=policy, confirm=confirm).apply([Create("a.md", A)], "agent:a", "test")
    assert visible(tmp_path)["a.md"] == A


async def test_a_dry_run_asks_nobody(tmp_path: Path) -> None:
    """AM8: a dry run says what would be written where a person may allow it, asks nobody, and still says what is denied."""
    asked: list[Change] = []

    def confirm(change: Change, author: str) -> bool:
        asked.append(change)
        return False

    for person in (confirm, None):
        folder = on_disk(tmp_path, policy=at_once("ask"), confirm=person)
        applied = await folder.apply([Create("a.md", A)], "agent:a", "test", dry_run=True)
        assert [item.path for item in applied.files] == ["a.md"]
    with pytest.raises(PermissionDenied):
        await on_disk(tmp_path, policy=at_once("deny")).apply([Create("a.md", A)], "agent:a", "test", dry_run=True)
    async with mounted(tmp_path, policy=at_once("ask"), team={}) as memory_:
        applied = await memory_.folder.apply([Create("team/a.md", A)], "agent:a", "test", dry_run=True)
    assert [item.path for item in applied.files] == ["team/a.md"] and asked == [] and visible(tmp_path) == {}


async def test_the_policy_sees_every_change_and_its_author(tmp_path: Path) -> None:
    """AM8: the policy is asked about each change of a commit, and one denial stops all of them."""
    asked: list[tuple[str, str]] = []

    def policy(change: Change, author: str) -> Any:
        asked.append((change.path, author))
        return "deny" if change.path == "secret.md" else "allow"

    folder = on_disk(tmp_path, policy=policy)
    with pytest.raises(PermissionDenied, match=r"secret\.md"):
        await folder.apply([Create("a.md", A), Create("secret.md", A)], "agent:s1", "test")
    assert asked == [("a.md", "agent:s1"), ("secret.md", "agent:s1")] and everything(tmp_path) == {}


async def test_a_person_is_asked_only_where_the_policy_says_so(tmp_path: Path) -> None:
    """AM8: with a policy that asks about deletions, only those are asked about; the folder stays free while one is."""
    asked: list[Change] = []
    answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def confirm(change: Change, author: str) -> bool:
        asked.append(change)
        return await answer

    def policy(change: Change, author: str) -> Any:
        return "ask" if isinstance(change, Delete) else "allow"

    folder = on_disk(tmp_path, {"a.md": A}, policy=policy, confirm=confirm)
    deleting = asyncio.create_task(folder.apply([Delete("a.md")], "agent:a", "test"))
    await asyncio.sleep(0)
    await asyncio.wait_for(folder.apply([Create("b.md", memory("Beta"))], "agent:a", "test"), 5)
    assert asked == [Delete("a.md")] and set(visible(tmp_path)) == {"a.md", "b.md", "MEMORY.md"}
    answer.set_result(True)
    await deleting
    assert set(visible(tmp_path)) == {"b.md", "MEMORY.md"}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (memory("A", type="note"), "must be one of user, feedback, project, reference"),
        (memory("A", type="User"), "must be one of user, feedback, project, reference"),
        (b"---\nname: A\ndescription: d\n---\nx\n", "has no type; it must be one of user, feedback, project, reference"),
        (b"---\ndescription: d\ntype: user\n---\nx\n", "needs a name"),
        (b"---\nname: A\ntype: user\n---\nx\n", "needs a description"),
        (b"just text\n", "must begin with frontmatter"),
        (b"", "must begin with frontmatter"),
        (b"---\nname: [\n---\n", "line"),
        (b"---\nname: A\n", "---"),
        (b"caf\xe9\n", "not UTF-8"),
    ],
)
async def test_what_agents_create_is_typed(data: bytes, reason: str, tmp_path: Path) -> None:
    """AM7: what an agent creates without full frontmatter is refused, with the shape of a memory file; nothing is written."""
    folder = on_disk(tmp_path, {"a.md": A})
    with pytest.raises(InvalidMemoryFile, match=reason):
        await folder.apply([Create("new.md", data)], "agent:a", "Write")
    assert everything(tmp_path) == {"a.md": etag_of(A)}


async def test_configured_types_are_types(tmp_path: Path) -> None:
    """AM7: a type that the configuration adds is one that agents may use."""
    folder = on_disk(tmp_path, config=Config(extra_types={"recipe": "how to cook"}))
    await folder.apply([Create("a.md", memory("Soup", type="recipe"))], "agent:a", "Write")
    with pytest.raises(InvalidMemoryFile, match="reference, recipe"):
        await folder.apply([Create("b.md", memory("Soup", type="dish"))], "agent:a", "Write")


async def test_people_may_keep_plain_files(tmp_path: Path) -> None:
    """A person may create a file without frontmatter, and an agent's edit of it may leave it so."""
    folder = on_disk(tmp_path)
    await folder.apply([Create("a.md", PLAIN)], "person", "test")
    edited = PLAIN + b"and one by an agent\n"
    await folder.apply([Replace("a.md", edited, etag_of(PLAIN))], "agent:a", "Edit")
    assert visible(tmp_path)["a.md"] == edited and folder.listed["a.md"].name == "A heading"


async def test_a_typed_file_stays_typed(tmp_path: Path) -> None:
    """AM7: an agent's edit may not take the type, the name or the fences away; a person's may."""
    folder = on_disk(tmp_path, {"a.md": A})
    for data in (
        A.replace(b"type: user\n", b""),
        A.replace(b"type: user", b"type: odd"),
        b"only text\n",
        A.replace(b"---\n\n", b"\n"),
    ):
        with pytest.raises(InvalidMemoryFile):
            await folder.apply([Replace("a.md", data, etag_of(A))], "agent:a", "Edit")
    assert everything(tmp_path) == {"a.md": etag_of(A)}
    await folder.apply([Replace("a.md", b"only text\n", etag_of(A))], "person", "test")


@pytest.mark.parametrize("author", ["agent:a", "person"])
async def test_nobody_breaks_a_file_through_us_and_anyone_mends_one(author: str, tmp_path: Path) -> None:
    """F2: a change that would leave malformed fences is refused whoever asks; one that mends a broken file is let through."""
    broken = b"---\nname: [\n---\nx\n"
    folder = on_disk(tmp_path, {"a.md": A, "bad.md": broken})
    with pytest.raises(InvalidMemoryFile):
        await folder.apply([Replace("a.md", broken, etag_of(A))], author, "Edit")
    with pytest.raises(InvalidMemoryFile):
        await folder.apply([Replace("bad.md", broken + b"y\n", etag_of(broken))], author, "Edit")
    assert visible(tmp_path) == {"a.md": A, "bad.md": broken}
    await folder.apply([Replace("bad.md", memory("Mended"), etag_of(broken))], author, "Edit")
    assert folder.files["bad.md"].problem is None
