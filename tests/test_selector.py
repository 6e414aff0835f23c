"""The selector's own rules: what it is shown, and which file a name means."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmemory import Config, Create, ScriptedModel, open_memory
from mdmemory.agent.selector import Message, query_of, resolve_name, shortlist

PATHS = ["a.md", "user/home.md", "work/home.md", "user/role.md", "deep/er/note.md", "大明科技.md"]


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a.md", "a.md"),
        ("a", "a.md"),
        ("A.MD", "a.md"),
        ("./a.md", "a.md"),
        ("/root-of-host/memory/user/home.md", "user/home.md"),
        ("memory/user/role.md", "user/role.md"),
        ("role", "user/role.md"),
        ("er\\note.md", "deep/er/note.md"),
        ("大明科技", "大明科技.md"),
        ("home.md", None),
        ("nothing.md", None),
        ("", None),
        ("../a", "a.md"),
    ],
)
def test_a_name_means_one_file_or_none(name: str, path: str | None) -> None:
    """H3: a name is understood when it can mean one file, and dropped when it could mean two or none."""
    assert resolve_name(name, PATHS) == path


@given(st.text(max_size=40))
def test_no_name_is_taken_for_what_is_not_there(name: str) -> None:
    """H3: whatever a model answers, the result is a listed path or none."""
    assert resolve_name(name, PATHS) in (*PATHS, None)


def test_a_long_message_is_its_own_query() -> None:
    """H7: earlier messages join the query only when the last one says little by itself."""
    said = [Message("user", "plan the garden party"), Message("assistant", "done"), Message("user", "do it again")]
    assert query_of(said) == "plan the garden party\ndo it again"
    assert query_of([*said, Message("user", "book flights to Lisbon in October")]) == "book flights to Lisbon in October"


async def test_a_large_folder_is_shortlisted(tmp_path: Path) -> None:
    """Of more files than fit its prompt the selector sees the nearest by words and the newest, and can choose among those."""
    model = ScriptedModel([{"files": [{"path": "note-7.md", "reason": "r"}]}])
    async with open_memory(tmp_path, model=model, config=Config(selector_max_files=20)) as memory:
        note = "---\nname: Note {0}\ndescription: {1}\ntype: project\n---\n\nText.\n"
        for number in range(60):
            words = "zebra crossing" if number == 7 else f"entry {number}"
            await memory.folder.apply([Create(f"note-{number}.md", note.format(number, words).encode())], "person", "test")
        assert len(shortlist(memory.folder, ["note-7.md"])) == 20
        turn = await memory.session().turn("Where is the zebra?")
        hint = await turn.take_hint(wait_s=5)
    prompt = str(model.calls[0])
    assert hint is not None and hint.files[0].path == "note-7.md"
    assert "note-59.md" in prompt and "note-7.md" in prompt and prompt.count("- note-") == 20
