"""An import meets the folder: twice is once, what people changed stays, and the dry run says what the real one does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from exports import as_json, chatgpt, node, remembered, walk
from folders import everything, index_of, log_of, memory, on_disk, visible

from mdmemory import Config, MemoryFolder, Mount, open_memory, read_only
from mdmemory.care import importing
from mdmemory.care.importers.chatgpt import plan_chatgpt
from mdmemory.care.importers.markdown import plan_markdown
from mdmemory.care.importers.mem0 import plan_mem0
from mdmemory.care.importing import Imported, import_plan
from mdmemory.errors import ConfigError, PermissionDenied

KEY = "AKIA" + "IOSFODNN7" + "EXAMPLE"  # of Amazon's documentation
NOTES = {"home.md": memory("Home"), "work/site.md": memory("Site", type="project"), "CLAUDE.md": b"# Rules\n\nTest.\n"}


async def bring(folder: MemoryFolder, files: Mapping[str, bytes], **options: bool) -> dict[str, str]:
    """Import a folder of Markdown, and return what was done with each file."""
    imported = await import_plan(folder, "claude-code", plan_markdown(files), **options)
    return {step.path: step.action for step in imported.steps}


async def remember(folder: MemoryFolder, *items: dict[str, Any], **options: bool) -> Imported:
    """Import memories of mem0."""
    return await import_plan(folder, "mem0", plan_mem0({"e.json": as_json(list(items))}), **options)


async def test_twice_is_once(tmp_path: Path) -> None:
    """The files come in one commit of the author `import`, with their index lines; a second import writes nothing at all."""
    folder = on_disk(tmp_path)
    assert await bring(folder, NOTES) == dict.fromkeys(NOTES, "create")
    assert {path: data for path, data in visible(tmp_path).items() if path != "MEMORY.md"} == NOTES
    intents = [entry for entry in log_of(tmp_path) if "id" in entry]
    assert [(entry["author"], entry["reason"]) for entry in intents] == [("import", "import claude-code")]
    assert index_of(tmp_path).count("](") == 3
    before = everything(tmp_path)
    assert await bring(folder, NOTES) == dict.fromkeys(NOTES, "same")
    assert everything(tmp_path) == before


async def test_what_was_imported_is_noted_however_much_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the last import wrote is kept in several files where one would be too large to be read back."""
    monkeypatch.setattr(importing, "BASE_BYTES", 500)
    folder = on_disk(tmp_path)
    items = [remembered(f"id-{number}", f"Likes tea number {number}") for number in range(20)]
    await remember(folder, *items)
    assert len(list((tmp_path / ".mdmemory/import").iterdir())) > 3
    before = everything(tmp_path)
    assert {step.action for step in (await remember(folder, *items)).steps} == {"same"} and everything(tmp_path) == before
    items[7] = remembered("id-7", "Likes coffee")
    (changed,) = (step for step in (await remember(folder, *items)).steps if step.action != "same")
    assert changed.action == "replace" and "Likes coffee" in (tmp_path / changed.path).read_text()


async def test_a_dry_run_says_what_the_import_does_and_writes_nothing(tmp_path: Path) -> None:
    """Every kind of step is in the plan as it is in the real run, conversations too."""
    folder = on_disk(tmp_path, {"taken.md": "# Mine\n"})
    await bring(folder, {"old.md": b"old\n", "mine.md": b"mine\n", "gone.md": b"gone\n"})
    (tmp_path / "mine.md").write_bytes(b"mine, changed\n")
    (tmp_path / "gone.md").unlink()
    files = {**NOTES, "old.md": b"new\n", "mine.md": b"theirs\n", "gone.md": b"gone\n", "taken.md": b"theirs\n", "TAKEN.md": b"x"}
    before = everything(tmp_path)
    dry = await bring(folder, files, dry_run=True)
    assert everything(tmp_path) == before
    expected = dict.fromkeys(NOTES, "create") | {
        "old.md": "replace",
        "mine.md": "conflict",
        "gone.md": "kept",
        "TAKEN.md": "conflict",
    }
    assert dry == expected == await bring(folder, files)
    assert (visible(tmp_path)["old.md"], visible(tmp_path)["mine.md"]) == (b"new\n", b"mine, changed\n")
    plan = plan_chatgpt({"c.json": as_json([walk()])})
    heard = (await import_plan(folder, "chatgpt", plan, dry_run=True)).conversations
    assert heard == (await import_plan(folder, "chatgpt", plan)).conversations and heard[0].new == 2


async def test_what_a_person_changed_stays_and_is_a_conflict_only_when_the_source_changed_too(tmp_path: Path) -> None:
    """An import never writes over what was changed here, or what was here before it."""
    folder = on_disk(tmp_path, {"work/site.md": "# Not imported\n"})
    assert (await bring(folder, NOTES))["work/site.md"] == "conflict"
    (tmp_path / "home.md").write_bytes(memory("Home", body="Mine."))
    assert (await bring(folder, NOTES))["home.md"] == "kept"
    imported = await import_plan(folder, "claude-code", plan_markdown({"home.md": memory("Home", body="Theirs.")}))
    assert [(step.action, step.reason) for step in imported.steps] == [
        ("conflict", "it was changed here and in the source; it stays as it is here")
    ]
    assert visible(tmp_path)["home.md"] == memory("Home", body="Mine.")
    assert visible(tmp_path)["work/site.md"] == b"# Not imported\n"


async def test_what_was_deleted_or_moved_here_does_not_come_back(tmp_path: Path) -> None:
    """A memory is known by its `source` wherever it lies now, also without the history; one that was deleted stays so."""
    folder = on_disk(tmp_path)
    await remember(folder, remembered("a", "Likes tea"), remembered("b", "Likes rain"))
    (tmp_path / "user/likes-tea.md").rename(tmp_path / "tea.md")
    (tmp_path / "user/likes-rain.md").unlink()
    steps = (await remember(folder, remembered("a", "Likes tea a lot"), remembered("b", "Likes rain"))).steps
    assert [(step.path, step.action) for step in steps] == [("tea.md", "replace"), ("user/likes-rain.md", "kept")]
    for place in (tmp_path / ".mdmemory/import").iterdir():
        place.unlink()
    steps = (await remember(folder, remembered("a", "Likes tea a lot"))).steps
    assert [(step.path, step.action) for step in steps] == [("tea.md", "same")]
    assert set(visible(tmp_path)) == {"tea.md", "MEMORY.md"}


async def test_a_file_that_names_another_as_its_source_is_not_taken_for_it(tmp_path: Path) -> None:
    """Only what the import itself marked is known by its mark; `source: home.md` in a note of a person is no such mark."""
    folder = on_disk(tmp_path, {"note.md": memory("Note", source="home.md")})
    assert await bring(folder, {"home.md": memory("Home")}) == {"home.md": "create"}


async def test_a_file_of_the_same_name_gives_way(tmp_path: Path) -> None:
    """Where the name that a memory would get is taken, it gets another, the same each time."""
    folder = on_disk(tmp_path, {"user/likes-tea.md": memory("Likes tea", body="Mine.")})
    (step,) = (await remember(folder, remembered("a", "Likes tea"))).steps
    assert step.action == "create" and step.path.startswith("user/") and step.path != "user/likes-tea.md"
    (again,) = (await remember(folder, remembered("a", "Likes tea"))).steps
    assert (again.path, again.action) == (step.path, "same")


async def test_lines_of_an_index_join_the_one_that_is_there(tmp_path: Path) -> None:
    """People's lines of both stay, a line comes once, and one that was taken out here does not come back."""
    folder = on_disk(tmp_path, {"MEMORY.md": "# Memory\n\nMine.\n"})
    theirs = b"# Memory\n\n- [Home](home.md) - the home\n\nBe brief.\n"
    files = {"home.md": memory("Home"), "MEMORY.md": theirs}
    assert await bring(folder, files) == {"home.md": "create", "MEMORY.md": "merge"}
    assert [line for line in index_of(tmp_path).splitlines() if line] == [
        "# Memory",
        "Mine.",
        "- [Home](home.md) - the home",
        "Be brief.",
    ]
    (tmp_path / "MEMORY.md").write_text(index_of(tmp_path).replace("Be brief.\n", ""), encoding="utf-8")
    before = index_of(tmp_path)
    assert (await bring(folder, files))["MEMORY.md"] == "same" and index_of(tmp_path) == before
    await bring(folder, {**files, "MEMORY.md": theirs + b"Be kind.\n"})
    assert "Be kind." in index_of(tmp_path) and "Mine." in index_of(tmp_path)


@pytest.mark.parametrize(("setting", "kept"), [("redact", b"[redacted: AWS Access Key]"), ("refuse", None), ("keep", KEY.encode())])
async def test_secrets_are_treated_as_the_settings_say(tmp_path: Path, setting: Any, kept: bytes | None) -> None:
    """A key is taken out of text, header and name, or keeps its file out, or comes; each is said, and twice is once."""
    folder = on_disk(tmp_path, config=Config(secrets=setting))
    for _ in range(2):
        imported = await remember(folder, remembered("s", f"Deploys with {KEY}"), remembered("t", "Likes tea"))
    text = b"".join(data for path, data in visible(tmp_path).items() if path.startswith("user/"))
    assert (KEY.encode() in text) == (setting == "keep") and (kept is None or kept in text)
    assert setting == "keep" or KEY.casefold() not in "".join(visible(tmp_path)).casefold()
    assert [each.where for each in imported.left] == (["mem0:s"] if setting == "refuse" else [])
    assert {step.action for step in imported.steps} == {"same"}


async def test_conversations_come_into_the_journal_with_their_times(tmp_path: Path) -> None:
    """A session each, in the month in which it was held; a later export adds what is new, and other words under an id are said."""
    folder = on_disk(tmp_path)
    await import_plan(
        folder, "chatgpt", plan_chatgpt({"c.json": as_json([walk(), chatgpt(node("x", "root", "user", "Hi"), id="c2")])})
    )
    place = tmp_path / "journal/2025/11/chatgpt-c1.md"
    assert "name: A walk\n" in place.read_text(encoding="utf-8") and "source: chatgpt:c1\n" in place.read_text(encoding="utf-8")
    assert "## user · 2025-11-30 12:00:00Z · m1\n\nWhere can I walk?\n" in place.read_text(encoding="utf-8")
    before = everything(tmp_path)
    again = await import_plan(folder, "chatgpt", plan_chatgpt({"c.json": as_json([walk()])}))
    assert [(each.new, each.known) for each in again.conversations] == [(0, 2)] and everything(tmp_path) == before
    longer = walk(node("m3", "m2", "user", "Thanks"))
    longer["mapping"]["m2"]["message"]["content"]["parts"] = ["Around the park."]
    later = await import_plan(folder, "chatgpt", plan_chatgpt({"c.json": as_json([longer])}))
    assert [(each.new, each.known) for each in later.conversations] == [(1, 2)]
    assert [each.where for each in later.left] == ["chatgpt:c1#m2"]
    assert [message.text for message in await folder.journals.messages("chatgpt-c1")][1:] == ["Around the lake.", "Thanks"]


async def test_one_file_that_cannot_be_written_keeps_no_other_out(tmp_path: Path) -> None:
    """A hard link is never written through: the others come, and it is a conflict with its reason."""
    folder = on_disk(tmp_path)
    await bring(folder, {f"n{number}.md": b"one\n" for number in range(5)})
    (tmp_path / "n2.md").unlink()
    (tmp_path / "n2.md").hardlink_to(tmp_path / "n3.md")
    done = await bring(folder, {f"n{number}.md": b"two\n" for number in range(5)})
    assert done == {f"n{number}.md": "conflict" if number in (2, 3) else "replace" for number in range(5)}


async def test_a_read_only_folder_and_one_without_a_journal_say_so(tmp_path: Path) -> None:
    """Nothing is written, and the reason names the setting."""
    with pytest.raises(PermissionDenied, match="read-only"):
        await bring(on_disk(tmp_path, policy=read_only), NOTES)
    with pytest.raises(ConfigError, match="journal"):
        folder = on_disk(tmp_path, config=Config(journal=False))
        await import_plan(folder, "chatgpt", plan_chatgpt({"c.json": as_json([walk()])}))
    assert list(tmp_path.iterdir()) == []


async def test_what_is_mounted_gets_nothing(tmp_path: Path) -> None:
    """An import goes to the home: a path that names a mount is a conflict, and the mount's folder stays as it is."""
    on_disk(tmp_path / "team", {"a.md": "# A\n"})
    before = everything(tmp_path / "team")
    async with open_memory(tmp_path / "home", mounts={"team/": Mount(tmp_path / "team")}) as memory_:
        imported = await import_plan(memory_.folder, "markdown", plan_markdown({"team/b.md": b"# B\n", "c.md": b"# C\n"}))
    assert {step.path: step.action for step in imported.steps} == {"c.md": "create", "team/b.md": "conflict"}
    assert everything(tmp_path / "team") == before and (tmp_path / "home/c.md").exists()
