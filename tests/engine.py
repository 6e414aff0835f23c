"""The Docker engine of the tests: found, not started; where there is none, that is said as loudly as a failure."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

IMAGES = {"busybox": "mdmemory-test:busybox", "gnu": "mdmemory-test:gnu"}
_NOT_TESTED = "Docker was NOT tested"


@cache
def why_not() -> str | None:
    """Why the Docker tests can't run here."""
    import docker
    from docker.errors import DockerException, ImageNotFound

    try:
        with_images = docker.from_env()
        for image in IMAGES.values():
            with_images.images.get(image)
    except ImageNotFound as error:
        return f'{_NOT_TESTED}: {error.explanation}. Run: eval "$(scripts/start-docker)"'
    except DockerException:
        return f'{_NOT_TESTED}: no engine answers. Run: eval "$(scripts/start-docker)"'
    return None


@pytest.fixture(scope="session")
def engine() -> Iterator[Any]:
    """A client of the engine; the containers and volumes that tests named are removed at the end."""
    import docker

    if reason := why_not():
        pytest.skip(reason)
    client = docker.from_env()
    yield client
    for container in client.containers.list(all=True, filters={"name": f"mdmemory-{_run()}"}):
        container.remove(force=True, v=True)
    for volume in client.volumes.list(filters={"name": _run()}):
        volume.remove(force=True)


@cache
def _run() -> str:
    return f"test-{uuid.uuid4().hex[:8]}"


def new_volume() -> str:
    """A name for a volume that the end of the session removes."""
    return f"{_run()}-{uuid.uuid4().hex[:8]}"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say last and in red what did not run for want of an engine."""
    say_what_did_not_run(terminalreporter, _NOT_TESTED)


def say_what_did_not_run(terminalreporter: Any, why: str) -> None:
    """Say in red how many tests were passed over for this reason."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [report.longrepr[2] for report in skipped if isinstance(report.longrepr, tuple)]
    missed = [reason for reason in reasons if why in reason]
    if missed:
        terminalreporter.write_sep("!", f"{len(missed)} tests did not run", red=True, bold=True)
        terminalreporter.write_line(missed[0].removeprefix("Skipped: "), red=True, bold=True)
