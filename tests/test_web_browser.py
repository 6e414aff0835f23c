"""The web page in a real browser: what people do with it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from browser import Open, expect
from command import note, write
from folders import index_of

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.slow]
HOME = "---\nname: Home\ndescription: where I live\ntype: user\nown: kept\n---\n\nfirst\nsecond\nthird\nfourth\nfifth\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with three files."""
    write(tmp_path / "memory/user/home.md", HOME)
    write(tmp_path / "memory/project/acme.md", note("Acme", "my employer", "See [[Home]].", kind="project"))
    write(tmp_path / "memory/user/food.md", note("Food", "dumplings and tea"))
    return tmp_path / "memory"


def home(folder: Path) -> str:
    """The file as it is."""
    return (folder / "user/home.md").read_bytes().decode()


def names(page: Any) -> list[str]:
    """The files of the list."""
    return [text.strip() for text in page.locator(".rows .name").all_inner_texts()]


def press(page: Any, name: str) -> None:
    """Press a button."""
    page.get_by_role("button", name=name, exact=True).click()


def test_search_as_you_type(open_tab: Open, folder: Path) -> None:
    """S1: what is typed narrows the list at once, with scores and reasons, the address follows, and so do the filters."""
    tab = open_tab(folder)
    page = tab.page
    assert sorted(names(page)) == ["Acme", "Food", "Home"]
    page.keyboard.press("/")
    page.keyboard.type("dumplings")
    expect(page.locator(".rows .name")).to_have_text(["Food"])
    expect(page.locator(".why")).to_contain_text("shares dumplings")
    assert page.url.endswith("/?q=dumplings") and page.locator("#q").input_value() == "dumplings"
    page.fill("#q", "")
    expect(page.locator(".rows .name")).to_have_count(3)
    page.select_option("#type", "project")
    expect(page.locator(".rows .name")).to_have_text(["Acme"])
    page.reload()
    assert names(page) == ["Acme"]


def test_from_the_keyboard_alone(open_tab: Open, folder: Path) -> None:
    """The list, a file, its form and the way back, without a mouse."""
    page = open_tab(folder).page
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_be_hidden()
    for key in "jjkj":
        page.keyboard.press(key)
    second = names(page)[1]
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(second)
    page.keyboard.press("e")
    expect(page.locator("h1")).to_have_text("Edit")
    page.focus("#body")
    page.keyboard.press("Control+Home")
    page.keyboard.type("typed: j k e ? /\n")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".notice.good")).to_have_text("Saved.")
    assert "typed: j k e ? /" in page.locator(".prose").inner_text()
    page.keyboard.press("Escape")
    expect(page.locator("h1")).to_have_text("Memories")
    page.keyboard.press("n")
    expect(page.locator("h1")).to_have_text("New memory")


def test_a_file_is_edited(open_tab: Open, folder: Path) -> None:
    """F5: a field, a tag, a pin and a line; the unknown field and every other byte stay; the preview shows it before."""
    page = open_tab(folder).go("/file/user/home.md")
    page.click("text=Edit")
    page.fill("[name='field.tags']", "oslo, norway")
    page.check("[name='field.pinned']")
    press(page, "Preview")
    expect(page.locator("#preview")).to_contain_text("second")
    page.fill("#body", "first\n**SECOND** [[Acme]]\nthird\nfourth\nfifth\n")
    expect(page.locator("#preview strong")).to_have_text("SECOND")
    press(page, "Preview")
    expect(page.locator("#preview")).to_be_hidden()
    press(page, "Save")
    expect(page.locator(".prose strong")).to_have_text("SECOND")
    head = HOME.replace("own: kept\n", 'own: kept\ntags: [oslo, norway]\npinned: "true"\n')
    assert home(folder) == head.replace("second", "**SECOND** [[Acme]]")
    page.click(".prose a.file")
    expect(page.locator("h1")).to_have_text("Acme")


def test_a_file_is_made_moved_and_deleted(open_tab: Open, folder: Path) -> None:
    """A missing link offers to make its file; it is moved, deleted, and brought back by one click in the history."""
    write(folder / "user/food.md", note("Food", "dumplings", "See [[Tea house]]."))
    page = open_tab(folder).go("/file/user/food.md")
    page.click(".prose a.missing")
    assert page.locator("#name").input_value() == "Tea house"
    page.fill("#body", "Open on Mondays.")
    press(page, "Save")
    expect(page.locator("h1")).to_have_text("Tea house")
    page.click("text=Move or delete")
    page.fill("#new_path", "places/tea.md")
    page.click("button:text('Move')")
    expect(page.locator(".where")).to_have_text("places/tea.md")
    data = (folder / "places/tea.md").read_bytes()
    page.click("text=Move or delete")
    press(page, "Delete this memory")
    expect(page.locator(".notice.good")).to_contain_text("Deleted")
    assert not (folder / "places/tea.md").exists() and "Tea house" not in index_of(folder)
    page.click("nav >> text=History")
    page.click("text=deleted on the web page")
    expect(page.locator(".diff .removed").first).to_have_text("----")
    press(page, "Undo this change")
    expect(page.locator(".notice.good")).to_contain_text("Undone")
    assert (folder / "places/tea.md").read_bytes() == data


def test_an_edit_on_disk_while_the_form_is_open(open_tab: Open, folder: Path) -> None:
    """E5: whoever edits is told at once that the file changed, keeps what was typed, and both edits are in the file."""
    page = open_tab(folder).go("/edit/user/home.md")
    expect(page.locator("html.live")).to_have_count(1)
    page.fill("#body", "first\nsecond\nthird\nfourth\nFIFTH\n")
    write(folder / "user/home.md", HOME.replace("first", "FIRST"))
    expect(page.locator("#news")).to_contain_text("has just changed elsewhere")
    assert "FIFTH" in page.locator("#body").input_value()
    press(page, "Save")
    expect(page.locator(".notice.good")).to_contain_text("made meanwhile")
    assert home(folder) == HOME.replace("first", "FIRST").replace("fifth", "FIFTH")


@pytest.mark.parametrize("way", ["Take yours", "Take the one on disk", "Save this text"])
def test_two_browsers_edit_the_same_line(open_tab: Open, folder: Path, way: str) -> None:
    """E5: the second to save sees both texts side by side, and decides: mine, theirs, or one of both."""
    one, two = open_tab(folder), open_tab(folder)
    for tab in (one, two):
        tab.go("/edit/user/home.md")
    one.page.fill("#body", "first\nONE\nthird\nfourth\nfifth\n")
    two.page.fill("#body", "first\nTWO\nthird\nfourth\nfifth\n")
    press(one.page, "Save")
    expect(one.page.locator(".notice.good")).to_have_text("Saved.")
    press(two.page, "Save")
    page = two.page
    expect(page.locator(".sides .other .mine")).to_have_text("TWO")
    expect(page.locator(".sides .other .theirs")).to_have_text("ONE")
    if way == "Save this text":
        page.fill("#text", page.locator("#text").input_value().replace("TWO", "ONE and TWO"))
    two.faults.clear()  # browsers note the 409
    page.click(f"text={way}")
    expect(page.locator("h1")).to_have_text("Home")
    line = {"Take yours": "TWO", "Take the one on disk": "ONE", "Save this text": "ONE and TWO"}[way]
    assert home(folder) == HOME.replace("second", line)
    expect(one.page.locator(".prose")).to_contain_text(line)


def test_what_changes_on_disk_shows_at_once(open_tab: Open, folder: Path) -> None:
    """W1: a list, a file and the index follow what others write, while somebody looks at them."""
    listing, file, index = (open_tab(folder).go(path) for path in ("/", "/file/user/home.md", "/index"))
    for page in (listing, file, index):
        expect(page.locator("html.live")).to_have_count(1)
    write(folder / "user/home.md", HOME.replace("Home", "New home").replace("second", "another"))
    expect(listing.locator(".rows .name").first).to_have_text("New home")
    expect(file.locator("h1")).to_have_text("New home")
    expect(file.locator(".prose")).to_contain_text("another")
    expect(index.locator(".source")).to_contain_text("New home")
    (folder / "user/food.md").unlink()
    expect(listing.locator(".rows .name")).to_have_count(2)


def test_typed_text_is_not_lost_by_leaving(open_tab: Open, folder: Path) -> None:
    """Whoever leaves a form with something typed is asked first; with nothing typed not."""
    tab = open_tab(folder)
    page = tab.go("/edit/user/home.md")
    page.click("text=Cancel")
    expect(page.locator("h1")).to_have_text("Home")
    page.click("text=Edit")
    page.type("#body", "typed")
    page.click("text=Cancel")
    page.wait_for_timeout(200)
    assert [fault.partition(":")[0] for fault in tab.faults] == ["dialog"] and "/edit/" in page.url
    tab.faults.clear()


def test_a_broken_file_is_mended(open_tab: Open, folder: Path) -> None:
    """F2: the list says that it is broken, its page why and where, and its text can be mended."""
    write(folder / "user/broken.md", "---\nname: it's: broken\n---\ntext\n")
    page = open_tab(folder).go("/")
    page.click(".rows >> text=broken >> nth=0")
    expect(page.locator(".source .wrong")).to_have_text("name: it's: broken")
    page.click("text=Mend it")
    page.fill("#text", "---\nname: Mended\n---\ntext\n")
    press(page, "Save")
    expect(page.locator("h1")).to_have_text("Mended")


def test_without_scripts(open_tab: Open, folder: Path) -> None:
    """Every page works where scripts are off: search, preview, saving."""
    page = open_tab(folder, java_script_enabled=False).go("/")
    page.fill("#q", "dumplings")
    page.click("button:text('Search')")
    assert names(page) == ["Food"]
    page.click(".rows .name")
    page.click("text=Edit")
    page.fill("#body", "**tea**")
    press(page, "Preview")
    assert page.locator("#preview strong").inner_text() == "tea" and page.locator("#body").input_value() == "**tea**"
    press(page, "Save")
    assert page.locator(".prose strong").inner_text() == "tea"


def test_a_telephone(open_tab: Open, folder: Path) -> None:
    """At a telephone's width no page is wider than it, and all of it can be reached."""
    tab = open_tab(folder, viewport={"width": 360, "height": 640}, has_touch=True)
    long_name = "Name" * 60
    write(folder / "user/long.md", note("x" * 150, "word " * 60, f"`{long_name}`\n\n| a | b |\n|---|---|\n| {long_name} | 1 |"))
    for path in ("/", "/?q=word", "/file/user/long.md", "/edit/user/long.md", "/index", "/history", "/doctor", "/new", "/turns"):
        page = tab.go(path)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 360, path
    assert re.search("Doctor", page.locator("nav").first.inner_text())
