"""The page of a service in a real browser: two people at once, each in their own memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from browser import Tab, expect
from command import note, write
from service_server import Service, running

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("service-browser")]
SECRETS = {"alice": "ALICE-ONLY", "bob": "BOB-ONLY"}
Open = Any


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Two workers, and a memory for each of two users."""
    home = tmp_path_factory.mktemp("service")
    for user, secret in SECRETS.items():
        write(home / f"memories/{user}/user/home.md", note(f"Home of {user}", f"where {user} lives", secret))
    with running(home) as service:
        yield service


@pytest.fixture
def open_browser(browser: Any, service: Service) -> Iterator[Open]:
    """Opens browsers that share nothing, at the page to sign in; none may have had a fault at the end."""
    tabs: list[Tab] = []
    with ExitStack() as stack:

        def opened(**options: Any) -> Tab:
            context = browser.new_context(**options)
            stack.callback(context.close)
            context.set_default_timeout(10_000)
            tabs.append(Tab(context.new_page(), service.url))
            return tabs[-1]

        yield opened
        faults = [fault for tab in tabs for fault in tab.faults]
        assert [fault for fault in faults if "401 (Unauthorized)" not in fault] == []


def sign_in(tab: Tab, token: str) -> Any:
    """Type a token into the form."""
    page = tab.page
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Sign in").click()
    return page


def test_two_people_at_once(service: Service, open_browser: Open) -> None:
    """Each signs in, sees the own list, edits the own file, and what an agent changes is told to the one whose it is."""
    pages = {}
    for user in SECRETS:
        tab = open_browser()
        tab.go("/file/user/home.md")
        pages[user] = sign_in(tab, service.tokens[user])
        expect(pages[user].get_by_text(SECRETS[user])).to_be_visible()
        assert pages[user].url == f"{service.url}/file/user/home.md"
    for own, foreign in (("alice", "bob"), ("bob", "alice")):
        page = pages[own]
        page.goto(f"{service.url}/")
        expect(page.get_by_text(f"Home of {own}")).to_be_visible()
        expect(page.get_by_text(foreign)).to_have_count(0)
        page.goto(f"{service.url}/edit/user/home.md")
        page.locator("textarea").first.fill(f"{SECRETS[own]} and more of {own}")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_text(f"more of {own}")).to_be_visible()
        page.goto(f"{service.url}/")
    write(service.folder("alice") / "user/new.md", note("Brought by an agent", "of alice"))
    expect(pages["alice"].get_by_text("Brought by an agent")).to_be_visible()
    expect(pages["bob"].get_by_text("Brought by an agent")).to_have_count(0)
    for own in SECRETS:
        assert f"more of {own}" in (service.folder(own) / "user/home.md").read_text()


def test_signing_out_leaves_nothing_to_see(service: Service, open_browser: Open) -> None:
    """A wrong token is said to be one; after signing out, on a phone too, no page is shown, not even by going back."""
    tab = open_browser(viewport={"width": 360, "height": 700})
    tab.go("/sign-in")
    sign_in(tab, "mdm_wrong")
    expect(tab.page.get_by_role("alert")).to_contain_text("nobody")
    assert Axe().run(tab.page).response["violations"] == []
    page = sign_in(tab, service.tokens["alice"])
    expect(page.get_by_text("Home of alice")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.get_by_role("button", name="sign out").click()
    expect(page.get_by_label("Token")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("Home of alice")).to_have_count(0)
    page.goto(f"{service.url}/file/user/home.md")
    expect(page.get_by_text(SECRETS["alice"])).to_have_count(0)


def test_an_address_with_a_token_signs_in(service: Service, open_browser: Open) -> None:
    """Opened by hand it leads in at once, and the token stands in no address any more; a link on another site asks first."""
    tab = open_browser()
    page = tab.go(f"/?token={service.tokens['bob']}")
    expect(page.get_by_text("Home of bob")).to_be_visible()
    assert page.url == f"{service.url}/"
    other = open_browser()
    address = f"{service.url}/?token={service.tokens['bob']}"
    strange = service.url.replace("127.0.0.1", "localhost")
    other.base = strange
    other.page.route(f"{strange}/link", lambda route: route.fulfill(body=f"<a href='{address}'>go</a>", content_type="text/html"))
    other.page.goto(f"{strange}/link")
    other.base = service.url
    other.page.get_by_text("go").click()
    other.page.get_by_role("button", name="Go on as bob").click()
    expect(other.page.get_by_text("Home of bob")).to_be_visible()
