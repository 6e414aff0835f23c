"""The web page for many users: who is let in, how, and to whose memory; whichever worker answers."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from command import note, write
from service_server import Service, ask, running, until
from web_server import Visitor

pytestmark = [pytest.mark.xdist_group("service-web"), pytest.mark.slow]
SECRETS = {"alice": "ALICE-ONLY", "bob": "BOB-ONLY"}
SECRET = "a secret that all workers share, and both services here"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Two workers, and a memory for each of two users."""
    home = tmp_path_factory.mktemp("service")
    for user, secret in SECRETS.items():
        write(home / f"memories/{user}/user/home.md", note("Home", f"where {user} lives", f"{secret}\n\nsecond\n\nthird"))
    with running(home, "--per-minute", "100000", "--at-once", "64", MDMEMORY_SECRET=SECRET) as service:
        yield service


def visitor(service: Service, user: str) -> Visitor:
    """Somebody whose browser was let in by their address."""
    return Visitor(f"{service.url}/?token={service.tokens[user]}")


def cookie_of(visitor: Visitor) -> str:
    """The one cookie that their browser keeps."""
    (cookie,) = visitor.http.cookies.jar
    return str(cookie.value)


def anew(visitor: Visitor) -> None:
    """Have the next requests go over new connections, and so perhaps to another worker."""
    visitor.http._transport.close()  # the pool opens them again


def test_two_users_at_once_see_and_change_their_own(service: Service) -> None:
    """Each page and each form is of the own memory; what one saves, on whichever worker, is there on the next page."""
    people = {user: visitor(service, user) for user in SECRETS}
    for n in range(6):
        for own, foreign in (("alice", "bob"), ("bob", "alice")):
            page = people[own].get("/file/user/home.md")
            assert SECRETS[own] in page and SECRETS[foreign] not in page and f">{own}:</span> sign out" in page
            form = people[own].form("/edit/user/home.md")
            anew(people[own])
            changed = form["body"].replace("second", f"{own} round {n}") if n == 0 else form["body"].replace(str(n - 1), str(n))
            assert people[own].post("/edit/user/home.md", {**form, "body": changed}).status_code == 303
            anew(people[own])
            assert f"{own} round {n}" in people[own].get("/file/user/home.md")
    for own in SECRETS:
        assert f"{own} round 5" in (service.folder(own) / "user/home.md").read_text()
        people[own].close()
    assert {line["worker"] for line in service.log(route="/edit")} == service.workers()


def test_forms_and_cookies_hold_on_every_worker(service: Service) -> None:
    """A form that one worker gave is taken by the other, and after a restart with the same secret as well."""
    alice = visitor(service, "alice")
    seen: set[int] = set()
    for _ in range(200):
        anew(alice)
        form = alice.form("/new")
        anew(alice)
        assert alice.post("/new", {**form, "name": ""}).status_code != 403
        seen = {line["worker"] for line in service.log(route="/new", user="alice")}
        if len(seen) == 2:
            break
    assert len(seen) == 2
    home = service.home.parent / "again"
    write(home / "memories/alice/user/home.md", note("Home", "where alice lives"))
    (home / "tokens").write_bytes((service.home / "tokens").read_bytes())
    with running(home, users={}, MDMEMORY_SECRET=SECRET) as other:
        name = f"mdmemory-{other.url.rpartition(':')[2]}"
        answer = httpx2.get(f"{other.url}/", cookies={name: cookie_of(alice)}, trust_env=False)
        assert answer.status_code == 200 and ">alice:</span> sign out" in answer.text
    with running(home, users={}, MDMEMORY_SECRET="another secret, of as many characters") as other:
        name = f"mdmemory-{other.url.rpartition(':')[2]}"
        assert httpx2.get(f"{other.url}/", cookies={name: cookie_of(alice)}, trust_env=False).status_code == 401
    alice.close()


def test_a_form_of_one_user_is_not_taken_from_another(service: Service) -> None:
    """With bob's cookie and alice's form nothing is written, in neither memory; nor without a page of ours behind it."""
    alice, bob = visitor(service, "alice"), visitor(service, "bob")
    form = alice.form("/edit/user/home.md")
    before = {user: (service.folder(user) / "user/home.md").read_bytes() for user in SECRETS}
    assert bob.post("/edit/user/home.md", {**form, "body": "taken"}).status_code == 403
    for origin in ("https://evil.example", "null", ""):
        assert alice.post("/edit/user/home.md", {**form, "body": "taken"}, origin=origin).status_code == 403
    assert {user: (service.folder(user) / "user/home.md").read_bytes() for user in SECRETS} == before
    alice.close()
    bob.close()


def test_a_token_becomes_a_cookie_once(service: Service) -> None:
    """The address is left without the token, the cookie does not hold it, and scripts can't read it."""
    with httpx2.Client(trust_env=False, base_url=service.url) as client:
        answer = client.get(f"/file/user/home.md?token={service.tokens['alice']}&at=1")
        assert answer.status_code == 303 and answer.headers["location"] == "/file/user/home.md?at=1"
        cookie = answer.headers["set-cookie"]
        assert service.tokens["alice"] not in cookie and "HttpOnly" in cookie and "SameSite=lax" in cookie and "Path=/" in cookie
        assert client.get("/file/user/home.md").status_code == 200
        assert client.get(f"{service.url}//evil.example/x?token={service.tokens['alice']}").headers["location"] == "/evil.example/x"
    secure = httpx2.get(
        f"{service.url}/?token={service.tokens['alice']}", headers={"x-forwarded-proto": "https"}, trust_env=False
    ).headers["set-cookie"]
    assert secure.startswith("__Host-mdmemory=") and "Secure" in secure and "Domain" not in secure


def test_forged_cookies_let_nobody_in(service: Service) -> None:
    """A token itself, a name, an altered or a foreign cookie is none; the answer is the page to sign in."""
    alice = visitor(service, "alice")
    name, real = f"mdmemory-{service.url.rpartition(':')[2]}", cookie_of(alice)
    flipped = real[:40] + ("A" if real[40] != "A" else "B") + real[41:]
    for forged in ("alice", service.tokens["alice"], flipped, real[:-8], real + "x", "", "ü".encode().decode("latin-1")):
        with httpx2.Client(trust_env=False) as client:
            answer = client.get(f"{service.url}/file/user/home.md", headers={"cookie": f"{name}={forged}".encode("latin-1")})
        assert answer.status_code == 401 and SECRETS["alice"] not in answer.text and 'action="/sign-in"' in answer.text
    with httpx2.Client(trust_env=False) as client:  # a bearer token is for MCP, which no page of another site can send
        headers = {"authorization": f"Bearer {service.tokens['alice']}"}
        assert client.get(f"{service.url}/", headers=headers).status_code == 401
    alice.close()


def test_signing_in_and_out(service: Service) -> None:
    """A person types the token into a form, comes back to the page that they wanted, and can leave."""
    with httpx2.Client(trust_env=False, base_url=service.url, headers={"origin": service.url}) as client:
        assert 'value="/file/user/home.md"' in client.get("/file/user/home.md").text
        wrong = client.post("/sign-in", data={"token": "mdm_wrong", "where": "/"})
        assert wrong.status_code == 401 and "nobody" in wrong.text and "mdm_wrong" not in wrong.text
        for where, expected in (("/file/user/home.md", "/file/user/home.md"), ("//evil.example", "/evil.example"), ("\\\\e", "/e")):
            answer = client.post("/sign-in", data={"token": f" {service.tokens['bob']}\n", "where": where})
            assert (answer.status_code, answer.headers["location"]) == (303, expected)
        assert SECRETS["bob"] in client.get("/file/user/home.md").text
        assert client.get("/sign-out").status_code == 303 and client.get("/").status_code == 200
        client.post("/sign-out")
        assert client.get("/").status_code == 401
        assert client.post("/sign-in", data={"token": "x" * 30_000}).status_code == 413
        strange = client.post("/sign-in", data={"token": service.tokens["bob"]}, headers={"origin": "https://evil.example"})
        assert strange.status_code == 403 and "set-cookie" not in strange.headers


def test_a_link_signs_nobody_in_unasked(service: Service) -> None:
    """Who follows one is told whose memory it opens, lest they write into a stranger's: also one in a text of their own memory."""
    for site, status in (("cross-site", 200), ("same-site", 200), ("same-origin", 200), ("none", 303)):
        address = f"{service.url}/?token={service.tokens['bob']}"
        answer = httpx2.get(address, headers={"sec-fetch-site": site}, trust_env=False)
        assert answer.status_code == status and ("set-cookie" in answer.headers) == (status == 303)
        assert status == 303 or "Go on as bob" in answer.text


def test_no_page_tells_the_token_in_its_address(service: Service) -> None:
    """What the page at such an address fetches and sends names the site as where it came from, and not the address."""
    for token, site in ((service.tokens["bob"], "cross-site"), (service.tokens["bob"], "none"), ("mdm_old", "none")):
        answer = httpx2.get(f"{service.url}/?token={token}", headers={"sec-fetch-site": site}, trust_env=False)
        assert answer.headers.get_list("referrer-policy") == ["origin"]
    assert httpx2.get(f"{service.url}/sign-in", trust_env=False).headers.get_list("referrer-policy") == ["same-origin"]


def test_a_revoked_token_closes_the_page(tmp_path: Path) -> None:
    """Within seconds the cookie opens nothing, on no worker, and a page that is told of changes is told no more."""
    write(tmp_path / "memories/alice/user/home.md", note("Home", "where I live"))
    with running(tmp_path) as service:
        alice = visitor(service, "alice")
        with alice.http.stream("GET", "/changes") as stream:
            lines = stream.iter_lines()
            assert next(lines) == "retry: 1000"
            (tmp_path / "tokens").write_text("".join((tmp_path / "tokens").read_text().splitlines(keepends=True)[1:]))
            begun = time.monotonic()
            assert [line for line in lines if line and not line.startswith(":")] == []
            assert time.monotonic() - begun < 10
        for _ in range(6):
            anew(alice)
            until(lambda: alice.http.get("/").status_code == 401)
        alice.close()
        assert ask(service, service.tokens["bob"]).status_code == 200


def test_a_page_has_one_address(service: Service) -> None:
    """An address with a control character is none, so no stream is taken for a page, and left open to a token that is revoked."""
    alice = visitor(service, "alice")
    for path in ("/changes%0A", "/index%0A", "/file/user/home.md%0a", "/%00", "/changes%0D", "/x/%2e%2e/changes"):
        with alice.http.stream("GET", path) as answer:
            assert answer.status_code == 404, path
    alice.close()


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", ""])
def test_names_of_strangers_are_not_answered(service: Service, host: str) -> None:
    """Under a name that leads here by a trick there is no page, and no way to sign in; operators' probes go by any name."""
    for path in ("/", "/sign-in", f"/?token={service.tokens['alice']}"):
        assert httpx2.get(f"{service.url}{path}", headers={"host": host}, trust_env=False).status_code in (400, 421)
    if host:
        assert httpx2.get(f"{service.url}/health", headers={"host": host}, trust_env=False).status_code == 200


def test_styles_are_there_before_one_signs_in(service: Service) -> None:
    """The page to sign in has its style; nothing else lies there."""
    page = httpx2.get(f"{service.url}/", trust_env=False).text
    style = page.partition('rel="stylesheet" href="')[2].partition('"')[0]
    answer = httpx2.get(f"{service.url}{style}", trust_env=False)
    assert answer.status_code == 200 and "immutable" in answer.headers["cache-control"]
    for path in ("/static/x/page.css", "/static/", f"{style}/../../app.py", style.replace("page.css", "..%2fapp.py")):
        assert httpx2.get(f"{service.url}{path}", trust_env=False).status_code in (401, 404)
