"""A real Chromium for the tests of the web page: found, not installed; where there is none, that is said as loudly as a failure."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from engine import say_what_did_not_run

_NOT_TESTED = "The web page was NOT tested in a browser"
ARGUMENTS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]


@cache
def chromium() -> str | None:
    """Where it is; None for nowhere."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser; of a module, as its event loop must have ended before other tests begin theirs."""
    if chromium() is None:
        pytest.skip(f"{_NOT_TESTED}: there is no Chromium. Run scripts/install-chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        yield found
        found.close()


def expect(part: Any) -> Any:
    """Playwright's assertions about a part of a page, which wait for it."""
    from playwright.sync_api import expect as expected

    return expected(part)


class Tab:
    """A page in a browser of its own, and what must not happen in it.

    Args:
        page: Playwright's.
        base: the server's address.
    """

    def __init__(self, page: Any, base: str) -> None:
        self.page, self.base = page, base
        self.faults: list[str] = []
        page.on("dialog", self._dialog)
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("console", lambda said: self.faults.append(f"console: {said.text}") if said.type in ("error", "warning") else None)
        page.on("request", self._request)
        page.add_init_script(
            "document.addEventListener('securitypolicyviolation', e => console.error('CSP ' + e.violatedDirective + e.blockedURI))"
        )

    def _dialog(self, dialog: Any) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Any) -> None:
        if urlsplit(request.url).netloc != urlsplit(self.base).netloc:
            self.faults.append(f"request: {request.url}")

    def go(self, path: str) -> Any:
        """Open a page of the server."""
        self.page.goto(self.base + path)
        return self.page


Open = Callable[..., Tab]


@pytest.fixture
def open_tab(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """Opens tabs on a folder, which is served once: each is a browser of its own, and none may have had a fault at the end."""
    from web_server import serving

    urls: dict[Path, str] = {}
    tabs: list[Tab] = []
    with ExitStack() as stack:

        def opened(folder: Path, **options: Any) -> Tab:
            if folder not in urls:
                urls[folder] = stack.enter_context(serving(folder))
            context = browser.new_context(**{"viewport": {"width": 1100, "height": 760}, **options})
            stack.callback(context.close)
            context.set_default_timeout(10_000)
            page = context.new_page()
            tabs.append(Tab(page, "{0.scheme}://{0.netloc}".format(urlsplit(urls[folder]))))
            page.goto(urls[folder])
            assert "token" not in page.url
            return tabs[-1]

        yield opened
        assert [fault for tab in tabs for fault in tab.faults] == []


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say last and in red what did not run for want of a browser."""
    say_what_did_not_run(terminalreporter, _NOT_TESTED)
