"""What people install: a wheel that is whole, light, and cheap to start."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow  # many processes, or the same again and again

HEAVY = set("anthropic docker e2b httpx httpx2 jinja2 markdown_it mcp nh3 numpy openai pydantic starlette uvicorn watchdog".split())
ALLOWED = set(
    """mdmemory click jinja2 markupsafe numpy platformdirs pystemmer python-frontmatter pyyaml rank-bm25 snowballstemmer watchdog
    pip setuptools""".split()  # the last two come with the environment
)
NEEDS_AN_EXTRA = {
    **{f"mdmemory.adapters.agentscope{part}": "agentscope" for part in ("", "_messages", "_workspace")},
    "mdmemory.adapters.claude_agent": "claude_agent_sdk",
    "mdmemory.adapters.deepagents": "deepagents",
    "mdmemory.adapters.google_adk": "google",
    "mdmemory.adapters.langchain": "langchain",
    "mdmemory.adapters.langgraph": "langchain_core",
    **{f"mdmemory.adapters.openai_agents{part}": "agents" for part in ("", "_handoffs")},
    "mdmemory.adapters.pydantic_ai": "pydantic_ai",
    "mdmemory.adapters.smolagents": "smolagents",
    "mdmemory.adapters.smolagents_tool": "smolagents",
    "mdmemory.adapters.strands": "strands",
    "mdmemory.adapters.anthropic_memory": "anthropic",
    **dict.fromkeys((f"mdmemory.mcp_server.{name}" for name in ("resources", "server", "tools")), "mcp_types"),
    "mdmemory.mcp_server.news": "anyio",
    "mdmemory.mcp_server.http": "uvicorn",
    "mdmemory.testing.conformance": "pytest",
    **{f"mdmemory.service.{name}": "starlette" for name in ("answering", "app", "sign_in")},
    **{f"mdmemory.service.{name}": "mcp" for name in ("doors", "memories", "opened")},
    **{f"mdmemory.service.{name}": "prometheus_client" for name in ("metrics", "storage")},
    "mdmemory.service.logs": "pythonjsonlogger",
    "mdmemory.service.seal": "cryptography",
    **{f"mdmemory.service.{name}": "uvicorn" for name in ("connections", "workers")},
    "mdmemory.web.serve": "uvicorn",
    **{
        f"mdmemory.web.{name}": "starlette"
        for name in """app changing doctor_page editing guard history_pages index_page journal_pages listing markdown reading
        review_pages site turns_page""".split()
    },
}
IMPORT_ALL = """
import importlib, json, pkgutil, mdmemory
names, missing = [], {}
for module in pkgutil.walk_packages(mdmemory.__path__, "mdmemory."):
    names.append(module.name)
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        missing[module.name] = error.name
print(json.dumps([mdmemory.__file__, names, missing]))
"""
LOAD_TEMPLATES = """
import json
from mdmemory.render import PROMPTS, environment
print(json.dumps([environment(None).get_template(path.name).name for path in sorted(PROMPTS.iterdir())]))
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """The wheel, and an environment that has it and nothing else."""

    wheel: Path
    bin: Path

    def run(self, code: str) -> Any:
        """What the code prints as JSON, run away from the repository."""
        command = [str(self.bin / "python"), "-I", "-c", code]
        return json.loads(subprocess.check_output(command, cwd=self.bin, text=True))


@pytest.fixture(scope="session")
def installed(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Build from what git would have, so that no leftover of an earlier build gets in, and install without extras."""
    place = tmp_path_factory.mktemp("package")
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in filter(None, subprocess.check_output(listing, cwd=repository, text=True).split("\0")):
        if os.path.lexists(repository / name):
            (place / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(repository / name, place / "source" / name, follow_symlinks=False)
    subprocess.run([sys.executable, "-m", "build", "--outdir", place / "dist", place / "source"], check=True, capture_output=True)
    (wheel,) = (place / "dist").glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", place / "venv"], check=True)
    subprocess.run([place / "venv/bin/python", "-m", "pip", "install", "--quiet", wheel], check=True)
    return Installed(wheel, place / "venv/bin")


slow = pytest.mark.slow
group = pytest.mark.xdist_group("package")
long = pytest.mark.timeout(600)


@slow
@group
@long
def test_the_wheel_has_the_package_and_nothing_beside_it(installed: Installed, repository: Path) -> None:
    """Every module, template and marker of the package is in the wheel; the links at the top are not."""
    names = set(zipfile.ZipFile(installed.wheel).namelist())
    package = [path for path in (repository / "mdmemory").rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert {str(path.relative_to(repository)) for path in package} - names == set()
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"mdmemory"}


@slow
@group
@long
def test_every_installed_module_can_be_imported(installed: Installed, repository: Path) -> None:
    """Without any extra, and away from the repository, no module misses anything but what its extra is for."""
    where, names, missing = installed.run(IMPORT_ALL)
    modules = (path.relative_to(repository).with_suffix("") for path in (repository / "mdmemory").rglob("*.py"))
    expected = {".".join(module.parts).removesuffix(".__init__") for module in modules} - {"mdmemory"}
    assert Path(where).is_relative_to(installed.bin.parent) and set(names) == expected
    assert missing == NEEDS_AN_EXTRA


@slow
@group
@long
def test_every_installed_template_can_be_loaded(installed: Installed, repository: Path) -> None:
    """The prompts come along, and Jinja reads them all."""
    assert installed.run(LOAD_TEMPLATES) == sorted(path.name for path in (repository / "mdmemory/prompts").iterdir())


@slow
@group
@long
def test_the_installed_command_says_its_version(installed: Installed) -> None:
    """`mdmemory --version` and `python -m mdmemory --version` run and name the version of the wheel."""
    version = installed.wheel.name.split("-")[1]
    for command in ([installed.bin / "mdmemory"], [installed.bin / "python", "-m", "mdmemory"]):
        assert version in subprocess.check_output([*command, "--version"], cwd=installed.bin, text=True)


@slow
@group
@long
def test_an_installation_stays_light(installed: Installed) -> None:
    """Without extras, only these few distributions are brought in."""
    listing = subprocess.check_output([installed.bin / "python", "-m", "pip", "list", "--format", "json"], text=True)
    assert {re.sub(r"[-_.]+", "-", entry["name"]).lower() for entry in json.loads(listing)} - ALLOWED == set()


def _imported(repository: Path, *arguments: str) -> set[str]:
    command = [sys.executable, "-X", "importtime", *arguments]
    child = subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True)
    names = re.findall(r"^import time:.*\|\s+([\w.]+)$", child.stderr, re.MULTILINE)
    return {name.partition(".")[0] for name in names}


def test_importing_the_package_brings_in_nothing_heavy(repository: Path) -> None:
    """`import mdmemory` is for programs that may never open a memory."""
    imported = _imported(repository, "-c", "import mdmemory")
    assert "mdmemory" in imported and imported & HEAVY == set()


def test_asking_for_help_brings_in_nothing_heavy(repository: Path) -> None:
    """`mdmemory --help` answers before anything that it will not need, an event loop included."""
    imported = _imported(repository, "-m", "mdmemory", "--help")
    assert "mdmemory" in imported and imported & (HEAVY | {"asyncio"}) == set()
