"""The wake-up block: what it brings, and how it keeps to its budget."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest
from command import mdmemory
from counting import CountingBackend
from folders import memory as memory_file
from hypothesis import given
from hypothesis import strategies as st
from test_recall_quality import CORPUS
from test_timeline import put

from mdmemory import Config, MemoryFolder, open_memory
from mdmemory.agent.wake_up import make_wake_up, ranked
from mdmemory.backends.local import LocalBackend
from mdmemory.backends.memory import MemoryBackend
from mdmemory.files.changes import Create
from mdmemory.render import estimate_tokens

FILES = {
    "note.md": memory_file("Note", type="reference", body="A place."),
    "rule.md": memory_file("Rule", type="feedback", body="Be brief."),
    "pinned.md": memory_file("Pinned", type="reference", body="The wiki.", pinned="true"),
    "role.md": memory_file("Role", body="A surveyor."),
    "name.md": memory_file("Name", body="Called Ann.", pinned="true"),
    "gone.md": memory_file("Gone", body="Was a baker.", valid_until="2020"),
    "plan.md": memory_file("Plan", type="project", body="Ships in May."),
}


def put_in_order(folder: Path) -> None:
    """The files, each a minute newer than the one before."""
    put(folder, FILES)
    for minute, path in enumerate(FILES):
        os.utime(folder / path, (1.8e9 + 60 * minute,) * 2)


async def test_who_the_user_is_comes_first(tmp_path: Path) -> None:
    """V6: the user's files, the pinned, then feedback and project, the newest first; what is over stays out."""
    put_in_order(tmp_path)
    async with open_memory(tmp_path) as memory:
        text = await memory.wake_up()
        assert ranked(memory.folder) == ["name.md", "role.md", "pinned.md", "plan.md", "rule.md", "note.md"]
    places = [
        text.index(body) for body in ("> Called Ann.", "> A surveyor.", "> The wiki.", "> Ships", "> Be brief.", "> A place.")
    ]
    assert places == sorted(places) and "baker" not in text and "more memory file" not in text


async def test_what_does_not_fit_is_cut_at_a_line_and_counted(tmp_path: Path) -> None:
    """V6: a long file is cut where a line ends, and says where the rest is; the others are counted."""
    put_in_order(tmp_path)
    put(tmp_path, {"name.md": memory_file("Name", body="\n".join(f"- fact number {n}" for n in range(99)), pinned="true")})
    async with open_memory(tmp_path) as memory:
        text = await memory.wake_up(200)
    shown = [line for line in text.split("\n") if line.startswith("> ")]
    assert 5 < len(shown) < 99 and shown == [f"> - fact number {n}" for n in range(len(shown))]
    assert "(Cut here. Read name.md for the rest.)" in text and "5 more memory files are not shown here." in text
    assert 200 - 12 <= estimate_tokens(text) <= 200


@pytest.fixture(scope="module")
def corpus() -> MemoryFolder:
    """Notes in five languages, in memory."""
    folder = MemoryFolder(MemoryBackend(), Config())
    creates = [Create(f"{path.parent.name}/{path.name}", path.read_bytes()) for path in sorted(CORPUS.rglob("*.md"))]
    asyncio.run(folder.apply(creates, "person", "test"))
    return folder


@given(st.integers(-10, 2_500))
def test_the_budget_is_kept(corpus: MemoryFolder, tokens: int) -> None:
    """V6: whatever the budget, the block takes no more; where nothing fits it is empty."""
    text = asyncio.run(make_wake_up(corpus, tokens))
    assert estimate_tokens(text) <= max(0, tokens)
    assert tokens >= 50 if text else tokens < 120


async def test_a_template_of_the_users_keeps_the_budget_too(tmp_path: Path) -> None:
    """V6: a template that adds up otherwise loses files from its end."""
    put_in_order(tmp_path / "memory")
    template = '{# files: as in ours · left_out #}{% for f in files %}{{ "x" * loop.index ** 3 }}{{ f.path }} {% endfor %}'
    put(tmp_path / "prompts", {"wake_up.md.j2": template.encode()})
    async with open_memory(tmp_path / "memory", config=Config(prompts_dir=tmp_path / "prompts")) as memory:
        text = await memory.wake_up(20)
    assert "name.md" in text and estimate_tokens(text) <= 20


async def test_only_files_that_may_fit_are_read(tmp_path: Path) -> None:
    """V6: of a large folder, as many files are read as a budget can hold."""
    put(tmp_path, {f"{n}.md": memory_file(f"N{n}", body="word " * 500) for n in range(200)})
    backend = CountingBackend(LocalBackend(tmp_path))
    async with open_memory(backend) as memory:
        await memory.folder.refresh()
        backend.paths.clear()
        await memory.wake_up(600)
    assert 0 < len(backend.paths) < 10


async def test_the_command_says_what_it_saves(tmp_path: Path) -> None:
    """V6: `mdmemory wake-up` prints the block, and beside it what the files and the conversations take in all."""
    put_in_order(tmp_path / "memory")
    calls = (CORPUS / "journal-of-calls/anna.md").read_text(encoding="utf-8").partition("\n---\n")[2].strip().split("\n\n")
    async with open_memory(tmp_path / "memory") as memory:
        for said, reply in zip(calls[::2], calls[1::2], strict=False):
            await (await memory.session("anna").turn(said)).finish(reply)
    done = mdmemory("wake-up", "--tokens", "100", cwd=tmp_path)
    found = json.loads(mdmemory("wake-up", "--tokens", "100", "--json", cwd=tmp_path).stdout)
    assert done.stdout.startswith("<memory-wake-up>\n") and found["text"] == done.stdout.strip()
    taken, files, talk = found["tokens"], found["tokens_of_files"], found["tokens_of_conversations"]
    assert taken == estimate_tokens(found["text"]) <= 100 < files and talk >= sum(map(estimate_tokens, calls[:-1]))
    times = f"{(files + talk) / taken:.1f} times as many"
    assert done.stderr.strip() == f"about {taken} tokens; the memory files have {files} and the conversations {talk}, {times}"
    assert mdmemory("wake-up", "--tokens", "9", cwd=tmp_path).stdout == "No memory file fits into 9 tokens.\n"
    (tmp_path / "empty").mkdir()
    assert mdmemory("wake-up", "-f", "empty", cwd=tmp_path).stdout == "No memory files yet.\n"
