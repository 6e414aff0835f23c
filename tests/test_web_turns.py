"""The page of the last turns in a real browser: what was chosen, and what it was chosen from."""

from __future__ import annotations

from pathlib import Path

import pytest
from browser import Open, expect
from command import note, write
from folders import memory
from web_demo import EVIL, filled

from mdmemory import ScriptedModel, open_memory
from mdmemory.agent.past_turns import MAX_OFFERED

pytestmark = pytest.mark.xdist_group("browser")
MANY = MAX_OFFERED + 20


async def converse(root: Path) -> None:
    """Many files, and a turn in which a model chose one of them."""
    write(root / "user/home.md", note("Home", "where I live", "In Oslo."))
    write(root / "user/evil.md", memory(EVIL, "where I live, too", body="Nowhere."))
    for number in range(MANY - 2):
        write(root / f"project/{number}.md", note(f"Entry {number}", "an entry", "Text.", kind="project"))
    model = ScriptedModel([{"files": [{"path": "project/7.md", "reason": "it may help"}]}])
    async with open_memory(root, model=model) as opened, opened.session("monday").turn("Where do I live?") as turn:
        await turn.take_hint(wait_s=5)
        assert turn.status.degraded is None and len(turn.status.offered) == MANY


def test_what_was_offered(open_tab: Open, tmp_path: Path) -> None:
    """P1: a turn opens to the files that the model chose from, cut where they are many, and to what words alone would give."""
    from axe_playwright_python.sync_playwright import Axe

    tab = open_tab(filled(tmp_path / "memory", converse), bypass_csp=True)
    page = tab.go("/turns")
    expect(page.locator(".chosen li")).to_have_count(1)
    offered = page.locator(".offered")
    expect(offered.locator("ul").first).to_be_hidden()
    page.click(f"text=Offered to the model: {MANY} files")
    lists = offered.locator("ul")
    expect(lists.first).to_be_visible()
    expect(lists.first.locator("li")).to_have_count(MAX_OFFERED + 1)
    expect(lists.first.locator("li").last).to_have_text("and 20 more, which are not noted")
    expect(lists.nth(1)).to_contain_text("shares the words live")
    expect(lists.nth(1).locator("small").first).to_have_text("1.00")
    assert Axe().run(page).response["violations"] == []
    lists.nth(1).locator("a", has_text="Home").click()
    expect(page.locator("h1")).to_have_text("Home")
