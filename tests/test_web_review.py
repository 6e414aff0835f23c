"""The review queue on the web page: what a proposal loses is seen, and nothing happens but by a person's decision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browser import Open, expect
from command import note, write
from conversations import memory, reply
from folders import log_of, visible
from web_demo import EVIL, EVIL_BODY, filled
from web_server import visiting

from mdmemory import Config, ScriptedModel, open_memory
from mdmemory.care.consolidate import consolidate

pytestmark = pytest.mark.xdist_group("browser")
ONE = "We deploy the billing service on Tuesdays from the main branch, after the tests of the release have passed."
TWO = "The billing service is deployed on Tuesdays from the main branch, after the tests of the release passed, by 4711."
BOTH = "---\nname: Deploying\ndescription: when billing is deployed\ntype: project\n---\n\n{}\n"


async def propose(root: Path, name: str = "Deploying", body: str = ONE, reason: str = "they say the same") -> None:
    """Two files that say the same, and a proposal that makes one of them."""
    write(root / "project/deploy.md", note("Deploying", "when billing is deployed", ONE, kind="project"))
    write(root / "project/release.md", note("Releases", "when billing is released", TWO, kind="project"))

    async def model(messages: object, *, schema: object = None) -> dict[str, Any]:
        file = {"path": "project/deploy.md", "name": name, "description": "when billing is deployed", "body": body}
        sources = ["project/deploy.md", "project/release.md"]
        return {"proposals": [{"kind": "merge", "sources": sources, "files": [file], "reason": reason}]}

    async with open_memory(root) as opened:
        report = await consolidate(opened.folder, model)
    assert len(report.proposals) == 1, report


async def converse(root: Path) -> None:
    """A conversation, and what was drawn from it, which waits."""
    facts = memory("Home", "Lives in Hangzhou.", path="user/home.md"), memory("Tea", "Drinks green tea.", path="user/tea.md")
    model = ScriptedModel([reply(*facts)])
    async with open_memory(root, model=model, config=Config(extract="propose", extract_every=1)) as opened:
        session = opened.session("monday", write_back="awaited")
        turn = await session.turn("I live in Hangzhou, and I drink green tea.", id="m")
        await turn.finish("Noted.")
        assert len(session.status.outcomes) == 2, turn.status


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which a proposal waits."""
    return filled(tmp_path / "memory", propose)


def test_a_proposal_is_looked_at_and_accepted(folder: Path) -> None:
    """P1, D2: what would be lost is named, it takes an explicit yes, and one undo takes all of it back."""
    before = visible(folder)
    with visiting(folder) as visitor:
        (path,) = {part.partition('"')[0] for part in visitor.get("/review").split('href="')[1:] if part.startswith("/review/")}
        page = visitor.get(path)
        assert "<code>4711</code>" in page and "-The billing service is deployed" in page and "Look twice" in page
        form = {**visitor.form(path), "do": "accept"}
        refused = visitor.post(path, form)
        assert refused.status_code == 422 and "explicit yes" in refused.text and visible(folder) == before
        assert visitor.post(path, {**form, "force": "yes"}).headers["location"] == "/review?note=accepted"
        assert not (folder / "project/release.md").exists() and "Nothing waits" in visitor.get("/review")
        event = next(line["id"] for line in reversed(log_of(folder)) if line.get("author") == "consolidation")
        visitor.post(f"/history/{event}", visitor.form(f"/history/{event}"))
        assert {path: data for path, data in visible(folder).items() if path != "MEMORY.md"} == {
            path: data for path, data in before.items() if path != "MEMORY.md"
        }


def test_a_decision_is_on_what_was_seen(folder: Path) -> None:
    """E5: a proposal that was edited, or whose file has changed, is not accepted from an older page; it can be rejected."""
    with visiting(folder) as visitor:
        path = next(part.partition('"')[0] for part in visitor.get("/review").split('href="') if part.startswith("/review/"))
        seen = visitor.form(path)
        typed = visitor.post(path, {**seen, "text.project/deploy.md": BOTH.format(TWO)})
        assert typed.headers["location"].endswith("?note=edited") and "4711</code>" not in visitor.get(path)
        assert visitor.post(path, {**seen, "do": "accept", "force": "yes"}).status_code == 409
        broken = visitor.post(path, {**visitor.form(path), "text.project/deploy.md": "---\nname: [typed\n---\n"})
        assert broken.status_code == 422 and "name: [typed" in broken.text
        before = visible(folder)
        write(folder / "project/release.md", note("Releases", "when billing is released", "Something else.", kind="project"))
        assert visitor.post(path, {**visitor.form(path), "do": "accept", "force": "yes"}).status_code == 409
        assert "can no longer be accepted" in visitor.get(path) and "<textarea" not in visitor.get(path)
        late = visitor.post(path, {**visitor.form(path), "text.project/deploy.md": "late words"})
        assert late.status_code == 409 and "late words</textarea>" in late.text
        assert visitor.post(path, {**visitor.form(path), "do": "reject"}).headers["location"] == "/review?note=rejected"
        assert "Nothing waits" in visitor.get("/review") and visible(folder).keys() == before.keys()
        late = visitor.post(path, {**seen, "text.project/deploy.md": "later words"})
        assert late.status_code == 404 and "later words</textarea>" in late.text


@pytest.mark.slow
def test_a_proposal_in_a_browser(open_tab: Open, folder: Path) -> None:
    """A person puts their own words in a proposal and accepts it; axe finds nothing on the way."""
    from axe_playwright_python.sync_playwright import Axe

    tab = open_tab(folder, bypass_csp=True)
    page = tab.go("/review")
    assert Axe().run(page).response["violations"] == []
    page.click(".rows .name")
    expect(page.locator(".losses")).to_contain_text("4711")
    assert Axe().run(page).response["violations"] == []
    page.fill("textarea", BOTH.format(TWO))
    page.get_by_role("button", name="Put them in its place", exact=True).click()
    expect(page.locator(".notice.good")).to_contain_text("Your words stand in it now")
    if page.locator("#force").count():
        page.check("#force")
    page.get_by_role("button", name="Accept", exact=True).click()
    expect(page.locator(".notice.good")).to_contain_text("Accepted")
    assert (folder / "project/deploy.md").read_text(encoding="utf-8") == BOTH.format(TWO)


@pytest.mark.slow
def test_what_a_conversation_brought_in_a_browser(open_tab: Open, tmp_path: Path) -> None:
    """M1: what was drawn from a conversation is told from what consolidation proposes, leads to what was said, and is accepted."""
    from axe_playwright_python.sync_playwright import Axe

    folder = filled(tmp_path / "memory", converse)
    tab = open_tab(folder, bypass_csp=True)
    page = tab.go("/review")
    expect(page.locator(".rows .facts bdi")).to_have_text(["conversation monday", "conversation monday"])
    assert Axe().run(page).response["violations"] == [] and not (folder / "user").exists()
    page.click(".rows .name >> text=add user/home.md")
    expect(page.locator(".diff").first).to_contain_text("source: monday#m")
    assert Axe().run(page).response["violations"] == []
    page.click("main >> text=monday >> nth=0")
    expect(page.locator("main")).to_contain_text("I live in Hangzhou")
    page.go_back()
    page.get_by_role("button", name="Accept", exact=True).click()
    expect(page.locator(".notice.good")).to_contain_text("Accepted")
    expect(page.locator(".rows .name")).to_have_text(["add user/tea.md"])
    page.click(".rows .name")
    page.get_by_role("button", name="Reject", exact=True).click()
    expect(page.locator(".empty")).to_contain_text("Nothing waits")
    assert "Lives in Hangzhou." in (folder / "user/home.md").read_text() and not (folder / "user/tea.md").exists()
    assert any(line.get("author") == "agent:monday/extractor" for line in log_of(folder))
    assert "monday#m" in (folder / ".mdmemory/tombstones").read_text()


def test_a_proposal_that_wants_to_do_harm(open_tab: Open, tmp_path: Path) -> None:
    """V8: what a model proposes is shown as text."""
    folder = filled(tmp_path / "memory", lambda root: propose(root, EVIL, EVIL_BODY, EVIL))
    page = open_tab(folder).go("/review")
    page.click(".rows .name")
    expect(page.locator(".diff").first).to_contain_text("onerror")
