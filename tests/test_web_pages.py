"""The pages of the web server, without a browser: what they show and what becomes of the folder."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import write
from folders import index_of, log_of, visible
from web_server import HOME, Form, Visitor, home, two_files, visiting


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files."""
    return two_files(tmp_path / "memory")


@pytest.fixture
def visitor(folder: Path) -> Iterator[Visitor]:
    """A visitor of its server."""
    with visiting(folder) as visitor:
        yield visitor


def test_the_list_and_its_filters(visitor: Visitor, folder: Path) -> None:
    """All files, those of a type, a tag or a folder, and those that a search finds, with the reason."""
    write(folder / "plain.md", "# Plain\n\nA plain file.\n")
    write(folder / "broken.md", "---\nname: [\n---\n")
    write(folder / "project/old.md", "---\nname: Old\ntags: [x, Y]\nvalid_until: 2020-01-01\n---\n")
    everything = visitor.get("/")
    for words in ("Home", "Acme", "Plain", "outdated", "the frontmatter is not valid YAML"):
        assert words in everything
    shown = {query: visitor.get(f"/?{query}") for query in ("type=user", "type=none", "tag=y", "folder=project", "q=lived")}
    assert [(query, "Home<" in page, "Acme<" in page, "Plain<" in page) for query, page in shown.items()] == [
        ("type=user", True, False, False),
        ("type=none", False, False, True),
        ("tag=y", False, False, False),
        ("folder=project", False, True, False),
        ("q=lived", True, False, False),
    ]
    assert "shares live" in shown["q=lived"] and "Old<" in shown["tag=y"]
    assert "Nothing matches" in visitor.get("/?q=zzz&type=nosuch") and "memories" in visitor.get("/?page=99999&q=")


def test_a_file_and_where_its_links_lead(visitor: Visitor) -> None:
    """A file is rendered, its properties stand beside it, and a wikilink leads to the file that is called so."""
    page = visitor.get("/file/project/acme.md")
    assert '<a href="/file/user/home.md" class="file"' in page and "my employer" in page
    assert "kept" in visitor.get("/file/user/home.md")
    assert "There is no" in visitor.get("/file/none.md", 404) or "does not exist" in visitor.get("/file/none.md", 404)


def test_an_edit_changes_what_was_edited(visitor: Visitor, folder: Path) -> None:
    """F5: a field and a line are changed, every other byte stays, the index follows, and a person is the author."""
    answer = visitor.edit("user/home.md", description="in Oslo", body="first\nSECOND\nthird\nfourth\nfifth\n")
    assert answer.headers["location"] == "/file/user/home.md?note=saved"
    assert home(folder) == HOME.replace("where I live", "in Oslo").replace("second", "SECOND")
    assert "in Oslo" in index_of(folder) and log_of(folder)[-2]["author"] == "person"
    assert visitor.edit("user/home.md").headers["location"].endswith("?note=same")


def test_an_edit_meanwhile_of_other_lines_is_merged(visitor: Visitor, folder: Path) -> None:
    """E5: who saves a form that was opened before somebody else saved loses nothing, and is told."""
    form = visitor.form("/edit/user/home.md")
    write(folder / "user/home.md", HOME.replace("first", "FIRST"))
    answer = visitor.post("/edit/user/home.md", {**form, "body": form["body"].replace("fifth", "FIFTH")})
    assert answer.headers["location"].endswith("?note=merged")
    assert "made meanwhile" in visitor.get(answer.headers["location"])
    assert home(folder) == HOME.replace("first", "FIRST").replace("fifth", "FIFTH")


def test_an_edit_meanwhile_of_the_same_line_is_shown(visitor: Visitor, folder: Path) -> None:
    """E5: both texts are shown and nothing is written; each of the three ways out of it works."""
    form = visitor.form("/edit/user/home.md")
    form["body"] = form["body"].replace("second", "mine")
    theirs = HOME.replace("second", "theirs").replace("fifth", "FIFTH")
    write(folder / "user/home.md", theirs)
    answer = visitor.post("/edit/user/home.md", form)
    assert answer.status_code == 409 and "<code>mine</code>" in answer.text and "<code>theirs</code>" in answer.text
    assert home(folder) == theirs
    shown = Form(answer.text).forms["/edit/user/home.md"]
    both = shown["text"].replace("mine", "mine and theirs")
    assert visitor.post("/edit/user/home.md", {**shown, "text": both}).status_code == 303
    assert home(folder) == HOME.replace("second", "mine and theirs")
    assert visitor.post("/edit/user/home.md", {**shown, "text": shown["text"]}).status_code == 409, "it was based on theirs"
    write(folder / "user/home.md", theirs)
    del shown["text"]
    assert visitor.post("/edit/user/home.md", shown).status_code == 303
    assert home(folder) == HOME.replace("second", "mine")


def test_a_file_that_is_deleted_while_its_form_is_open(visitor: Visitor, folder: Path) -> None:
    """E5: who saves is told that it is gone, and can make it again."""
    form = visitor.form("/edit/user/home.md")
    (folder / "user/home.md").unlink()
    answer = visitor.post("/edit/user/home.md", {**form, "body": "new text\n"})
    assert answer.status_code == 409 and "deleted meanwhile" in answer.text
    shown = Form(answer.text).forms["/edit/user/home.md"]
    del shown["text"]
    assert visitor.post("/edit/user/home.md", shown).status_code == 303 and home(folder).endswith("new text\n")


@pytest.mark.parametrize("base", ["", "AAAA", "-", "no base64!", "\u00fc"])
def test_a_form_that_was_opened_with_something_else(visitor: Visitor, folder: Path, base: str) -> None:
    """V8: bytes that the file never had overwrite nothing."""
    form = visitor.form("/edit/user/home.md")
    answer = visitor.post("/edit/user/home.md", {**form, "base": base, "text": "overwritten"})
    assert answer.status_code in (400, 409, 422) and home(folder) == HOME


def test_what_is_refused_is_not_lost(visitor: Visitor, folder: Path) -> None:
    """A form that can't be saved comes back as it was typed, with the reason."""
    form = visitor.form("/edit/user/home.md?raw=1", "/edit/user/home.md")
    answer = visitor.post("/edit/user/home.md", {**form, "text": "---\nname: [\n---\ntyped text"})
    assert answer.status_code == 422 and "typed text" in answer.text and "not valid YAML" in answer.text and home(folder) == HOME
    new = {**visitor.form("/new"), "name": "x", "path": "../x.md", "body": "typed text"}
    answer = visitor.post("/new", new)
    assert answer.status_code == 422 and "typed text" in answer.text and "not a usable path" in answer.text


def test_a_preview_writes_nothing(visitor: Visitor, folder: Path) -> None:
    """The text is shown as it would be, the form goes on with what was typed."""
    answer = visitor.edit("user/home.md", body="**bold** [[Acme]]", name="Typed", do="preview")
    assert answer.status_code == 200 and "<strong>bold</strong>" in answer.text and 'value="Typed"' in answer.text
    assert "/file/project/acme.md" in answer.text and home(folder) == HOME


def test_a_long_text_is_not_rendered(visitor: Visitor, folder: Path) -> None:
    """V8: a text that would take seconds to render is shown as it is, and edited as any other."""
    long = "[[" * 60_000 + "\n"
    assert visitor.edit("user/home.md", body=long).status_code == 303 and home(folder).endswith(f"\n\n{long}")
    assert '<pre class="raw">' in visitor.get("/file/user/home.md")
    assert "too long to be rendered" in visitor.edit("user/home.md", do="preview").text
    assert "too long" not in visitor.edit("user/home.md", body="", do="preview").text


def test_a_broken_file_is_shown_and_mended(visitor: Visitor, folder: Path) -> None:
    """F2: why it can't be read stands beside its text, which can be edited as it is, whatever its encoding."""
    write(folder / "broken.md", "---\nname: it's: broken\r\n---\r\ntext\r\n")
    write(folder / "latin.md", "Grün\r\n".encode("latin-1"))
    page = visitor.get("/file/broken.md")
    assert "Line 2:" in page and "name: it&#39;s: broken" in page
    form = visitor.form("/edit/broken.md")
    visitor.post("/edit/broken.md", {**form, "text": form["text"].replace("it's: broken", "mended")})
    assert (folder / "broken.md").read_bytes() == b"---\nname: mended\r\n---\r\ntext\r\n"
    assert "Latin-1" in visitor.get("/file/latin.md")
    assert visitor.post("/edit/latin.md", visitor.form("/edit/latin.md")).status_code == 303
    assert (folder / "latin.md").read_bytes() == "Grün\r\n".encode()


def test_new_moved_deleted_and_undone(visitor: Visitor, folder: Path) -> None:
    """D2: a file is made, found under another path, deleted, and brought back from the history."""
    made = visitor.post("/new", {**visitor.form("/new"), "name": "A trip", "type": "project", "tags": "a, b", "body": "Text"})
    assert made.headers["location"] == "/file/project/a-trip.md?note=made" and "A trip" in index_of(folder)
    data = (folder / "project/a-trip.md").read_bytes()
    visitor.post("/move/project/a-trip.md", {**visitor.form("/move/project/a-trip.md"), "new_path": "trips/one.md"})
    assert (folder / "trips/one.md").read_bytes() == data and "trips/one.md" in index_of(folder)
    visitor.post("/move/trips/one.md", {**visitor.form("/move/trips/one.md"), "do": "delete"})
    assert not (folder / "trips/one.md").exists() and "A trip" not in index_of(folder)
    (event,) = [line["id"] for line in log_of(folder) if line.get("reason") == "deleted on the web page"]
    assert "-name: A trip" in visitor.get(f"/history/{event}")
    assert visitor.post(f"/history/{event}", visitor.form(f"/history/{event}")).headers["location"].endswith("?note=undone")
    assert (folder / "trips/one.md").read_bytes() == data and "A trip" in index_of(folder)


def test_a_deletion_is_of_what_was_seen(visitor: Visitor, folder: Path) -> None:
    """E5: a file that changed after its page was opened is not deleted."""
    form = visitor.form("/move/user/home.md")
    write(folder / "user/home.md", HOME + "more\n")
    answer = visitor.post("/move/user/home.md", {**form, "do": "delete"})
    assert answer.status_code == 409 and "has changed since" in answer.text and home(folder) == HOME + "more\n"
    assert visitor.post("/move/user/home.md", {**form, "new_path": "project/acme.md"}).status_code == 409
    assert visitor.post("/move/user/home.md", {**form, "new_path": "/etc/x.md"}).status_code == 422


def test_an_undo_that_later_changes_stand_in_the_way_of(visitor: Visitor, folder: Path) -> None:
    """An undo that can't be is said, with what stands in the way, and writes nothing."""
    visitor.edit("user/home.md", body="one\n")
    (event,) = [line["id"] for line in log_of(folder) if line.get("reason") == "edited on the web page"]
    visitor.edit("user/home.md", body="two\n")
    before = visible(folder)
    answer = visitor.post(f"/history/{event}", visitor.form(f"/history/{event}"))
    assert answer.status_code == 409 and "the same lines were changed since" in answer.text and visible(folder) == before


def test_the_index_as_agents_see_it(visitor: Visitor, folder: Path) -> None:
    """I3: people's lines and ours, what is left out and why; people's lines can be edited."""
    write(folder / "project/old.md", "---\nname: Old\nvalid_until: 2020-01-01\n---\n")
    write(folder / "MEMORY.md", "# Mine\n\n- [Home](user/home.md) — by hand\n")
    page = visitor.get("/index")
    assert "# Mine" in page and "it has expired" in page and "by hand" in page and "my employer" in page
    form = visitor.form("/edit/MEMORY.md")
    visitor.post("/edit/MEMORY.md", {**form, "text": form["text"].replace("# Mine", "# Ours")})
    assert index_of(folder).startswith("# Ours\n")


def test_what_the_doctor_finds_is_mended(visitor: Visitor, folder: Path) -> None:
    """What is wrong, why it matters and what would mend it; one click mends one finding, another all of them."""
    write(folder / "user/odd.md", "---\nname: Odd # cut\ndescription: x\ntype: User\n---\n")
    write(folder / "MEMORY.md", "# Mine\n\n- [Gone](gone.md) — not there\n")
    page = visitor.get("/doctor")
    assert "dead-pointer" in page and "YAML ends a value where" in page and "+name: &#34;Odd # cut&#34;" in page
    one = {"csrf": visitor.form("/doctor")["csrf"], "code": "yaml-comment", "path": "user/odd.md", "line": "2", "mount": ""}
    assert visitor.post("/doctor", one).headers["location"] == "/doctor?note=repaired"
    assert (folder / "user/odd.md").read_bytes().startswith(b'---\nname: "Odd # cut"\n') and "gone.md" in index_of(folder)
    assert visitor.post("/doctor", one).headers["location"] == "/doctor?note=same"
    assert visitor.post("/doctor", {**one, "path": "../secret.md"}).status_code == 422
    assert visitor.post("/doctor", {"csrf": one["csrf"]}).headers["location"] == "/doctor?note=repaired"
    assert (
        "gone.md" not in index_of(folder) and index_of(folder).startswith("# Mine") and "dead-pointer" not in visitor.get("/doctor")
    )
    assert b"type: user\n" in (folder / "user/odd.md").read_bytes()


def test_a_conflict_of_what_can_not_be_read(visitor: Visitor, folder: Path) -> None:
    """What was typed is still there when the text that was chosen can't be saved."""
    form = visitor.form("/edit/user/home.md?raw=1", "/edit/user/home.md")
    broken = base64.b64encode(b"---\nname: [typed\n---\n").decode()
    answer = visitor.post("/edit/user/home.md", {"csrf": form["csrf"], "base": form["base"], "shown": broken})
    assert answer.status_code == 422 and "name: [typed" in answer.text and "not valid YAML" in answer.text
    assert home(folder) == HOME
