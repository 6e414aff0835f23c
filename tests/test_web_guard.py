"""Who may see the web page and who may change something through it: nobody but the browser that was let in, on our own pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from command import mdmemory, note, write
from web_server import Visitor, serving

pytestmark = pytest.mark.xdist_group("web-guard")
TOKEN = "long-and-random"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one file, and a secret beside it."""
    place = tmp_path_factory.mktemp("web")
    write(place / "memory/user/home.md", note("Home", "where I live"))
    write(place / "secret.md", "outside of the memory")
    return place / "memory"


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    """The address that the server printed."""
    with serving(folder) as url:
        yield url


@pytest.fixture
def visitor(url: str) -> Iterator[Visitor]:
    """Somebody who opened it."""
    visitor = Visitor(url)
    yield visitor
    visitor.close()


def ask(url: str, method: str = "GET", **options: object) -> httpx2.Response:
    """Ask as any program can."""
    with httpx2.Client(trust_env=False, timeout=30) as client:
        return client.request(method, url, **options)  # type: ignore[arg-type]  # whatever a test wants to send


def test_the_token_is_traded_for_a_cookie(url: str) -> None:
    """V8: the printed address sets a cookie that scripts and other sites don't get, and leads on to one without the token."""
    answer = ask(url)
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and len(parse_qs(urlsplit(url).query)["token"][0]) >= 32


@pytest.mark.parametrize(
    ("path", "location"),
    [
        ("/file/user/home.md?a=1", "/file/user/home.md?a=1"),
        ("//evil.example/?x=//y", "/evil.example/?x=%2F%2Fy"),
        ("/%5C%5Cevil.example", "/evil.example"),
        ("/%0d%0aset-cookie:x", "/%0D%0Aset-cookie%3Ax"),
    ],
)
def test_the_token_leads_to_no_other_host(url: str, path: str, location: str) -> None:
    """V8: whatever stands in the address, the redirect stays here."""
    base, _, token = url.partition("/?")
    assert ask(f"{base}{path}{'&' if '?' in path else '?'}{token}").headers["location"] == location


@pytest.mark.parametrize("path", ["/", "/file/user/home.md", "/changes", "/static/x/page.css", "/nothing", "/index?token="])
@pytest.mark.parametrize("cookie", [None, "mdmemory-PORT=", "mdmemory-PORT=wrong", "mdmemory-PORT=\u00fc", "other=1"])
def test_without_the_token_nothing_is_shown(url: str, path: str, cookie: str | None) -> None:
    """V8: no page, file or stream is served to who was not let in, and nothing of the memory is in the answer."""
    base = url.partition("/?")[0]
    headers = {} if cookie is None else {"cookie": cookie.replace("PORT", base.rpartition(":")[2]).encode("latin-1")}
    answer = ask(f"{base}{path}", headers=headers)
    assert answer.status_code == 401 and "Home" not in answer.text


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:9", 200),
        ("[::1]:9", 200),
        ("LOCALHOST", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("localhost@evil.example", 421),
        ("evil.example:80", 421),
        ("", 421),
    ],
)
def test_other_names_are_not_served(visitor: Visitor, host: str, status: int) -> None:
    """V8: a name that leads here by a trick (DNS rebinding) is refused, even with the cookie."""
    assert visitor.http.get("/", headers={"host": host}).status_code == status


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 303),
        ({"origin": "null"}, 403),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://localhost:1"}, 403),
        ({"origin": ""}, 403),
    ],
)
def test_only_our_own_pages_change_something(visitor: Visitor, folder: Path, headers: Mapping[str, str], status: int) -> None:
    """V8: a form from another site, or from another port of this machine, is refused, and nothing is written."""
    before = (folder / "user/home.md").read_bytes()
    answer = visitor.post("/edit/user/home.md", {**visitor.form("/edit/user/home.md"), "body": "Changed"}, **headers)
    assert answer.status_code == status
    assert ((folder / "user/home.md").read_bytes() == before) == (status != 303)


@pytest.mark.parametrize("path", ["/edit/user/home.md", "/move/user/home.md", "/new", "/doctor", "/history"])
@pytest.mark.parametrize("csrf", ["", "wrong", "\u00fc"])
def test_a_form_needs_its_secret(visitor: Visitor, path: str, csrf: str) -> None:
    """V8: a form without the secret that our pages give it is refused, whoever sends it."""
    assert visitor.post(path, {"csrf": csrf, "base": "", "do": "delete"}).status_code == 403


def test_what_every_answer_says(visitor: Visitor) -> None:
    """V8: no script or style but ours, no frame, no guessing of types, nothing kept; also with errors and refusals."""
    pages = [visitor.http.get(path) for path in ("/", "/file/user/home.md", "/nothing", "/file/none.md")]
    refused = [visitor.http.get("/", headers={"host": "x.example"}), ask(visitor.base), visitor.http.post("/new")]
    for answer in [*pages, *refused]:
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; ")
        assert policy.endswith("form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
        assert answer.headers["x-content-type-options"] == "nosniff" and answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cache-control"] == "no-store" and "server" not in answer.headers
        assert "<script>" not in answer.text and "style=" not in answer.text and "onclick" not in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/file/../secret.md",
        "/file/%2e%2e/secret.md",
        "/file/..%2fsecret.md",
        "/file//etc/passwd.md",
        "/file/.mdmemory/log.md",
        "/file/user%00/home.md",
        "/file/user%5Chome.md",
        "/edit/..%2fsecret.md",
        "/file/journal/2026/11/x.md",
        "/static/../site.py",
        "/static/VERSION/..%2fsite.py",
        "/static/VERSION/%2fetc%2fpasswd",
        "/static/VERSION/.",
    ],
)
def test_nothing_beside_the_memory_is_shown(visitor: Visitor, path: str) -> None:
    """V8: a path that leads out of the folder, or to what is hidden in it, has no page."""
    version = visitor.get("/").partition("/static/")[2].partition("/")[0]
    answer = visitor.http.get(path.replace("VERSION", version))
    assert answer.status_code == 404 and "outside of the memory" not in answer.text


def test_scripts_and_styles_are_kept_by_browsers(visitor: Visitor) -> None:
    """A script under the name of its version never changes; under another there is none."""
    version = visitor.get("/").partition("/static/")[2].partition("/")[0]
    answer = visitor.http.get(f"/static/{version}/page.js")
    assert answer.headers["cache-control"].endswith("immutable") and answer.headers["content-type"].startswith("text/javascript")
    visitor.get("/static/000000000000/page.js", 404)


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"csrf=%FF", {}, 400),
        (b"\xff", {}, 400),
        (b"&".join(b"a=1" for _ in range(2_000)), {}, 400),
        (b"{}", {"content-type": "application/json"}, 415),
        (b"", {"content-type": "multipart/form-data; boundary=x"}, 415),
        (b"x=" + b"y" * 45_000_000, {}, 413),
    ],
)
def test_odd_forms(visitor: Visitor, body: bytes, headers: Mapping[str, str], status: int) -> None:
    """V8: a form that makes no sense, or is endless, is refused with a word."""
    given = {"origin": visitor.base, "content-type": "application/x-www-form-urlencoded", **headers}
    assert visitor.http.post("/new", content=body, headers=given).status_code == status


def test_a_token_of_ones_own_and_another_name(folder: Path) -> None:
    """V8: MDMEMORY_TOKEN lets in under whatever name --allow-host gives, behind a proxy with https, too."""
    with serving(folder, "--allow-host", "notes.example.org", MDMEMORY_TOKEN=TOKEN) as url:
        assert url.endswith(f"/?token={TOKEN}")
        visitor = Visitor(url)
        assert visitor.http.get("/", headers={"host": "notes.example.org"}).status_code == 200
        form = visitor.form("/edit/user/home.md")
        names = {"host": "notes.example.org", "origin": "https://notes.example.org"}
        assert visitor.post("/edit/user/home.md", form, **names).status_code == 303
        visitor.close()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", "0.0.0.0"], "a token is needed"),
        (["--host", "0.0.0.0", "--token", TOKEN], "--allow-host"),
        (["--host", "192.0.2.7", "--token", TOKEN], "can't be listened on"),
        (["--port", "70000"], "70000"),
        (["-f", "a-file"], "is not a folder"),
    ],
)
def test_what_is_not_served(arguments: list[str], words: str, tmp_path: Path) -> None:
    """V8: other machines are served with a token only, and what can't be is said in one line."""
    write(tmp_path / "a-file", "")
    done = mdmemory("serve", *arguments, cwd=tmp_path)
    assert done.returncode and words in done.stderr and done.stdout == "" and not (tmp_path / "memory").exists()
