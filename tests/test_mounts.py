"""Mounts: what may be done in which, whose path is whose, and that nothing reaches where it may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from folders import everything, index_of, log_of, memory, visible
from mounting import mounted, put

from mdmemory import Append, Create, Delete, Mount, Rename, Replace, open_memory, read_only
from mdmemory.backends.protocol import etag_of
from mdmemory.errors import ConfigError, Conflict, InvalidMemoryFile, InvalidPath, MdmemoryError, NotThere, PermissionDenied
from mdmemory.files.changes import Change

A = memory("Alpha", "first letter")
B = memory("Beta", "second letter")
LONGER = A + b"- more\n"
ALL = {"team": {}, "docs": {"access": "read"}, "board": {"access": ("read", "append")}, "inbox": {"access": ["append"]}}


def changes(name: str) -> dict[str, Change]:
    """One change of every kind in a mount that holds `a.md`."""
    return {
        "create": Create(f"{name}/new.md", B),
        "append": Append(f"{name}/a.md", b"- more\n"),
        "extend": Replace(f"{name}/a.md", LONGER, etag_of(A), A),
        "replace": Replace(f"{name}/a.md", B, etag_of(A), A),
        "delete": Delete(f"{name}/a.md"),
        "rename": Rename(f"{name}/a.md", f"{name}/b.md"),
        "take": Rename(f"{name}/a.md", "b.md"),
        "give": Rename("home.md", f"{name}/b.md"),
    }


ALLOWED = {
    "team": set(changes("x")),
    "docs": set[str](),
    "board": {"create", "append", "extend", "give"},
    "inbox": {"create", "append", "give"},
}


@pytest.mark.parametrize("author", ["agent:a", "person"])
@pytest.mark.parametrize("kind", list(changes("x")))
@pytest.mark.parametrize("name", list(ALL))
async def test_the_rights_of_a_mount_are_kept(name: str, kind: str, author: str, tmp_path: Path) -> None:
    """C1, AM8: of every kind of change, only what the mount allows is done; else no byte changes, and the mount is named."""
    put(tmp_path, {"home/home.md": B, **{f"{each}/a.md": A for each in ALL}})
    before = everything(tmp_path)
    async with mounted(tmp_path, **ALL) as memory_:
        change = changes(name)[kind]
        if kind in ALLOWED[name]:
            await memory_.folder.apply([change], author, "test")
            assert everything(tmp_path) != before
            assert name in ("team", "docs") or (tmp_path / name / "a.md").read_bytes().startswith(A)
        else:
            with pytest.raises(PermissionDenied, match=f"{name}/.*Nothing was written"):
                await memory_.folder.apply([change], author, "test")
            assert everything(tmp_path) == before


async def test_a_mount_that_can_only_be_written_tells_nothing(tmp_path: Path) -> None:
    """C1: without `read`, nothing of a mount is searched, listed, indexed or read, and no refusal quotes it."""
    put(tmp_path, {"inbox/plan.md": memory("Plan", "secret kiwi", body="kiwi"), "home/a.md": A})
    async with mounted(tmp_path, inbox={"access": "append"}) as memory_:
        assert await memory_.search("kiwi") == [] and set(memory_.folder.files) == {"a.md"}
        async with memory_.session().turn("kiwi?") as turn:
            assert "secret kiwi" not in await turn.system_prompt() and await turn.take_hint() is None
            for path in ("inbox/plan.md", "inbox/MEMORY.md", "inbox/none.md"):
                answer = await turn.tools.call("Read", {"file_path": path})
                assert answer.is_error and "can't be read" in answer.text
            for path in ("inbox/plan.md", "inbox/Plan.md"):
                answer = await turn.tools.call("Write", {"file_path": path, "content": B.decode()})
                assert answer.is_error and "is taken" in answer.text and "kiwi" not in answer.text
            answer = await turn.tools.call("Write", {"file_path": "inbox/mine.md", "content": B.decode()})
            assert answer.text == "Created inbox/mine.md."
        applied = await memory_.folder.apply([Append("inbox/plan.md", b"- more")], "person", "test")
        assert [(item.before, item.after) for item in applied.files] == [(None, b"- more\n")] and applied.index is None
    assert (tmp_path / "inbox/plan.md").read_bytes().endswith(b"kiwi\n- more\n")


async def test_a_folder_of_documents_is_not_touched(tmp_path: Path) -> None:
    """C4: a read-only mount of an existing folder makes no file in it, whatever is read, searched, asked or saved elsewhere."""
    put(tmp_path, {"docs/install.md": "# Install\n\nRun the kiwi wizard.\n", "docs/deep/use.md": "# Use\n\nPress kiwi.\n"})
    before = everything(tmp_path)
    async with mounted(tmp_path, docs={"access": "read"}) as memory_:
        assert [match.path for match in await memory_.search("wizard")] == ["docs/install.md"]
        async with memory_.session().turn("How do I start the wizard?") as turn:
            assert "[Install](docs/install.md)" in await turn.system_prompt() and "Run the kiwi" in str(await turn.take_hint())
            answer = await turn.tools.call("Edit", {"file_path": "docs/install.md", "old_string": "kiwi", "new_string": "plum"})
            assert answer.is_error and "docs/ can only be read here" in answer.text
            await turn.tools.call("Write", {"file_path": "note.md", "content": A.decode()})
    assert everything(tmp_path / "docs") == {path.removeprefix("docs/"): data for path, data in before.items()}
    assert set(visible(tmp_path / "home")) == {"note.md", "MEMORY.md"}


async def test_each_mount_has_its_own_history_and_index(tmp_path: Path) -> None:
    """C1: a write to a mount is logged and listed in that mount's folder alone, so that whoever opens it directly sees it."""
    async with mounted(tmp_path, team={}) as memory_:
        applied = await memory_.folder.apply([Create("team/a.md", A)], "agent:one", "because")
        assert [item.path for item in applied.files] == ["team/a.md"] and not (tmp_path / "home").exists()
        assert applied.index is not None and "[Alpha](team/a.md)" in applied.index.text
    assert index_of(tmp_path / "team") == "- [Alpha](a.md) — first letter\n"
    assert [(entry["author"], entry["reason"]) for entry in log_of(tmp_path / "team") if "id" in entry] == [
        ("agent:one", "because")
    ]
    async with open_memory(tmp_path / "team") as direct:
        await direct.folder.refresh()
        assert set(direct.folder.files) == {"a.md"}


async def test_a_move_between_mounts_is_a_copy_and_a_deletion(tmp_path: Path) -> None:
    """C1: a file, or a folder with all memory files in it, moves to another mount byte for byte, and is then deleted."""
    put(tmp_path, {"home/x/a.md": A, "home/x/y/b.md": B})
    async with mounted(tmp_path, team={}) as memory_:
        applied = await memory_.folder.apply([Rename("x", "team/z")], "person", "test")
        assert [item.path for item in applied.files] == ["team/z/a.md", "team/z/y/b.md", "x/a.md", "x/y/b.md"]
        assert {path: data for path, data in visible(tmp_path / "team").items() if path != "MEMORY.md"} == {
            "z/a.md": A,
            "z/y/b.md": B,
        }
        assert set(visible(tmp_path / "home")) <= {"MEMORY.md"}
        await memory_.folder.apply([Rename("team/z/a.md", "a.md")], "agent:a", "test")
        assert set(memory_.folder.files) == {"a.md", "team/z/y/b.md"}
        with pytest.raises(NotThere, match=r"team/none\.md"):
            await memory_.folder.apply([Rename("team/none.md", "b.md")], "person", "test")


async def test_changes_in_several_mounts_are_a_commit_each(tmp_path: Path) -> None:
    """C1: one apply over several mounts commits in the order of the changes; a failure says what was written before it."""
    put(tmp_path, {"home/taken.md": B})
    async with mounted(tmp_path, team={}, docs={"access": "read"}) as memory_:
        await memory_.folder.refresh()
        with pytest.raises(PermissionDenied):
            await memory_.folder.apply([Create("team/a.md", A), Create("docs/a.md", A)], "person", "test")
        assert not (tmp_path / "team").exists()
        with pytest.raises(MdmemoryError, match=r"taken\.md is there.*written before it, and stay: team/a\.md") as caught:
            await memory_.folder.apply([Create("team/a.md", A), Create("taken.md", A)], "person", "test")
        assert isinstance(caught.value.__cause__, Conflict) and (tmp_path / "team/a.md").exists()
        applied = await memory_.folder.apply([Create("c.md", A), Create("team/c.md", B)], "person", "test", dry_run=True)
        assert [item.path for item in applied.files] == ["c.md", "team/c.md"] and applied.commit_id is None
        await memory_.folder.apply([Create("c.md", A), Create("team/c.md", B)], "person", "test")
    assert (tmp_path / "home/c.md").read_bytes() == A and (tmp_path / "team/c.md").read_bytes() == B


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (Create("team/a.md", B), Conflict, r"^team/a\.md is there"),
        (Create("team/A.md", B), InvalidPath, r"^In the mount team/: A\.md would be taken for a\.md"),
        (Create("team/b.md", b"---\nname: [\n---\n"), InvalidMemoryFile, r"^team/b\.md, line"),
        (Replace("team/none.md", B, etag_of(A)), Conflict, r"^team/none\.md does not exist"),
        (Create("team", B), InvalidPath, "does not end in .md"),
        (Create("Team/x.md", B), InvalidPath, r"Team/x\.md would be taken for a path in the mount team/"),
        (Create("team/../a.md", B), InvalidPath, r"\.\. parts"),
        (Create("team/journal/x.md", B), InvalidPath, "In the mount team/: journal/x.md is in the journal"),
        (Rename("team", "squad"), InvalidPath, "mount team/"),
        (Rename("org", "firm"), InvalidPath, "org has the mount org/wiki/ in it"),
        (Rename("a", "org"), InvalidPath, "org has the mount org/wiki/ in it"),
        (Delete("team/MEMORY.md"), InvalidPath, "is the index"),
    ],
)
async def test_errors_name_whole_paths(change: Change, error: type[MdmemoryError], said: str, tmp_path: Path) -> None:
    """C1, M5: what is refused inside a mount is told with the path that was given, or with the mount's; no byte changes."""
    put(tmp_path, {"team/a.md": A, "home/org/a.md": A, "home/a/a.md": A})
    before = everything(tmp_path)
    mounts = {"team/": Mount(tmp_path / "team"), "org/wiki": Mount(tmp_path / "wiki")}
    async with open_memory(tmp_path / "home", mounts=mounts) as memory_:
        await memory_.folder.refresh()
        with pytest.raises(error, match=said) as caught:
            await memory_.folder.apply([change], "agent:a", "test")
        assert str(tmp_path) not in str(caught.value)
    assert everything(tmp_path) == before


async def test_the_policy_is_asked_about_whole_paths(tmp_path: Path) -> None:
    """AM8: one policy sees each change with its whole path, after the rights of the mounts; `read_only` holds everywhere."""
    asked: list[tuple[str, str]] = []

    def policy(change: Change, author: str) -> Any:
        asked.append((type(change).__name__, change.path))
        return "deny" if change.path == "team/no.md" else "allow"

    put(tmp_path, {"board/a.md": A})
    async with mounted(tmp_path, policy=policy, **ALL) as memory_:
        await memory_.folder.apply([Create("b.md", B), Replace("board/a.md", LONGER, etag_of(A), A)], "person", "test")
        for path in ("docs/a.md", "team/no.md"):
            with pytest.raises(PermissionDenied):
                await memory_.folder.apply([Create("team/yes.md", B), Create(path, B)], "person", "test")
        await memory_.folder.apply([Rename("b.md", "team/b.md")], "person", "test")
    assert asked == [
        ("Create", "b.md"), ("Append", "board/a.md"), ("Create", "team/yes.md"), ("Create", "team/no.md"), ("Create", "team/b.md"),
        ("Delete", "b.md"),
    ]  # fmt: skip
    before = everything(tmp_path)
    async with mounted(tmp_path, policy=read_only, **ALL) as memory_:
        with pytest.raises(PermissionDenied):
            await memory_.folder.apply([Create("team/c.md", B)], "person", "test")
        assert memory_.folder.is_read_only and everything(tmp_path) == before


@pytest.mark.parametrize(
    ("prefix", "said"),
    [("", "empty"), ("../x", "parts"), ("/x", "relative"), ("a.md", "file's name"), ("journal/", "journal"), (".x/", "hidden"),
     ("Team/", "would be taken for the mount team/")],
)  # fmt: skip
async def test_a_prefix_that_cannot_be_is_refused(prefix: str, said: str, tmp_path: Path) -> None:
    """M5: a mount has a folder's name, and no two of them look alike."""
    with pytest.raises(ConfigError, match=said):
        async with open_memory(tmp_path, mounts={"team": Mount(tmp_path / "a"), prefix: Mount(tmp_path / "b")}):
            pass


@pytest.mark.parametrize("settings", [{"access": ()}, {"access": "all"}, {"top_k": 0}, {"min_score": 2}, {"stages": "never"}])
async def test_a_mount_that_cannot_be_is_refused(settings: dict[str, Any], tmp_path: Path) -> None:
    """C1: rights, limits and stages that there are not raise when the mount is made, or opened."""
    with pytest.raises(ConfigError, match=next(iter(settings)).removesuffix("s")):
        async with mounted(tmp_path, team=settings):
            pass
