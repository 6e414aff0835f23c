"""A person decides about what a conversation brought, while another conversation goes on from it, or another person decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from conversations import HOME, REVIEWED, TALK, drawn, file, memory, reply, reviewed, said

from mdmemory.backends.local import LocalBackend
from mdmemory.errors import Conflict, NotThere
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.proposals import Proposal, accept, edit, find_proposal, list_proposals, reject

GARDEN = memory("Home", "Lives in Hangzhou, with a garden.", action="update", path="user/home.md")


class Late(LocalBackend):
    """Something else happens before the first commit."""

    meanwhile: Callable[[], Awaitable[Any]] | None = None

    async def commit(self, commit_id: str, ops: Any) -> Any:
        """Commit, after what happens."""
        if (happens := self.meanwhile) is not None:
            self.meanwhile = None
            await happens()
        return await super().commit(commit_id, ops)


async def _at_once(root: Path, meanwhile: Callable[[Proposal], Awaitable[Any]]) -> tuple[MemoryFolder, Proposal]:
    """A folder where a proposal waits, to which something happens before the next commit."""
    await drawn(reviewed(root), list(TALK), reply(HOME))
    backend = Late(root)
    folder = MemoryFolder(backend, config=REVIEWED)
    (home,) = await list_proposals(folder)
    backend.meanwhile = lambda: meanwhile(home)
    return folder, home


def _go_on(root: Path) -> Callable[[Proposal], Awaitable[Any]]:
    return lambda home: drawn(reviewed(root), said("With a garden.", first=3), reply(GARDEN))


async def test_accepted_while_a_conversation_goes_on(tmp_path: Path) -> None:
    """E5: what was seen is saved; what was added to it meanwhile still waits, goes on from there, and can be accepted."""
    folder, home = await _at_once(tmp_path, _go_on(tmp_path))
    await accept(folder, home)
    assert file(tmp_path, "user/home.md").body.strip() == "Lives in Hangzhou."
    (more,) = await list_proposals(folder)
    assert (more.title, more.stale, more.entries) == ("update user/home.md", "", ("s1#m1", "s1#m3"))
    await accept(folder, more)
    assert file(tmp_path, "user/home.md").body.strip().endswith("Lives in Hangzhou, with a garden.")
    assert await list_proposals(folder) == []


@pytest.mark.parametrize(
    "decide", [reject, lambda folder, home: edit(folder, home, {"user/home.md": home.texts["user/home.md"][1]})]
)
async def test_decided_while_a_conversation_goes_on(tmp_path: Path, decide: Any) -> None:
    """E5: who rejects or edits has not seen what was added meanwhile, so nothing of it goes."""
    folder, home = await _at_once(tmp_path, _go_on(tmp_path))
    with pytest.raises(NotThere, match="added to meanwhile"):
        await decide(folder, home)
    (more,) = await list_proposals(folder)
    assert "with a garden" in (more.texts["user/home.md"][1] or "") and not (tmp_path / ".mdmemory/tombstones").exists()


async def test_an_id_says_what_was_seen(tmp_path: Path) -> None:
    """V8: the id that a person noted is not that of other words, which a conversation brought since."""
    folder, home = await _at_once(tmp_path, _go_on(tmp_path))
    await drawn(folder, said("With a garden.", first=3), reply(GARDEN))
    with pytest.raises(NotThere):
        await accept(folder, home.id)
    assert not (tmp_path / "user/home.md").exists()


async def test_two_people_decide_at_once(tmp_path: Path) -> None:
    """E5: the words of who edits are not lost to who accepts, rejects or edits at the same time."""

    async def typed(home: Proposal) -> None:
        other = reviewed(tmp_path)
        await edit(other, home.id, {"user/home.md": (home.texts["user/home.md"][1] or "") + "By the lake.\n"})

    folder, home = await _at_once(tmp_path, typed)
    with pytest.raises(Conflict, match="edited meanwhile"):
        await reject(folder, home)
    folder, home = MemoryFolder(Late(tmp_path), config=REVIEWED), await find_proposal(folder, home.id)
    folder.backend.meanwhile = lambda: typed(home)  # type: ignore[attr-defined]  # it is a Late
    await accept(folder, home)
    (more,) = await list_proposals(folder)
    assert (more.id, more.title, more.stale) == (home.id, "update user/home.md", "")
    assert (more.texts["user/home.md"][1] or "").count("By the lake.") == 2
