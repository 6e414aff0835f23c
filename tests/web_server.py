"""The real web server, as a process of its own, and a client that fills in its forms as a browser would."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
from command import COMMAND, environment, note, write

HOME = "---\nname: Home\ndescription: where I live\ntype: user\nown: kept\n---\n\nfirst\nsecond\nthird\nfourth\nfifth\n"


def two_files(folder: Path) -> Path:
    """Fill a folder with two files that a person may have written."""
    write(folder / "user/home.md", HOME)
    write(folder / "project/acme.md", note("Acme", "my employer", "See [[Home]].", kind="project"))
    return folder


def home(folder: Path) -> str:
    """The first of them as it is."""
    return (folder / "user/home.md").read_bytes().decode()


@contextmanager
def serving(folder: Path, *options: str, **env: str) -> Iterator[str]:
    """The URL of a server on a free port, with its token; no traceback may come of it."""
    command = [*COMMAND, "serve", "-f", str(folder), "--port", "0", *options]
    process = subprocess.Popen(command, env=environment(**env), stderr=subprocess.PIPE, encoding="utf-8", cwd=folder.parent)
    try:
        assert process.stderr is not None
        found = re.search(r"http://\S+", process.stderr.readline())
        assert found
        yield found[0]
    finally:
        process.send_signal(signal.SIGINT)
        assert "Traceback" not in process.communicate(timeout=10)[1]


class Form(HTMLParser):
    """The forms of a page, by their action, with what each would send."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.forms: dict[str, dict[str, str]] = {}
        self._form: dict[str, str] = {}
        self._text: str | None = None
        self._select: str | None = None
        self.feed(page.replace("\r\n", "\n").replace("\r", "\n"))  # as browsers do

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take in a form or a field."""
        given = {key: value or "" for key, value in attrs}
        if tag == "form":
            self._form = self.forms.setdefault(given.get("action", ""), {})
        elif tag == "textarea" and "name" in given:
            self._text, self._form[given["name"]] = given["name"], ""
        elif tag == "select":
            self._select = given["name"]
        elif tag == "option" and self._select and ("selected" in given or self._select not in self._form):
            self._form[self._select] = given.get("value", "")
        elif tag == "input" and "name" in given and (given.get("type") != "checkbox" or "checked" in given):
            self._form[given["name"]] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        """End a text; browsers drop the line end that it begins with."""
        if tag == "textarea" and self._text:
            self._form[self._text] = self._form[self._text].removeprefix("\n")
            self._text = None
        if tag == "select":
            self._select = None

    def handle_data(self, data: str) -> None:
        """Take in the text of a field."""
        if self._text:
            self._form[self._text] += data


class Visitor:
    """Somebody with a browser that has been let in."""

    def __init__(self, url: str) -> None:
        self.base = "{0.scheme}://{0.netloc}".format(urlsplit(url))
        self.http = httpx2.Client(trust_env=False, timeout=30, base_url=self.base)
        self.http.get(url, follow_redirects=True)

    def get(self, path: str, status: int = 200) -> str:
        """A page."""
        answer = self.http.get(path)
        assert answer.status_code == status, answer.text
        return answer.text

    def form(self, path: str, action: str | None = None) -> dict[str, str]:
        """What the form of a page holds."""
        forms = {url: form for url, form in Form(self.get(path)).forms.items() if "csrf" in form}
        return forms[action or path]

    def post(self, path: str, values: Mapping[str, str], **headers: Any) -> httpx2.Response:
        """Send a form, with line ends as browsers send them."""
        sent = {key: value.replace("\n", "\r\n") for key, value in values.items()}
        return self.http.post(path, data=sent, headers={"origin": self.base, **headers})

    def edit(self, path: str, **changed: str) -> httpx2.Response:
        """Edit a file: open its form, change fields (`body`, `name`, …), and save."""
        given = {key if key in ("body", "text", "do") else f"field.{key}": value for key, value in changed.items()}
        return self.post(f"/edit/{path}", {**self.form(f"/edit/{path}"), **given})

    def close(self) -> None:
        """Close the connections."""
        self.http.close()


@contextmanager
def visiting(folder: Path, *options: str, **env: str) -> Iterator[Visitor]:
    """A visitor of a server of this folder."""
    with serving(folder, *options, **env) as url:
        visitor = Visitor(url)
        try:
            yield visitor
        finally:
            visitor.close()
