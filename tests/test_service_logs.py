"""What operators see of the service: logs, health and metrics, none of which tell what users keep."""

from __future__ import annotations

import json
import logging
import re
import shutil
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from command import environment, note, write
from prometheus_client.parser import text_string_to_metric_families
from service_server import HELLO, JSON, ask, call, running, until
from web_server import Visitor

from mdmemory.errors import Unavailable
from mdmemory.service.answering import route_of
from mdmemory.service.logs import Lines, Told, current

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("service-logs")]
NAME, TEXT = "diagnosis-of-alice", "SECRETWORD"


def test_a_line_a_request_and_nothing_of_what_users_keep(tmp_path: Path) -> None:
    """Every answer's id stands in one line with user, route, status, time and bytes; no token, file name, word or cookie does."""
    write(tmp_path / f"memories/alice/user/{NAME}.md", note("Home", "where I live", TEXT))
    with running(tmp_path) as service:
        token, seen = service.tokens["alice"], {}
        alice = Visitor(f"{service.url}/?token={token}")
        cookie = "".join(str(each.value) for each in alice.http.cookies.jar)
        for method, path in (("GET", f"/file/user/{NAME}.md"), ("GET", f"/?q={TEXT}"), ("GET", f"/nothing/{TEXT}"), ("PUT", "/")):
            answer = alice.http.request(method, path, headers={"origin": service.url})
            seen[answer.headers["x-request-id"]] = ("alice", answer.status_code, len(answer.content))
        for given in (ask(service, token, "initialize", HELLO), ask(service, f"{token}x"), ask(service, token, TEXT, {"x": TEXT})):
            seen[given.headers["x-request-id"]] = (
                "alice" if given.status_code != 401 else "",
                given.status_code,
                len(given.content),
            )
        with httpx2.Client(trust_env=False) as client:
            client.post(service.mcp, content=TEXT * 100, headers={**JSON, "authorization": f"Bearer {token}"})
            client.post(f"{service.url}/sign-in", data={"token": token, "where": f"/{TEXT}"}, headers={"origin": service.url})
            client.request(TEXT, f"{service.url}/{TEXT}", headers={"x-request-id": TEXT})
        assert TEXT in call(service, token, "Read", file_path=f"user/{NAME}.md")
        alice.close()
        lines = service.log(event="request")
        for id, (user, status, sent) in seen.items():
            (line,) = (line for line in lines if line["request_id"] == id)
            assert (line["user"], line["status"], line["sent"]) == (user, status, sent)
            assert line["duration_ms"] > 0 and line["time"] and line["worker"] in service.workers()
        assert {line["route"] for line in lines} == {"/", "/file", "/mcp", "/health", "/sign-in", "other"}
        text = service.text()
        for kept in (token, token[4:24], cookie, NAME, TEXT, "diagnosis", str(tmp_path)):
            assert kept not in text
        assert all(json.loads(line) for line in text.splitlines())


def test_an_error_is_logged_by_its_type_and_place() -> None:
    """What a library says of an error may quote what a user sent; our own errors name no more than files."""
    told = Told("1234", "GET", user="alice")
    before = current.set(told)
    try:
        for error, is_said in ((ValueError(f"bad: {TEXT}"), False), (Unavailable("the storage is away"), True)):
            try:
                raise error
            except type(error):
                record = logging.LogRecord("x", 40, __file__, 1, "it failed: %s\n%s", ("a", TEXT), sys.exc_info())
            line = json.loads(Lines().format(record))
            assert (str(error) in line["error"]) == is_said and TEXT not in json.dumps(line)
            assert (line["event"], line["request_id"], line["user"]) == ("it failed: a", "1234", "alice")
            assert __file__ in line["error"] and type(error).__name__ in line["error"]
    finally:
        current.reset(before)


@pytest.mark.parametrize(
    ("path", "route"),
    [
        *(("/", "/"), ("/mcp", "/mcp"), ("/file/user/home.md", "/file"), ("/sign-in", "/sign-in"), ("/health/live", "/health")),
        *(("/home.md", "other"), ("", "other"), ("//file", "/file"), ("/FILE/x", "other")),
    ],
)
def test_routes_are_few(path: str, route: str) -> None:
    """Whatever address is asked for, the log and the metrics have one of some twenty names for it."""
    assert route_of(path) == route


def test_metrics_are_those_of_all_workers(tmp_path: Path) -> None:
    """Prometheus' own parser reads them; each request counts once, whichever worker had it, and no user is named."""
    write(tmp_path / "memories/alice/user/home.md", note("Home", "where I live"))
    with running(tmp_path) as service:
        until(lambda: service.number("mdmemory_workers") == 2)
        for _ in range(30):
            call(service, service.tokens["alice"], "Read", file_path="user/home.md")
        assert ask(service, "nobody's").status_code == 401
        assert len({line["worker"] for line in service.log(route="/mcp")}) == 2, "both had some"
        families = {family.name: family for family in text_string_to_metric_families(service.metrics())}
        assert {family.type for family in families.values()} == {"counter", "gauge", "histogram"}
        assert service.number("mdmemory_requests_total", route="/mcp", status="200") == 30
        assert service.number("mdmemory_request_seconds_count", route="/mcp") == 31
        assert service.number("mdmemory_unknown_tokens_total") == 1
        assert service.number("mdmemory_open_memories") == 2, "one a worker"
        assert service.number("mdmemory_storage_seconds_count", verb="read") >= 30
        assert service.number("mdmemory_requests_running") == 1, "that which asks"
        assert all(family.documentation for family in families.values())
        assert "alice" not in service.metrics()
        names = {name.removesuffix("_total") for name in families}
    listed = set(
        re.findall(r"^\| `(mdmemory_\w+?)(?:_total)?` ", (Path(__file__).parent.parent / "docs/service.md").read_text(), re.M)
    )
    assert listed == names, "docs/service.md lists them"


def test_metrics_may_want_a_token(tmp_path: Path) -> None:
    """With one set, it must be shown; a user's own is none."""
    with running(tmp_path, MDMEMORY_METRICS_TOKEN="for-prometheus") as service:
        get = f"{service.url}/metrics"
        for token, status in (("for-prometheus", 200), ("for-prometheusx", 401), (service.tokens["alice"], 401), ("", 401)):
            answer = httpx2.get(get, headers={"authorization": f"Bearer {token}"} if token else {}, trust_env=False)
            assert answer.status_code == status


def test_health_says_whether_the_storage_can_be_reached(tmp_path: Path) -> None:
    """Alive is who answers; ready is who can also reach the memories, and again when they are back. Nothing of the host is said."""
    with running(tmp_path) as service:
        health = f"{service.url}/health"
        assert httpx2.get(health, trust_env=False).json() == {"live": True, "ready": True}
        assert not list((tmp_path / "memories").iterdir())
        shutil.move(tmp_path / "memories", tmp_path / "away")
        until(lambda: {httpx2.get(health, trust_env=False).status_code for _ in range(6)} == {503})
        assert httpx2.get(health, trust_env=False).json() == {"live": True, "ready": False}
        assert httpx2.get(f"{health}/live", trust_env=False).json() == {"live": True}
        shutil.move(tmp_path / "away", tmp_path / "memories")
        until(lambda: httpx2.get(health, trust_env=False).status_code == 200)
        assert any("not ready" in line["event"] for line in service.log(level="WARNING"))


def test_a_full_disk_does_not_end_who_counts(tmp_path: Path) -> None:
    """The disk has room for a worker's numbers from its start on: writing to a mapped file that has none is the end of it."""
    code = "from mdmemory.service.metrics import Metrics; Metrics()"
    subprocess.run([sys.executable, "-c", code], env=environment(PROMETHEUS_MULTIPROC_DIR=str(tmp_path)), check=True, timeout=60)
    files = list(tmp_path.glob("*.db"))
    assert {file.name.rpartition("_")[0] for file in files} == {"counter", "gauge_livesum", "histogram"}
    assert all(file.stat().st_blocks * 512 >= file.stat().st_size > 0 for file in files)
