"""Purges where several folders are one, where two texts would leave one name, and where a text is spelt in two ways."""

from __future__ import annotations

from pathlib import Path

import pytest
from folders import memory, on_disk, visible
from test_purge import holding

from mdmemory import Config, Mount, open_memory
from mdmemory.agent.past_turns import last_turns
from mdmemory.care import history
from mdmemory.errors import InvalidArguments
from mdmemory.files.changes import Create, Rename
from mdmemory.folder.purge import purge

CODE = "The launch code of the rocket is seven seven nine"


async def test_what_lies_in_a_mount_is_named_in_the_home(tmp_path: Path) -> None:
    """D3: the home's conversations, reasons and past turns lose a mounted file too; what else says the same is told of."""
    on_disk(tmp_path / "docs", {"copy.md": f"# Copy\n\n{CODE}\n"})
    mounts = {"team/": Mount(tmp_path / "team"), "docs/": Mount(tmp_path / "docs", access="read")}
    async with open_memory(tmp_path / "home", mounts=mounts, config=Config(cache=tmp_path / "cache")) as opened:
        folder = opened.folder
        turn = await opened.session("monday").turn(f"Remember: {CODE}")
        await folder.apply([Create("team/code.md", memory("Code", "rocket launch", body=CODE))], "agent:monday", "Write")
        await folder.apply([Create("user/other.md", memory("Other", body=CODE))], "person", "see team/code.md")
        await turn.finish("Kept.")
        turn = await opened.session("tuesday").turn("rocket launch?")
        await turn.take_hint()
        await turn.finish("Yes.")
        assert "team/code.md" in {file.path for past in last_turns(folder) for file in past.files}
        purged = await purge(folder, ["team/code.md"], journal=True)
        assert purged.files == ("team/code.md",) and purged.messages == 1
        assert {left.where for left in purged.left} == {"user/other.md", "docs/copy.md"}
        assert last_turns(folder) == [] and not any("code.md" in event.reason for event in await history.events(folder))
    assert holding(tmp_path, "team/code.md") == []
    assert [path for path in holding(tmp_path, CODE) if "journal" in path] == []


async def test_two_texts_leave_two_names(tmp_path: Path) -> None:
    """D3: what the second purge renames takes no name that the first one gave; each file keeps its own history."""
    folder = on_disk(tmp_path)
    await folder.refresh()
    for name in ("Alice", "Robert"):
        await folder.apply([Create(f"people/{name}.md", memory(f"Friend {name}", name, body=f"{name} sails."))], "person", "Write")
    await folder.apply([Rename("people/Robert.md", "people/Robert-Roe.md")], "person", "tidy")
    for name in ("Alice", "Robert"):
        purged = await purge(folder, text=name)
        assert purged.left == () and holding(tmp_path, name) == []
    assert {path for path in visible(tmp_path) if path.startswith("people/")} == {"people/purged.md", "people/purged-Roe.md"}
    kinds = [file.kind for event in await history.events(folder, path="people/purged-Roe.md") for file in event.files]
    assert kinds == ["renamed", "created"]


async def test_names_that_would_be_one(tmp_path: Path) -> None:
    """D3: of two files whose names differ only in what goes, one gets a number, in the history as well."""
    folder = on_disk(tmp_path)
    await folder.refresh()
    for name in ("Robert.md", "purged.md"):
        await folder.apply([Create(name, memory(f"Of {name}", body=f"On {name}."))], "person", "Write")
    assert (await purge(folder, text="Robert")).left == ()
    assert set(visible(tmp_path)) == {"purged.md", "purged-2.md", "MEMORY.md"}
    assert [event.files[0].kind for event in await history.events(folder, path="purged-2.md")] == ["created"]
    assert [event.files[0].kind for event in await history.events(folder, path="purged.md")] == ["created"]


async def test_an_accent_may_be_two_characters(tmp_path: Path) -> None:
    """D3, P2: a text is found however its accents are written."""
    folder = on_disk(tmp_path, {"a.md": memory("A", body="Ren\u00e9e sails."), "b.md": memory("B", body="Rene\u0301e sails.")})
    assert (await purge(folder, text="Ren\u00e9e")).left == ()
    assert all("(purged) sails." in visible(tmp_path)[name].decode() for name in ("a.md", "b.md"))


async def test_names_that_come_from_a_text_are_told(tmp_path: Path) -> None:
    """D3: a title becomes a name in small letters, in which the exact text does not stand: such names are told, and no others."""
    names = ("the-code-is-8341-a.md", "code-18341-a.md", "8341-all.md")
    folder = on_disk(tmp_path, {name: memory("Code", body="It is 8341-A.") for name in names})
    purged = await purge(folder, text="8341-A")
    assert purged.left == () and purged.beyond[1:] == (
        "names of files that read like it: the-code-is-8341-a.md; rename or purge them",
    )
    purged = await purge(folder, ["the-code-is-8341-a.md"])
    assert purged.left == () and len(purged.beyond) == 1


@pytest.mark.parametrize("text", ["purged", "(purged)", "urge"])
async def test_the_mark_itself_can_not_be_purged(text: str, tmp_path: Path) -> None:
    """What stands in place of what goes would bring it back: refused before anything is changed."""
    folder = on_disk(tmp_path, {"a.md": memory("A", body="It was purged.")})
    before = visible(tmp_path)
    with pytest.raises(InvalidArguments, match="written in place"):
        await purge(folder, text=text)
    assert visible(tmp_path) == before
