"""What the tools say of the memory: lists, and index lines that are there."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from agent_calls import ROLE, call, refused

from mdmemory import Config, Toolset, open_memory


async def test_read_lists_a_folder(tools: Toolset) -> None:
    """Read on a folder, or on `.`, lists the memory files in it, the newest first: also those without an index line."""
    assert await call(tools, "Read", file_path=".") == "The memory is empty."
    for path in ("user/role.md", "user/home.md", "plan.md"):
        await call(tools, "Write", file_path=path, content=ROLE)
    assert [line.split("(")[1].split(")")[0] for line in (await call(tools, "Read", file_path=".")).splitlines()] == [
        "plan.md",
        "user/home.md",
        "user/role.md",
    ]
    assert (await call(tools, "Read", file_path="user/")).count("(user/") == 2
    assert (await call(tools, "Read", file_path=".", offset=3)).startswith("     3\t- [Role](user/role.md)")
    assert "Read . to list" in await refused(tools, "Read", file_path="none.md")


async def test_a_folder_never_looked_at_is_not_called_empty(tools: Toolset, folder: Path) -> None:
    """I6, D1: a list asked for before anything else looks first."""
    folder.mkdir()
    (folder / "role.md").write_text(ROLE)
    assert "(role.md)" in await call(tools, "Read", file_path=".")


async def test_the_answer_says_which_line_the_index_has(tools: Toolset, folder: Path) -> None:
    """A save never claims an index line that is not there: a person's words stand, and a full index has no room."""
    await call(tools, "Write", file_path="a.md", content=ROLE)
    (folder / "MEMORY.md").write_text("- [Alpha](a.md): my own words\n\nSee also [it](a.md).\n")
    await tools.folder.refresh()
    assert "in someone's own words" in await call(tools, "Edit", file_path="a.md", old_string="surveyor", new_string="carpenter")
    assert "still mentions it" in await call(tools, "Delete", file_path="a.md")
    assert (folder / "MEMORY.md").read_text() == "\nSee also [it](a.md).\n"


async def test_a_delete_says_when_the_index_could_not_be_kept(tools: Toolset, folder: Path) -> None:
    """With an index that is not text, a Delete works and does not say that the line is gone."""
    await call(tools, "Write", file_path="a.md", content=ROLE)
    (folder / "MEMORY.md").write_bytes("café".encode("latin-1"))
    answer = await call(tools, "Delete", file_path="a.md")
    assert answer.startswith("Deleted a.md.\nNote: The index was left as it is") and "gone too" not in answer


async def test_a_full_index_still_shows_the_newest(tmp_path: Path) -> None:
    """I1: files whose clock was ahead do not keep the newest out of a full index."""
    then = time.time() + 7_200
    for number in range(20):
        (tmp_path / f"n{number}.md").write_text(ROLE)
        os.utime(tmp_path / f"n{number}.md", (then, then))
    async with open_memory(tmp_path, config=Config(index_max_lines=10)) as memory, memory.session().turn("Hi") as turn:
        answer = await call(turn.tools, "Write", file_path="new.md", content=ROLE.replace("Role", "Newest"))
        assert "Its line in the index: - [Newest](new.md)" in answer
    assert "(new.md)" in (tmp_path / "MEMORY.md").read_text()


@pytest.mark.parametrize(
    ("content", "said"), [("\n\n" + ROLE, "without blank lines"), (f"```markdown\n{ROLE}```", "without a code fence")]
)
async def test_what_stands_before_the_frontmatter_is_named(tools: Toolset, content: str, said: str) -> None:
    """AM7: a file wrapped in a code fence, or after blank lines, is refused with just that."""
    assert said in await refused(tools, "Write", file_path="a.md", content=content)


async def test_a_file_that_is_not_text_is_not_offered_for_reading(tools: Toolset, folder: Path) -> None:
    """F5: a Write onto a Latin-1 file says that it is not UTF-8, not to read it first, which would not work."""
    folder.mkdir()
    (folder / "a.md").write_bytes("café".encode("latin-1"))
    assert "not UTF-8" in await refused(tools, "Write", file_path="a.md", content=ROLE)


@pytest.mark.parametrize("answer", ["no", 1, None, ZeroDivisionError()])
async def test_only_true_is_consent(tmp_path: Path, answer: object) -> None:
    """AM8: a confirm that answers anything but True, or fails, is a no; the tool says so and the reply goes on."""

    async def confirm(change: object, author: str) -> bool:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]  # the wrong types are the test

    async with open_memory(tmp_path, policy=lambda change, author: "ask", confirm=confirm) as memory:
        await refused(Toolset(memory.folder, "agent:a"), "Write", file_path="a.md", content=ROLE)
    assert not list(tmp_path.iterdir())
