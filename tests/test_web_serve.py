"""The web server as a process: many at once, several folders, news while they happen, and its end."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest
from command import COMMAND, environment, note, write
from folders import visible
from web_server import HOME, Visitor, home, serving, two_files, visiting


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files."""
    return two_files(tmp_path / "memory")


@pytest.fixture
def visitor(folder: Path) -> Iterator[Visitor]:
    """A visitor of its server."""
    with visiting(folder) as visitor:
        yield visitor


def test_many_save_at_once(visitor: Visitor, folder: Path) -> None:
    """E5: of ten people who add a line each, at different places, all are heard; who is refused is told so."""
    lines = [f"line {number}" for number in range(100)]
    write(folder / "user/home.md", HOME + "\n".join(lines) + "\n")
    form = visitor.form("/edit/user/home.md")

    def save(number: int) -> int:
        body = form["body"].replace(f"line {number}5\n", f"line {number}5\nadded {number}\n")
        return visitor.post("/edit/user/home.md", {**form, "body": body}).status_code

    with ThreadPoolExecutor(5) as pool:
        assert list(pool.map(save, range(1, 10))) == [303] * 9
    assert [line for line in home(folder).splitlines() if line.startswith("added")] == [
        f"added {number}" for number in range(1, 10)
    ]


def test_only_looking(folder: Path) -> None:
    """--read-only shows everything, offers no change and makes none."""
    before = visible(folder)
    with visiting(folder, "--read-only") as visitor:
        assert "New memory" not in visitor.get("/") and "/edit/" not in visitor.get("/file/user/home.md")
        form = {**visitor.form("/new"), "name": "x", "body": "y"}
        assert visitor.post("/new", form).status_code == 422
        assert visitor.edit("user/home.md", body="x").status_code == 422
    assert visible(folder) == before


def test_two_folders(folder: Path, tmp_path: Path) -> None:
    """M5: a mounted folder's files stand in the list under their prefix; what may not be changed there has no button."""
    write(tmp_path / "team/plan.md", note("Plan", "the team's plan", kind="project"))
    write(tmp_path / "notes/log.md", note("Log", "ours", kind="project"))
    mounts = f"  team/: {{location: {tmp_path}/team, access: [read]}}\n  notes/: {{location: {tmp_path}/notes}}\n"
    write(tmp_path / "memory.yaml", f"location: {folder}\nmounts:\n{mounts}")
    with visiting(folder, "--config", str(tmp_path / "memory.yaml")) as visitor:
        assert "team/plan.md" in visitor.get("/?q=plan") and "/edit/" not in visitor.get("/file/team/plan.md")
        assert visitor.edit("team/plan.md", body="x").status_code == 422
        assert visitor.edit("notes/log.md", body="x\n").status_code == 303
        assert (tmp_path / "notes/log.md").read_bytes().endswith(b"\n\nx\n")
        assert "notes/log.md" in visitor.get("/history") and "the team" in visitor.get("/index")


def test_news_come_as_they_happen_and_end_with_the_server(folder: Path) -> None:
    """W1: a page that is open hears of a change on disk within seconds, and does not hold up the end of the server."""
    command = [*COMMAND, "serve", "-f", str(folder), "--port", "0"]
    server = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, encoding="utf-8", cwd=folder.parent)
    assert server.stderr is not None
    url = server.stderr.readline().split()[-1]
    visitor = Visitor(url)
    heard: list[str] = []
    opened = threading.Event()

    def listen() -> None:
        with visitor.http.stream("GET", "/changes") as stream:
            for line in stream.iter_lines():
                opened.set()
                heard.append(line)

    listener = threading.Thread(target=listen)
    listener.start()
    assert opened.wait(10)
    write(folder / "user/home.md", HOME + "more\n")
    for _ in range(100):
        if any("user/home.md" in line for line in heard):
            break
        listener.join(0.1)
    server.send_signal(signal.SIGINT)
    assert "Traceback" not in server.communicate(timeout=1.9)[1], "uvicorn would wait for two seconds and then cut the stream off"
    listener.join(5)
    visitor.close()
    assert 'data: {"paths": ["user/home.md"], "journal": false}' in heard and not listener.is_alive()


def test_too_many_pages(folder: Path) -> None:
    """V8: who opens one stream after another is stopped, and pages are still served."""
    with serving(folder) as url:
        visitor = Visitor(url)
        with httpx2.Client(trust_env=False, base_url=visitor.base, cookies=visitor.http.cookies, timeout=10) as http:
            streams = [http.send(http.build_request("GET", "/changes"), stream=True) for _ in range(90)]
            assert {stream.status_code for stream in streams} == {200} and visitor.get("/")
            streams += [visitor.http.send(visitor.http.build_request("GET", "/changes"), stream=True) for _ in range(11)]
            assert [stream.status_code for stream in streams[99:]] == [200, 503]
            for stream in streams:
                stream.close()
        assert visitor.get("/")
        visitor.close()


def test_where_it_is_served_as_json_and_its_end(folder: Path) -> None:
    """With --json the address is an object on a line of its own; Ctrl-C ends it, and that is no failure."""
    command = [*COMMAND, "serve", "-f", str(folder), "--port", "0", "--json"]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as server:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        Visitor(url).close()
        server.send_signal(signal.SIGINT)
        assert server.communicate(timeout=10) == ("", "") and server.returncode == 0
