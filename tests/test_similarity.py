"""Search with an injected `embed` and an injected `scorer`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from command import environment

from mdmemory import Config, open_memory
from mdmemory.config import Candidate

TOPICS = [{"boat", "ship", "vessel"}, {"dog", "puppy"}, {"tea", "coffee"}]


class Embedder:
    """Texts to how often they speak of each topic; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += texts
        return [[sum(word.strip(".") in topic for word in text.lower().split()) for topic in TOPICS] for text in texts]


def fill(folder: Path) -> None:
    """Three notes, one of two paragraphs."""
    (folder / "a.md").write_text("Anna bought a ship.\n")
    (folder / "b.md").write_text("# Pets\n\nThe puppy sleeps.\n\nIt drinks no coffee.\n")
    (folder / "c.md").write_text("A vessel of tea.\n")


async def test_what_means_the_same_is_found_without_a_shared_word(tmp_path: Path) -> None:
    """With `embed`, nearness in meaning adds to words; without it, no lexical overlap never returns."""
    fill(tmp_path)
    async with open_memory(tmp_path) as memory:
        assert await memory.search("boat") == []
    async with open_memory(tmp_path, config=Config(embed=Embedder())) as memory:
        found = await memory.search("boat")
        assert [match.path for match in found] == ["a.md", "c.md"]
        assert found[0].explain["similar"] == 1 and found[0].score == pytest.approx(1, abs=0.01)
        assert next(match.path for match in await memory.search("coffee dog")) == "b.md"
        passages = await memory.folder.search_passages("dog", limit=1)
        assert [(found.path, found.line, found.end_line) for found in passages] == [("b.md", 1, 3)]


async def test_only_what_changed_is_embedded_again(tmp_path: Path) -> None:
    """Vectors are kept by the etag of the file; passages are embedded, never whole files."""
    fill(tmp_path)
    embed = Embedder()
    async with open_memory(tmp_path, config=Config(embed=embed)) as memory:
        await memory.search("boat")
        assert "It drinks no coffee." in embed.asked and not any("puppy" in text and "coffee" in text for text in embed.asked)
        embed.asked.clear()
        await memory.search("dog")
        assert embed.asked == ["dog"]
        (tmp_path / "a.md").write_text("Anna sold the ship.\n")
        await memory.search("dog")
        assert sum("sold" in text for text in embed.asked) >= 1 and not any("puppy" in text for text in embed.asked)


async def test_filters_hold_for_meaning_too(tmp_path: Path) -> None:
    """A file that a filter leaves out is not found by its vectors."""
    fill(tmp_path)
    async with open_memory(tmp_path, config=Config(embed=Embedder())) as memory:
        assert [match.path for match in await memory.search("boat", path="c.md")] == ["c.md"]


async def test_a_scorer_decides_the_order(tmp_path: Path) -> None:
    """It sees the query with name, description and best passage of each candidate; its scores replace recall's."""
    fill(tmp_path)
    seen: list[str] = []

    async def shortest(query: str, candidates: Sequence[Candidate]) -> list[float]:
        seen.extend([query, *(candidate.text for candidate in candidates)])
        return [1 / len(candidate.text) for candidate in candidates]

    async with open_memory(tmp_path, config=Config(scorer=shortest)) as memory:
        found = await memory.search("coffee or tea or ship", limit=2)
    assert len(found) == 2 and found[0].score > found[1].score
    assert seen[0] == "coffee or tea or ship" and len(seen) == 4
    assert any(text.endswith("It drinks no coffee.") for text in seen)


async def test_a_formula_of_ones_own(tmp_path: Path) -> None:
    """C2: relevance × linear decay over 30 days × length up to 200 characters, as other systems score, gives just these values."""
    fill(tmp_path)
    long_ago = time.time() - 15 * 86_400
    os.utime(tmp_path / "a.md", (long_ago, long_ago))

    def formula(candidate: Candidate) -> float:
        age_days = (datetime.now(UTC) - candidate.modified).total_seconds() / 86_400
        return candidate.score * max(0.0, 1 - age_days / 30) * min(1.0, len(candidate.text) / 200)

    given: dict[str, float] = {}

    async def scorer(query: str, candidates: Sequence[Candidate]) -> list[float]:
        given.update((candidate.path, formula(candidate)) for candidate in candidates)
        return list(given.values())

    async with open_memory(tmp_path, config=Config(scorer=scorer)) as memory:
        found = {match.path: match.score for match in await memory.search("ship or coffee")}
    assert found == given and set(found) == {"a.md", "b.md"} and 0 < found["a.md"] < found["b.md"]


@pytest.mark.parametrize("name", ["embed", "scorer"])
async def test_a_callable_that_fails_leaves_recall_by_words(tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    """Whatever is injected may be down; the search answers all the same, and the log says what happened."""
    fill(tmp_path)

    async def broken(*_: object) -> list[float]:
        raise OSError("the endpoint is gone")

    config = Config(embed=broken) if name == "embed" else Config(scorer=broken)  # type: ignore[arg-type]  # that is the point
    async with open_memory(tmp_path, config=config) as memory:
        assert [match.path for match in await memory.search("ship")] == ["a.md"]
    assert f"the injected {name} failed" in caplog.text


async def test_a_wrong_number_of_answers_is_a_failure(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Scores or vectors that can't be assigned to texts are not used."""
    fill(tmp_path)

    async def few(*_: object) -> list[list[float]]:
        return []

    async with open_memory(tmp_path, config=Config(embed=few)) as memory:
        assert [match.path for match in await memory.search("ship")] == ["a.md"]
    assert "embed gave 0 vectors" in caplog.text


def test_without_numpy_the_error_says_what_to_install(tmp_path: Path) -> None:
    """A memory with `embed` is not opened, and says why; one without it never wants numpy."""
    code = f"""
import asyncio, sys
sys.modules["numpy"] = None
from mdmemory import Config, open_memory
async def search(**config):
    async with open_memory({str(tmp_path)!r}, config=Config(**config)) as memory:
        return await memory.search("dog")
print(asyncio.run(search()))
asyncio.run(search(embed=print))
"""
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, encoding="utf-8", check=False)
    assert done.stdout == "[]\n"
    assert done.stderr.rstrip().endswith("Config.embed needs numpy. Install it: pip install 'mdmemory[embed]'")
