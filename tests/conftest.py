"""What every test gets: a home of its own, no keys, and property tests that are the same on every run of the CI."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from caching import FILES, STABLE_S
from e2b_server import E2BServer
from folders import on_disk
from hypothesis import settings
from shells import new_shell, run
from watching import Pair, watched

from mdmemory import Memory, Toolset, open_memory
from mdmemory.backends.e2b import E2BShell

pytest_plugins = ["engine", "browser", "database"]

settings.register_profile("here", deadline=None)  # a busy machine is not a failure
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point the home and the cache folder at an empty place, and take the keys of model providers out of reach."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in [name for name in os.environ if name.startswith(("OPENAI_", "ANTHROPIC_", "E2B_", "MDMEMORY_"))]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def repository() -> Path:
    """The project's top folder."""
    return Path(__file__).parent.parent


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    """An empty memory on disk."""
    async with open_memory(tmp_path / "memory") as memory:
        yield memory


@pytest.fixture
def tools(memory: Memory) -> Toolset:
    """The tools of one conversation."""
    return Toolset(memory.folder, "agent:test")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the memory is."""
    return tmp_path / "memory"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[E2BServer]:
    """A server of E2B's sandboxes, which its SDK is pointed at."""
    with E2BServer(tmp_path / "e2b") as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        yield server


@pytest.fixture
async def shell(server: E2BServer) -> AsyncIterator[E2BShell]:
    """A shell in a sandbox of that server, which is there already."""
    shell = new_shell()
    await run(shell, "true")
    server.requests.clear()
    yield shell
    await shell.close()


@pytest.fixture
async def root(tmp_path: Path) -> Path:
    """A folder whose files are old enough to be sure of."""
    on_disk(tmp_path / "memory", FILES)
    await asyncio.sleep(STABLE_S)
    return tmp_path / "memory"


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    """A watched folder at `tmp_path / "memory"`, and what counts its calls."""
    folder, backend = await watched(tmp_path / "memory")
    yield folder, backend
    await folder.close()
