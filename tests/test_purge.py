"""Real forgetting: nothing of a file, or of a text, is left in the folder, its history and its cache."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from folders import in_memory, index_of, log_of, memory, objects_of, on_disk, visible
from local_shell import KINDS, LocalShell

from mdmemory.backends.protocol import etag_of
from mdmemory.backends.shell import ShellBackend
from mdmemory.care import history
from mdmemory.errors import InvalidArguments, PermissionDenied
from mdmemory.files.changes import Append, Create, Delete, Rename, Replace
from mdmemory.files.history import read_tombstones
from mdmemory.files.journal import new_message
from mdmemory.files.purging import a_file, a_text, without_it
from mdmemory.files.strict_yaml import quote
from mdmemory.folder.memory_folder import MemoryFolder
from mdmemory.folder.permissions import read_only
from mdmemory.folder.purge import purge
from mdmemory.recall.cache import Cache

SECRET = "xylophone-4711"
OLD = memory("Locker", "where the key is", body=f"The code of the locker is {SECRET}.\nIt is in the hall.\n")
NEW = memory("Locker", "where the key is", body="The code of the locker is known to Ada.\nIt is in the hall.\n")
TEA = memory("Tea", "green", body="Green tea, without sugar.\n")


def holding(root: Path, text: str) -> list[str]:
    """Every file below a folder that has a text in it, or in its name."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return [str(path.relative_to(root)) for path in files if text.encode() in path.read_bytes() or text in path.name]


async def seeded(folder: MemoryFolder) -> MemoryFolder:
    """A folder with a file that was created, renamed and edited, and another."""
    await folder.refresh()
    await folder.apply([Create("locker.md", OLD)], "agent:monday", "Write locker.md")
    await folder.apply([Create("tea.md", TEA)], "agent:monday", "Write")
    await folder.apply([Rename("locker.md", "home/locker.md")], "person", "tidy")
    await folder.apply([Replace("home/locker.md", NEW, etag_of(OLD), OLD)], "agent:tuesday", "Edit")
    return folder


async def test_a_file_goes_with_its_history(tmp_path: Path) -> None:
    """D3: a purged file is gone under all names: from the folder, the index, the log, the objects, and the cache."""
    cache = tmp_path / "cache/c.sqlite"
    cache.parent.mkdir()
    root = tmp_path / "memory"
    folder = await seeded(on_disk(root, cache=Cache(cache)))
    purged = await purge(folder, ["home/locker.md"])
    assert (purged.files, purged.left) == (("home/locker.md",), ())
    assert purged.contents == 2 and purged.commits == 4
    await folder.close()
    for text in (SECRET, "locker", "Locker", "known to Ada"):
        assert holding(tmp_path, text) == []
    assert set(visible(root)) == {"tea.md", "MEMORY.md"} and index_of(root) == "- [Tea](tea.md) — green\n"
    assert objects_of(root) == [TEA]
    again = on_disk(root)
    assert [event.files[0].path for event in await history.events(again)] == ["tea.md"]
    forgotten = read_tombstones((root / ".mdmemory/tombstones").read_bytes())
    at = max(forgotten.names.values())
    assert (
        forgotten.covers("home/locker.md", "x", at)
        and forgotten.covers("y", "Locker", at)
        and not forgotten.covers("tea.md", "Tea", at)
    )


async def test_a_text_goes_wherever_it_stands(tmp_path: Path) -> None:
    """D3: a purged text is gone from every version, from paths and reasons of the log; the rest can still be undone."""
    cache = tmp_path / "cache/c.sqlite"
    cache.parent.mkdir()
    root = tmp_path / "memory"
    folder = await seeded(on_disk(root, cache=Cache(cache)))
    await folder.apply([Create(f"about-{SECRET}.md", TEA.replace(b"Tea", b"More"))], "agent:monday", f'Write "{SECRET}"')
    await folder.apply([Create(f"named-{SECRET}.md", TEA.replace(b"Tea", b"Named"))], "agent:monday", "Write")
    await folder.apply([Append("tea.md", f"And {SECRET}.\n".encode())], "agent:monday", "Add")
    await folder.apply([Delete(f"about-{SECRET}.md")], "person", "forget")
    purged = await purge(folder, text=SECRET)
    assert purged.files == ("named-purged.md", "tea.md") and purged.left == ()
    await folder.close()
    assert holding(tmp_path, SECRET) == []
    again = on_disk(root)
    await again.refresh()
    assert [event.files[0].kind for event in await history.events(again, path="named-purged.md")] == ["created"]
    edited = next(event for event in await history.events(again) if event.author == "agent:tuesday")
    await history.undo(again, edited)
    await history.restore(again, "about-purged.md")
    assert visible(root)["about-purged.md"] == TEA.replace(b"Tea", b"More")
    assert visible(root)["home/locker.md"] == OLD.replace(SECRET.encode(), b"(purged)")
    assert (await purge(again, text=SECRET)).commits == 0
    assert all("done" in entry or entry["files"] or entry["added"] for entry in log_of(root))


async def test_journals_only_on_request(tmp_path: Path) -> None:
    """D3: a conversation is looked through and named; on request the words go, and ids, roles and tools' calls stay."""
    from mdmemory import open_memory

    async with open_memory(tmp_path / "memory", config=None) as opened:
        session = opened.session("monday")
        turn = await session.turn(f"My code is {SECRET}.", id="m1")
        call = {
            "id": "c1",
            "type": "function",
            "function": {"name": "Write", "arguments": json.dumps({"content": f'"{SECRET}"\n'})},
        }
        turn.record({"role": "assistant", "content": None, "tool_calls": [call]})
        await turn.finish("I keep it to myself.")
        purged = await purge(opened.folder, text=SECRET)
        (left,) = purged.left
        assert left.where.startswith("journal/") and left.where.endswith("/monday.md") and left.what == "3 places"
        assert (await purge(opened.folder, text=SECRET, journal=True)).left == ()
    async with open_memory(tmp_path / "memory") as opened:
        await opened.folder.refresh()
        said = await opened.folder.journals.messages("monday")
    assert holding(tmp_path, SECRET) == []
    assert [(message.role, message.text) for message in said[::2]] == [
        ("user", "My code is (purged)."),
        ("assistant", "I keep it to myself."),
    ]
    assert said[0].id == "m1" and json.loads(said[1].data["tool_calls"][0]["function"]["arguments"]) == {"content": '"(purged)"\n'}


async def test_a_new_file_with_an_old_name_stays(tmp_path: Path) -> None:
    """D3: a file that has the name which a purged one had before keeps its bytes and its history."""
    folder = await seeded(on_disk(tmp_path))
    other = memory("Other", "new", body="Nothing of the kind.\n")
    await folder.apply([Create("locker.md", other)], "person", "Write")
    purged = await purge(folder, ["home"])
    assert (purged.files, purged.left) == (("home/locker.md",), ()) and holding(tmp_path, SECRET) == []
    assert visible(tmp_path)["locker.md"] == other
    assert [event.files[0].kind for event in await history.events(folder, path="locker.md")] == ["created"]


async def test_what_is_left_is_told(tmp_path: Path) -> None:
    """D3: other files that say the same, files that are no memory, and a git repository around are named."""
    folder = await seeded(on_disk(tmp_path, {"copy.md": OLD, "photo.txt": SECRET, ".git/config": SECRET, ".obsidian/work": SECRET}))
    purged = await purge(folder, ["home/locker.md"])
    assert {left.where for left in purged.left} == {"copy.md"}
    assert any("git repository" in told for told in purged.beyond)
    purged = await purge(folder, text=SECRET)
    assert [(left.where, left.what) for left in purged.left] == [("photo.txt", "1 place"), (".obsidian/work", "1 place")]


@pytest.mark.parametrize("kind", ["memory", *KINDS])
async def test_in_a_sandbox_with_three_verbs(kind: str, tmp_path: Path) -> None:
    """D3: where nothing can be listed, all that the log names is purged with the same verbs as any save."""
    root = tmp_path / "memory"
    shell = None if kind == "memory" else ShellBackend(LocalShell(kind, tmp_path), str(root))
    folder = await seeded(in_memory() if shell is None else MemoryFolder(shell))
    purged = await purge(folder, text=SECRET)
    assert purged.left == () and any("sandbox" in told for told in purged.beyond)
    purged = await purge(folder, ["home"])
    assert purged.left == () and purged.files == ("home/locker.md",)
    assert [event.files[0].path for event in await history.events(folder)] == ["tea.md"]
    assert not root.exists() or holding(root, "locker") == holding(root, SECRET) == []


async def test_what_can_not_be_purged(tmp_path: Path) -> None:
    """D3: a read-only folder, a text of three letters and an old name of a file are refused before anything is changed."""
    folder = await seeded(on_disk(tmp_path))
    with pytest.raises(InvalidArguments, match=r"home/locker\.md by now"):
        await purge(folder, ["locker.md"])
    for wrong in ({"text": "abc"}, {"paths": ["a"], "text": SECRET}, {}):
        with pytest.raises(InvalidArguments, match="say what to purge"):
            await purge(folder, **wrong)  # type: ignore[arg-type]  # called the wrong way
    with pytest.raises(PermissionDenied):
        await purge(on_disk(tmp_path, policy=read_only), ["tea.md"])
    assert len(await history.events(folder)) == 4


def test_the_arguments_of_a_tool_are_read_as_json() -> None:
    """D3: a model may write them with space before, capital hex digits and escaped slashes."""
    arguments = '\n {"q": "\\u4E2D\\/4711"}'
    said = new_message({"role": "assistant", "tool_calls": [{"function": {"arguments": arguments}}]}, "m1")
    assert without_it(a_text("中/4711"))(said) == {
        "role": "assistant",
        "tool_calls": [{"function": {"arguments": '{"q": "(purged)"}'}}],
    }


def test_every_form_of_a_text_is_found() -> None:
    """D3: a text is found as it stands in Markdown, YAML, JSON and JSON in JSON, with either line end, and nothing shorter is."""
    text = "'a' says \"naïve\"\nand goes"
    wanted = a_text(text)
    once, twice = json.dumps(text), json.dumps(json.dumps(text, ensure_ascii=False))
    for form in (text, text.replace("\n", "\r\n"), once, json.dumps(text, ensure_ascii=False), twice, f'name: "{quote(text)}"'):
        assert wanted.find(form.encode()), form
    assert not any(a_text("''a''").find(other) for other in (b"a", b"'a'", b"banana"))
    paths = a_file(["tea.md", "a b/c.md"], [])
    for form in ("see tea.md.", "(./tea.md)", '"tea.md"', "../tea.md,", "[x](a%20b/c.md)", "a b/c.md"):
        assert paths.find(form.encode()), form
    for other in ("green-tea.md", "drinks/tea.md", "tea.mdx", "tea.md-old", "stea.md", "x/../y/tea.md"):
        assert not paths.find(other.encode()), other


@pytest.mark.parametrize("kind", ["disk", *KINDS])
async def test_where_nothing_was_saved_yet(kind: str, tmp_path: Path) -> None:
    """M7: in a folder without a history, what waits for a person is purged all the same."""
    root = tmp_path / "memory"
    folder = on_disk(root, {".mdmemory/proposals": b'{"id":"x","reason":"the quokka"}\n{"id":"y"}\n'})
    if kind != "disk":
        folder = MemoryFolder(ShellBackend(LocalShell(kind, tmp_path), str(root)))
    purged = await purge(folder, text="quokka")
    assert purged.left == () and (root / ".mdmemory/proposals").read_bytes() == b'{"id":"y"}\n'
    assert holding(root, "quokka") == []
