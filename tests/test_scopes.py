"""Scopes: users, agents, sessions and teams are paths and mounts, and what belongs to one reaches no other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from folders import log_of, memory, objects_of, on_disk, visible
from mounting import mounted, put

from mdmemory import Config, Create, Delete, Message, Mount, ScriptedModel, open_memory
from mdmemory.agent.write_back import WriteBack
from mdmemory.errors import InvalidPath, PermissionDenied
from mdmemory.files.journal import new_message
from mdmemory.folder.mounts import scope

SILENT = Config(cache=False, journal=False)


async def test_nobody_sees_what_is_anothers(tmp_path: Path) -> None:
    """M5: with a folder a user, Alice's agent finds, lists, reads and is told nothing of Bob's, and can't write to it."""
    users = str(tmp_path / "users")
    put(
        tmp_path,
        {"users/alice/home.md": memory("Home", body="Paris, kiwi"), "users/bob/home.md": memory("Bob's", body="Rome, kiwi")},
    )
    put(tmp_path, {"team/plan.md": memory("Plan", body="kiwi")})
    async with open_memory(scope(users, "alice"), mounts={"team": Mount(tmp_path / "team", "read")}, config=SILENT) as alice:
        assert {match.path for match in await alice.search("Rome kiwi")} == {"home.md", "team/plan.md"}
        async with alice.session().turn("Rome kiwi") as turn:
            assert "Bob" not in await turn.system_prompt() + str(await turn.take_hint())
            for path in ("../bob/home.md", "team/../../bob/home.md", str(tmp_path / "users/bob/home.md"), "users/bob/home.md"):
                for name, more in (("Read", {}), ("Write", {"content": memory("X").decode()}), ("Delete", {})):
                    if path.startswith("users/") and name == "Write":
                        continue  # that would be a folder of Alice's own
                    answer = await turn.tools.call(name, {"file_path": path, **more})
                    assert answer.is_error and "Rome" not in answer.text
    assert set(visible(tmp_path / "users/bob")) == {"home.md"}


async def test_a_field_in_a_file_moves_it_nowhere(tmp_path: Path) -> None:
    """M5: whatever a file's frontmatter says of users, paths or scopes, it stays in the mount that its path names."""
    fields = {"user": "alice", "scope": "alice/", "path": "alice/x.md", "mount": "alice/", "user_id": "alice"}
    async with mounted(tmp_path, alice={}, bob={}) as memory_:
        await memory_.folder.apply([Create("bob/x.md", memory("X", body="kiwi", **fields))], "agent:bob", "Write")
        assert [match.path for match in await memory_.search("kiwi")] == ["bob/x.md"]
        assert await memory_.search("kiwi", mount="alice") == [] and not (tmp_path / "alice").exists()


@pytest.mark.parametrize("name", ["..", "../bob", "a/b", "", ".", "/etc", "~", "a\\b", ".mdmemory", "a\nb"])
def test_a_name_leads_into_one_folder(name: str) -> None:
    """M5: a user's or an agent's name makes the path of one folder below the given one, or is refused."""
    with pytest.raises(InvalidPath):
        scope("users", name)
    assert scope("users/", "alice", "coder") == "users/alice/coder"


async def test_one_folder_for_several_agents(tmp_path: Path) -> None:
    """C6: what agent Anna writes into her folder, another agent that only reads it recalls with her name, and can't change."""
    note = memory("Release day", "when we release", body="We release on Tuesdays.")
    async with open_memory(tmp_path / "anna", config=SILENT) as anna:
        await anna.folder.apply([Create("release.md", note)], "agent:anna", "Write")
    async with mounted(tmp_path, anna={"access": "read", "about": "what Anna found out"}) as ben:
        turn = await ben.session().turn("When do we release?")
        assert "- `anna/`: what Anna found out — read only." in await turn.system_prompt()
        hint = str(await turn.take_hint())
        assert "File anna/release.md" in hint and "Tuesdays" in hint
        answer = await turn.tools.call("Delete", {"file_path": "anna/release.md"})
        assert answer.is_error and "anna/ can only be read here" in answer.text
    assert (tmp_path / "anna/release.md").read_bytes() == note


async def test_a_whole_scope_is_deleted(tmp_path: Path) -> None:
    """M7: 250 files of one scope are deleted with one call that counts them; the neighbour stays; the history has the bytes."""
    files = {f"{n:03}.md": memory(f"Note {n}", body=f"kiwi {n}") for n in range(250)}
    put(tmp_path, {f"{name}/{path}": data for name in ("alice", "home/alice2") for path, data in files.items()})
    async with mounted(tmp_path, alice={}) as memory_:
        assert await memory_.clear("alice/") == 250
        assert await memory_.clear("alice") == 0 and await memory_.clear("ali") == 0
        assert {path.partition("/")[0] for path in memory_.folder.files} == {"alice2"} and len(memory_.folder.files) == 250
        assert await memory_.clear("alice2") == 250
        with pytest.raises(PermissionDenied):
            async with mounted(tmp_path, home={"access": "read"}, alice={}) as other:
                put(tmp_path, {"home/x.md": memory("X")})
                await other.clear("home")
    assert set(visible(tmp_path / "alice")) <= {"MEMORY.md"}
    intents = [entry for entry in log_of(tmp_path / "alice") if "id" in entry]
    assert len(intents) == 1 and len(intents[0]["files"]) == 250
    assert set(files.values()) <= set(objects_of(tmp_path / "alice"))


async def test_everything_in_a_memory_is_deleted(tmp_path: Path) -> None:
    """M7: `.` is all of a memory."""
    on_disk(tmp_path, {"a.md": memory("A"), "x/b.md": memory("B")})
    async with open_memory(tmp_path, config=SILENT) as memory_:
        assert await memory_.clear(".") == 2 and await memory_.search("body") == []


async def test_a_clear_of_everything_is_refused_with_mounts(tmp_path: Path) -> None:
    """M7: with mounts, `.` would be everybody's: the scope must be named."""
    put(tmp_path, {"home/a.md": memory("A"), "team/b.md": memory("B")})
    async with mounted(tmp_path, team={}) as memory_:
        with pytest.raises(InvalidPath, match="name the folder or the mount"):
            await memory_.clear(".")
        assert len(memory_.folder.files) == 2


async def test_what_is_drawn_from_a_conversation_stays_in_the_home(tmp_path: Path) -> None:
    """M5: extraction neither sees nor writes what is mounted, so that what was said to one is not told to all."""

    def reply(path: str) -> dict[str, object]:
        return {"summary": "", "memories": [change(path)]}

    def change(path: str) -> dict[str, object]:
        fields = {"name": "Coffee", "description": "how the user takes coffee", "type": "user", "body": f"Black. {path}"}
        return {"action": "add", "path": path, "sources": [1], "replaces": "", "reason": "said so", **fields}

    put(tmp_path, {"team/coffee.md": memory("Coffee of the team", "coffee", body="Black coffee for all.")})
    model = ScriptedModel([reply("team/mine.md"), reply("user/coffee.md")])
    mounts = {"team": Mount(tmp_path / "team")}
    config = Config(cache=False, extract_every=1, summary_over=0)
    before = visible(tmp_path / "team")
    async with open_memory(tmp_path / "home", mounts=mounts, config=config) as memory_:
        session = memory_.session("s", write_back="off")
        async with session.turn("I take my coffee black.") as turn:
            await turn.finish("Noted.")
        write_back = WriteBack(memory_.folder, "s", model)
        (first,) = await write_back.run()
        assert [outcome.status for outcome in first.outcomes] == ["dropped"]
        assert "writes to the home only" in first.outcomes[0].reason
        await memory_.folder.journals.append("s", [said("Really black.")])
        (second,) = await write_back.run()
        assert [outcome.path for outcome in second.outcomes] == ["user/coffee.md"]
    assert "Black coffee for all" not in json.dumps(model.calls)
    assert visible(tmp_path / "team") == before and (tmp_path / "home/user/coffee.md").exists()


def said(text: str) -> Message:
    """A message of the user."""
    return new_message({"role": "user", "content": text})


async def test_what_was_deleted_in_a_mount_is_not_drawn_again(tmp_path: Path) -> None:
    """M5: a memory that was forgotten in a mount keeps its name forgotten for the home too."""
    put(tmp_path, {"team/coffee.md": memory("Coffee", "coffee", body="Black.")})
    fields = {"name": "Coffee", "description": "coffee", "type": "user", "body": "Black.", "replaces": "", "reason": "said so"}
    model = ScriptedModel([{"summary": "", "memories": [{"action": "add", "path": "coffee.md", "sources": [1], **fields}]}])
    async with mounted(tmp_path, Config(cache=False, summary_over=0), team={}) as memory_:
        await memory_.folder.refresh()
        await memory_.folder.journals.append("s", [said("I take it black.")])
        await memory_.folder.apply([Delete("team/coffee.md")], "person", "forget")
        (found,) = await WriteBack(memory_.folder, "s", model).run()
    assert [outcome.status for outcome in found.outcomes] == ["dropped"] and "forgotten" in found.outcomes[0].reason
