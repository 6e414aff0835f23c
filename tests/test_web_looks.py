"""How the web page looks and whether everybody can use it: axe finds nothing serious, in light and in dark."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from browser import Open
from command import REPOSITORY
from web_demo import fill, filled

pytestmark = pytest.mark.xdist_group("browser")
WRITE = os.environ.get("MDMEMORY_SNAPSHOTS") == "write"  # read before any test hides it
IMAGES = REPOSITORY / "docs/images"
MAX_IMAGE_BYTES = 300_000  # of all together
PAGES = ["/", "/?q=trip+oslo", "/?q=nosuchword", "/file/user/home.md", "/file/project/broken.md", "/edit/user/home.md"]
PAGES += ["/edit/project/broken.md", "/move/user/home.md", "/new", "/index", "/journal", "/journal?q=ferry", "/journal/tuesday"]
PAGES += ["/history", "/history/EVENT", "/history?session=tuesday", "/turns", "/doctor", "/file/none.md", "CONFLICT"]
SHOTS = {"list": "/", "search": "/?q=trip+oslo", "file": "/file/user/home.md", "conflict": "CONFLICT", "change": "/history/EVENT"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as people have it."""
    return filled(tmp_path_factory.mktemp("looks") / "memory", fill)


def show(tab: Any, path: str, folder: Path) -> Any:
    """Open a page: EVENT is the last change of the trip, CONFLICT two edits of one line."""
    if path != "CONFLICT":
        lines = map(json.loads, (folder / ".mdmemory/log.jsonl").read_text(encoding="utf-8").splitlines())
        event = next(line["id"] for line in lines if line.get("reason") == "the ferry is booked")
        return tab.go(path.replace("EVENT", event))
    page = tab.go("/edit/project/billing.md")
    page.fill("#body", "In batches of a hundred, at noon.")
    file = folder / "project/billing.md"
    text = file.read_text(encoding="utf-8")
    short, long = "In batches.\n", "In batches, but never on the first of a month.\n"
    file.write_text(text.replace(short, long) if short in text else text.replace(long, short), encoding="utf-8")
    page.get_by_role("button", name="Save", exact=True).click()
    page.wait_for_selector(".sides")
    return page


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(open_tab: Open, folder: Path, scheme: str) -> None:
    """Labels, landmarks, headings and contrast of every page are as they must be, with the help and the preview open, too."""
    from axe_playwright_python.sync_playwright import Axe

    tab = open_tab(folder, color_scheme=scheme, bypass_csp=True)
    found = []
    for path in PAGES:
        page = show(tab, path, folder)
        if path == "/":
            page.keyboard.press("?")
        if path == "/edit/user/home.md":
            page.get_by_role("button", name="Preview", exact=True).click()
            page.wait_for_selector("#preview:not([hidden])")
        for violation in Axe().run(page).response["violations"]:
            found.append((path, violation["impact"], violation["id"], [node["html"] for node in violation["nodes"]][:3]))
    tab.faults[:] = [fault for fault in tab.faults if "status of 40" not in fault]
    assert found == []
    page.evaluate("document.querySelector('main').append(document.createElement('input'))")
    assert [violation["id"] for violation in Axe().run(page).response["violations"]] == ["label"], "axe does look"


@pytest.mark.slow
def test_the_pictures_of_the_documentation(open_tab: Open, folder: Path) -> None:
    """The pictures are of these pages, small, and there; MDMEMORY_SNAPSHOTS=write takes them anew."""
    for name, path in SHOTS.items():
        tab = open_tab(folder, color_scheme="dark" if name == "change" else "light", viewport={"width": 1000, "height": 620})
        page = show(tab, path, folder)
        tab.faults[:] = [fault for fault in tab.faults if "status of 40" not in fault]
        picture = page.screenshot(animations="disabled")
        assert picture.startswith(b"\x89PNG")
        if WRITE:
            IMAGES.mkdir(exist_ok=True)
            (IMAGES / f"web-{name}.png").write_bytes(picture)
    there = sorted(IMAGES.glob("web-*.png"))
    assert [path.stem for path in there] == sorted(f"web-{name}" for name in SHOTS)
    assert sum(path.stat().st_size for path in there) <= MAX_IMAGE_BYTES
