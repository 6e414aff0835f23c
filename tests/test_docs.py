"""What README.md and the pages in docs/ show is what happens: every `python` and `console` block is run, top to bottom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from anthropic_server import AnthropicServer, remembers_tea
from command import REPOSITORY
from pages import BLOCK, blocks, try_page

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]
ELSEWHERE = {"anthropic", "openai"} | {
    path.stem.removeprefix("test_") for path in (REPOSITORY / "tests/frameworks").glob("test_*.py")
}
HERE = [page for page in PAGES if page.parent.name != "adapters" or page.stem not in ELSEWHERE]  # those have tests of their own


@pytest.fixture
def claude(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A server of Anthropic's messages, which its SDK is pointed at."""
    with AnthropicServer(remembers_tea) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        yield


@pytest.mark.parametrize("page", HERE, ids=[path.name for path in HERE])
@pytest.mark.usefixtures("server", "claude")  # what a page says to E2B or to Anthropic is said to those servers
def test_every_block_of_a_page_does_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """In one folder, from top to bottom, files are as shown, Python prints what follows it, and commands what stands below them."""
    monkeypatch.chdir(tmp_path)
    if "postgres:///" in page.read_text(encoding="utf-8"):  # of which libpq's variables say where it is
        for name, value in request.getfixturevalue("postgres").variables("memories").items():
            monkeypatch.setenv(name, value)
    try_page(page, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=[path.name for path in PAGES])
def test_every_link_within_the_repository_leads_somewhere(page: Path) -> None:
    """A page links only to files that are there."""
    prose = BLOCK.sub("", page.read_text(encoding="utf-8"))
    links = [link for link in re.findall(r"\]\(([^)#\s]+)", prose) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=[path.name for path in PAGES])
def test_every_test_that_a_page_names_is_there(page: Path) -> None:
    """What a page says that a test holds is held by a test."""
    named = re.findall(r"`(tests/[\w*/.-]+)`", page.read_text(encoding="utf-8"))
    assert [name for name in named if not any(REPOSITORY.glob(name))] == []


def test_the_first_screen_of_the_readme_has_what_a_newcomer_looks_for() -> None:
    """A real file and its index line, the installation, six lines of Python with output, four commands, and what it is not."""
    readme = REPOSITORY / "README.md"
    first = list(blocks(readme))[:6]
    assert [block.kind for block in first] == ["markdown", "markdown", "sh", "python", "text", "console"]
    assert [block.path for block in first[:2]] == ["memory/user/home.md", "memory/MEMORY.md"]
    assert len([line for line in first[3].text.splitlines() if line.strip()]) == 6
    assert first[5].text.count("$ mdmemory ") == 4
    assert "What it is not" in readme.read_text(encoding="utf-8")[: 4_000 + sum(len(block.text) for block in first)]
