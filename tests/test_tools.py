"""Read, Write, Edit and Delete as an agent calls them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from agent_calls import ROLE, call, refused
from counting import CountingBackend

from mdmemory import Config, Memory, Toolset, open_memory, read_only
from mdmemory.backends.local import LocalBackend


async def test_one_save_is_one_call(tools: Toolset, folder: Path) -> None:
    """A Write leaves the file and its line in the index; no second call is needed."""
    answer = await call(tools, "Write", file_path="user/role.md", content=ROLE)
    line = "- [Role](user/role.md) — what the user does for a living"
    assert answer == f"Created user/role.md.\nIts line in the index: {line}"
    assert (folder / "user/role.md").read_text() == ROLE
    assert (folder / "MEMORY.md").read_text() == line + "\n"


async def test_wrong_type_names_the_four(tools: Toolset, folder: Path) -> None:
    """AM7: a wrong `type` is answered with the allowed ones and the shape of a file, and nothing is written."""
    text = await refused(tools, "Write", file_path="role.md", content=ROLE.replace("type: user", "type: person"))
    assert "'person'" in text and "user, feedback, project, reference" in text and "---\nname:" in text
    assert not folder.exists()


@pytest.mark.parametrize(
    "content", ["Just text.", "---\nname: Role\ntype: user\n---\nx", "---\ndescription: d\ntype: user\n---\nx", ""]
)
async def test_missing_frontmatter_shows_the_shape(tools: Toolset, folder: Path, content: str) -> None:
    """AM7: what is not a memory file is refused with a picture of one."""
    assert "A memory file looks like this:\n---\nname: " in await refused(tools, "Write", file_path="role.md", content=content)
    assert not folder.exists()


async def test_broken_frontmatter_is_refused_with_its_line(tools: Toolset, folder: Path) -> None:
    """F2: an agent cannot write frontmatter that is not YAML."""
    content = '---\nname: x\ndescription: "abc "def" ghi"\ntype: user\n---\n'
    assert "role.md, line 3" in await refused(tools, "Write", file_path="role.md", content=content)
    assert not folder.exists()


async def test_a_comment_in_a_description_is_said(tools: Toolset, folder: Path) -> None:
    """F1: `#762` is a comment to YAML: the file is kept as written, and the answer says so."""
    content = ROLE.replace("what the user does for a living", "Tracking PR #762")
    answer = await call(tools, "Write", file_path="role.md", content=content)
    assert "line 3: YAML takes '#762' for a comment" in answer
    assert (folder / "role.md").read_text() == content


async def test_overwriting_needs_a_read(tools: Toolset, folder: Path) -> None:
    """An existing file is replaced only by those who have seen it."""
    folder.mkdir()
    (folder / "role.md").write_text(ROLE)
    new = ROLE.replace("surveyor", "carpenter")
    assert "Read it and repeat" in await refused(tools, "Write", file_path="role.md", content=new)
    assert (folder / "role.md").read_text() == ROLE
    await call(tools, "Read", file_path="role.md")
    await call(tools, "Write", file_path="role.md", content=new)
    assert (folder / "role.md").read_text() == new


async def test_a_stale_write_carries_the_current_text(tools: Toolset, folder: Path) -> None:
    """E2: the file grew outside after it was read; the stale Write is refused and shows what is there."""
    folder.mkdir()
    (folder / "log.md").write_text(ROLE + "line\n" * 250)
    await call(tools, "Read", file_path="log.md")
    grown = ROLE + "another line\n" * 600
    (folder / "log.md").write_text(grown)
    text = await refused(tools, "Write", file_path="log.md", content=ROLE + "other\n" * 250)
    assert "other content" in text and "\tanother line" in text
    assert (folder / "log.md").read_text() == grown


async def test_a_retried_write_succeeds(memory: Memory, tools: Toolset) -> None:
    """E7: a Write whose bytes are there already is a success, also in a conversation that never read the file."""
    await call(tools, "Write", file_path="role.md", content=ROLE)
    assert "already has this content" in await call(tools, "Write", file_path="role.md", content=ROLE)
    assert "already has this content" in await call(Toolset(memory.folder, "agent:2"), "Write", file_path="role.md", content=ROLE)


async def test_an_edit_meets_a_persons_edit(tools: Toolset, folder: Path) -> None:
    """E4: edits of different lines are both kept, and the answer says so; edits of one line conflict."""
    await call(tools, "Write", file_path="a.md", content=ROLE + "\none\n\ntwo\n")
    path = folder / "a.md"
    path.write_text(path.read_text().replace("two", "two, said a person"))
    answer = await call(tools, "Edit", file_path="a.md", old_string="one", new_string="one, said the agent")
    assert "both changes are kept" in answer
    assert path.read_text() == ROLE + "\none, said the agent\n\ntwo, said a person\n"
    path.write_text(path.read_text().replace("one, said the agent", "1"))
    text = await refused(tools, "Edit", file_path="a.md", old_string="one, said the agent", new_string="uno")
    assert "\t1" in text and path.read_text() == ROLE + "\n1\n\ntwo, said a person\n"


async def test_forty_edits_at_once(tools: Toolset, folder: Path) -> None:
    """E1: 40 parallel edits of distinct lines keep 40."""
    lines = "".join(f"entry {number:02}\n" for number in range(40))
    await call(tools, "Write", file_path="a.md", content=ROLE + lines)
    await asyncio.gather(
        *(
            call(tools, "Edit", file_path="a.md", old_string=f"entry {number:02}", new_string=f"done {number:02}")
            for number in range(40)
        )
    )
    assert (folder / "a.md").read_text() == ROLE + lines.replace("entry", "done")


async def test_an_edit_must_name_one_place(tools: Toolset, folder: Path) -> None:
    """A text that stands twice is refused with its lines, a missing one with what to do; replace_all takes every place."""
    await call(tools, "Write", file_path="a.md", content=ROLE + "x\ny\nx\n")
    assert "2 times (lines 8, 10)" in await refused(tools, "Edit", file_path="a.md", old_string="x\n", new_string="z\n")
    assert "was not found" in await refused(tools, "Edit", file_path="a.md", old_string="q", new_string="z")
    await call(tools, "Edit", file_path="a.md", old_string="x\n", new_string="z\n", replace_all=True)
    assert (folder / "a.md").read_text().endswith("z\ny\nz\n")


async def test_an_edit_keeps_every_other_byte(tools: Toolset, folder: Path) -> None:
    """F3 F4 F12: byte order mark, CRLF, unknown keys, comments and a missing final newline survive an Edit with plain newlines."""
    folder.mkdir()
    before = b"\xef\xbb\xbf---\r\nname: A # c\r\nx-mine: 1\r\ndescription: d\r\ntype: user\r\n---\r\none\r\ntwo\r\nthree"
    (folder / "a.md").write_bytes(before)
    await call(tools, "Read", file_path="a.md")
    await call(tools, "Edit", file_path="a.md", old_string="one\ntwo", new_string="1\n2")
    assert (folder / "a.md").read_bytes() == before.replace(b"one\r\ntwo", b"1\r\n2")


async def test_a_write_keeps_the_files_conventions(tools: Toolset, folder: Path) -> None:
    """F3 F4: rewriting a file with CRLF and a byte order mark keeps both."""
    folder.mkdir()
    (folder / "a.md").write_bytes(b"\xef\xbb\xbf" + ROLE.replace("\n", "\r\n").encode())
    await call(tools, "Read", file_path="a.md")
    await call(tools, "Write", file_path="a.md", content=ROLE + "More.\n")
    assert (folder / "a.md").read_bytes() == b"\xef\xbb\xbf" + (ROLE + "More.\n").replace("\n", "\r\n").encode()


@pytest.mark.parametrize("data", ["café".encode("latin-1"), "memory".encode("utf-16")])
async def test_other_encodings_are_left_alone(tools: Toolset, folder: Path, data: bytes) -> None:
    """F5: Read says that a file is not UTF-8; neither Edit nor Write touches it."""
    folder.mkdir()
    (folder / "a.md").write_bytes(data)
    assert "not UTF-8" in await refused(tools, "Read", file_path="a.md")
    assert "not UTF-8" in await refused(tools, "Edit", file_path="a.md", old_string="caf", new_string="x")
    await refused(tools, "Write", file_path="a.md", content=ROLE)
    assert (folder / "a.md").read_bytes() == data


async def test_half_a_character_is_refused(tools: Toolset, folder: Path) -> None:
    """F11: a lone surrogate is refused in Write and Edit, and the file keeps its content."""
    await call(tools, "Write", file_path="a.md", content=ROLE)
    assert "lone surrogate" in await refused(tools, "Edit", file_path="a.md", old_string="surveyor", new_string="\ud83d")
    assert "lone surrogate" in await refused(tools, "Write", file_path="a.md", content=ROLE + "\ud83d")
    assert "lone surrogate" in await refused(tools, "Write", file_path="b.md", content=ROLE + "\ud83d")
    assert (folder / "a.md").read_text() == ROLE and not (folder / "b.md").exists()


async def test_read_numbers_lines_and_says_when_there_are_more(tools: Toolset, folder: Path) -> None:
    """Read gives numbered lines, a part on request, and where to go on."""
    folder.mkdir()
    (folder / "long.md").write_text("".join(f"line {number}\n" for number in range(1, 2501)))
    text = await call(tools, "Read", file_path="long.md")
    assert text.startswith("     1\tline 1\n") and text.endswith(
        "(Lines 1 to 2000 of 2500; for more lines Read again with offset 2001.)"
    )
    assert await call(tools, "Read", file_path="long.md", offset=2499, limit=5) == "  2499\tline 2499\n  2500\tline 2500"
    assert "past its end" in await call(tools, "Read", file_path="long.md", offset=9999)


async def test_read_is_bounded(tools: Toolset, folder: Path) -> None:
    """One answer never swallows the context: long lines and long files are cut with a notice."""
    folder.mkdir()
    (folder / "wide.md").write_text("\n".join("x" * 5_000 for _ in range(100)))
    text = await call(tools, "Read", file_path="wide.md")
    assert len(text) < 65_000 and "line cut; it has 5,000 characters" in text and "for more lines Read again" in text


async def test_inline_content_is_guided_to_a_file(tools: Toolset, folder: Path) -> None:
    """I4: writing the memory itself into MEMORY.md is answered with where it belongs."""
    prose = "The user told me at length about the project and everything in it. " * 12
    text = await refused(tools, "Write", file_path="MEMORY.md", content=f"# Memory\n\n{prose}\n")
    assert "one line a file" in text and not (folder / "MEMORY.md").exists()


async def test_writing_the_index_line_by_hand_makes_no_second_one(tools: Toolset, folder: Path) -> None:
    """I8: an agent that adds the index line itself gets one line for the file."""
    await call(tools, "Write", file_path="role.md", content=ROLE)
    await call(tools, "Read", file_path="MEMORY.md")
    index = (folder / "MEMORY.md").read_text()
    await call(tools, "Write", file_path="MEMORY.md", content=index + "- [Role](role.md) — what the user does\n")
    assert (folder / "MEMORY.md").read_text() == "- [Role](role.md) — what the user does\n"


async def test_a_full_index_is_said_with_figures(tmp_path: Path) -> None:
    """I7: a Write beyond the index's limits succeeds, and the answer warns with the figures."""
    async with open_memory(tmp_path, config=Config(index_max_lines=5)) as memory:
        tools = Toolset(memory.folder, "agent:test")
        answers = [await call(tools, "Write", file_path=f"note-{number}.md", content=ROLE) for number in range(8)]
    assert "MEMORY.md is full" not in answers[3]
    assert "Created note-7.md" in answers[7] and "of 5 lines" in answers[7]
    assert len((tmp_path / "MEMORY.md").read_text().splitlines()) == 5


async def test_a_read_only_memory_refuses_to_write(tmp_path: Path) -> None:
    """AM8: under the read-only policy every writing tool is refused and the folder stays as it is."""
    (tmp_path / "a.md").write_text(ROLE)
    async with open_memory(tmp_path, policy=read_only) as memory:
        tools = Toolset(memory.folder, "agent:test")
        await call(tools, "Read", file_path="a.md")
        for name, arguments in (
            ("Write", {"content": ROLE + "x"}),
            ("Edit", {"old_string": "A", "new_string": "B"}),
            ("Delete", {}),
        ):
            assert "not allowed" in await refused(tools, name, file_path="a.md", **arguments)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.md"] and (tmp_path / "a.md").read_text() == ROLE


async def test_a_deletion_does_not_come_back(tools: Toolset, folder: Path) -> None:
    """A file that a person deleted after the agent read it is not written back by a stale Write; a second, knowing one may."""
    await call(tools, "Write", file_path="a.md", content=ROLE)
    (folder / "a.md").unlink()
    assert "does not exist, or no longer" in await refused(tools, "Write", file_path="a.md", content=ROLE + "More.\n")
    assert not (folder / "a.md").exists()
    await call(tools, "Write", file_path="a.md", content=ROLE + "More.\n")


async def test_a_save_is_one_round_trip(tmp_path: Path) -> None:
    """A new file, and an edit of one that was read, are one commit each, with history and index in it."""
    backend = CountingBackend(LocalBackend(tmp_path))
    async with open_memory(backend) as memory, memory.session().turn("Hello") as turn:
        backend.calls.clear()
        await call(turn.tools, "Write", file_path="a.md", content=ROLE)
        assert backend.calls == ["commit"]
        await call(turn.tools, "Edit", file_path="a.md", old_string="A surveyor", new_string="A carpenter")
        assert backend.calls == ["commit", "commit"]
        (tmp_path / "MEMORY.md").write_text("# By hand\n\n" + (tmp_path / "MEMORY.md").read_text())
        await call(turn.tools, "Write", file_path="b.md", content=ROLE.replace("Role", "Two"))
    assert (tmp_path / "MEMORY.md").read_text() == (
        "# By hand\n\n- [Role](a.md) — what the user does for a living\n- [Two](b.md) — what the user does for a living\n"
    )
