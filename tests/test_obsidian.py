"""The folder is a vault of Obsidian as it is: its links, tags, aliases and properties mean the same here."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from folders import everything, index_of, on_disk

from mdmemory import Create
from mdmemory.agent.tools import Toolset
from mdmemory.care.doctor import examine
from mdmemory.care.export import export
from mdmemory.files.memory_file import new_file
from mdmemory.memory import open_memory

VAULT = {
    "people/Ann Lee.md": """---
aliases:
  - Annie
  - "A. Lee"
tags:
  - people/friends
  - '#climbing'
cssclasses:
done: false
rating: 4
Date met: 2024-05-17
related: "[[Club]]"
---

Climbs on Tuesdays at the [[Club|wall]], see [[Club#Opening hours]] and [the club](../Club.md).

- works at:: [[Acme]] (2024-01 →)
""",
    "Club.md": "# Opening hours\n\nTen to ten. #climbing\n",
    "Acme.md": "# Acme\n\nMakes anvils.\n",
    ".obsidian/app.json": "{}",
    ".obsidian/plugins/x/data.md": "# not a note\n",
    ".trash/old.md": "# thrown away\n",
}


async def test_a_vault_is_a_memory_as_it_is(tmp_path: Path) -> None:
    """Properties as Obsidian writes them are read, hidden folders are not, and looking changes no byte."""
    folder = on_disk(tmp_path, VAULT)
    before = everything(tmp_path)
    await folder.refresh()
    header = folder.files["people/Ann Lee.md"].header
    assert header is not None and header.tags == ("people/friends", "climbing")
    assert folder.files.keys() == {"people/Ann Lee.md", "Club.md", "Acme.md"}
    assert {finding.code for finding in await examine(folder)} <= {"no-pointer", "no-index"}  # no link leads nowhere
    async with open_memory(tmp_path) as memory:
        assert [fact.object for fact in await memory.facts("Annie", "works at")] == ["Acme"]
        assert [fact.subject for fact in await memory.facts(object="Acme")] == ["Ann Lee"]
        assert [match.path for match in await memory.search("Tuesdays", tags="climbing")] == ["people/Ann Lee.md"]
    assert everything(tmp_path) == before


async def test_every_line_of_the_index_is_a_link_that_obsidian_follows(tmp_path: Path) -> None:
    """Links are relative and percent-encoded, so that names with spaces and brackets work too."""
    folder = on_disk(tmp_path)
    names = ["people/Ann Lee.md", "a (draft).md", "计划.md", "50% off.md"]
    files = [Create(name, new_file(f"About {name[:3]}", "x", "user", f"Text {name}")) for name in names]
    await folder.apply(files, "person", "test")
    targets = re.findall(r"\]\((\S+)\)", index_of(tmp_path))
    assert sorted(map(unquote, targets)) == sorted(names) and not any(" " in target for target in targets)


@pytest.mark.parametrize("field", ["aliases:\n  - Annie", "rating: 4", "cssclasses:\n", 'related: "[[Club]]"'])
async def test_what_an_agent_edits_keeps_the_properties(tmp_path: Path, field: str) -> None:
    """An Edit changes its lines, and every property stays as Obsidian wrote it."""
    folder = on_disk(tmp_path, VAULT)
    await folder.refresh()
    tools = Toolset(folder, "agent:test")
    path = "people/Ann Lee.md"
    await tools.call("Read", {"file_path": path})
    result = await tools.call("Edit", {"file_path": path, "old_string": "on Tuesdays", "new_string": "on Fridays"})
    text = (tmp_path / path).read_text(encoding="utf-8")
    assert not result.is_error and field in text and text == VAULT[path].replace("on Tuesdays", "on Fridays")


async def test_an_export_leaves_the_settings_of_obsidian_at_home(tmp_path: Path) -> None:
    """`.obsidian` and `.trash` are in no archive."""
    assert b".obsidian" not in (await export(on_disk(tmp_path, VAULT), "zip")).data
