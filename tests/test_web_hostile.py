"""V8: whatever a file, a conversation or an address says, the web page shows it, and runs and fetches nothing of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from browser import Open, expect
from web_demo import EVIL, fill_with_evil, filled

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]
START = ["/", "/index", "/journal", "/history", "/turns", "/doctor", "/new"]
ASKED = ["/?q={}", "/?tag={}&type={}&folder={}&page={}", "/journal?q={}", "/history?path={}", "/history?session={}", "/new?name={}"]
ASKED += ["/file/{}.md", "/edit/{}.md", "/journal/{}", "/history/{}", "/{}", "/?note={}"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of somebody who means harm."""
    return filled(tmp_path / "memory", fill_with_evil)


def links(page: Any) -> list[str]:
    """Where the links of a page lead, as the browser understands them."""
    return list(page.evaluate("[...document.querySelectorAll('a[href]')].map(link => link.href)"))


def test_no_page_does_harm(open_tab: Open, folder: Path) -> None:
    """V8: every page that can be reached by links is opened: no dialog, no request elsewhere, no violation of the policy."""
    tab = open_tab(folder)
    left, seen = [*START, *(address.replace("{}", quote(EVIL, safe="")) for address in ASKED)], set[str]()
    outside = set[str]()
    while left:
        path = left.pop()
        if path in seen:
            continue
        seen.add(path)
        page = tab.go(path)
        tab.faults[:] = [fault for fault in tab.faults if "status of 40" not in fault]  # a page that there is not is said so
        assert tab.faults == [], path
        assert page.evaluate(
            "[document.title.length > 0, document.querySelectorAll('script, style, base, iframe, meta').length]"
        ) == [
            True,
            5,
        ], path
        assert page.locator("main").is_visible()
        for link in links(page):
            parts = urlsplit(link)
            if f"{parts.scheme}://{parts.netloc}" == tab.base:
                left.append(link.removeprefix(tab.base).partition("#")[0])
            else:
                outside.add(parts.scheme)
    assert len(seen) > 30 and outside == {"https"}


def test_typing_what_does_harm(open_tab: Open, folder: Path) -> None:
    """V8: what is typed, previewed, refused and saved is text and no more."""
    page = open_tab(folder).go("/")
    page.fill("#q", EVIL)
    expect(page.locator(".count")).to_contain_text("onerror")
    path = next(path for path in folder.rglob("*.md") if path.name.startswith("\"'"))
    page.goto(page.url.partition("/?")[0] + "/edit/" + quote(path.relative_to(folder).as_posix()))
    page.get_by_role("button", name="Preview", exact=True).click()
    page.wait_for_selector("#preview:not([hidden])")
    page.type("#body", "<img src=x onerror=alert(20)>")
    page.fill("[name='field.name']", f"{EVIL} again")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_selector(".notice.good")
    assert page.locator("h1").first.inner_text() == f"{EVIL} again"
    assert path.read_text(encoding="utf-8").count("<img src=x onerror=alert(20)>") == 1


def test_news_of_what_does_harm(open_tab: Open, folder: Path) -> None:
    """V8: what is written while a page is open is shown as text."""
    page = open_tab(folder).go("/")
    page.wait_for_selector("html.live")
    (folder / "news.md").write_text(f"# {EVIL} news\n\n<img src=x onerror=alert(21)>\n", encoding="utf-8")
    expect(page.locator(".rows .name").first).to_have_text(f"{EVIL} news")
