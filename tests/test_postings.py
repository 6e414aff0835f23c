"""Candidates: which files hold the words of a query, the best of them by BM25."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmemory.recall.collection import Collection
from mdmemory.recall.entries import Document
from mdmemory.recall.postings import K1, MAX_CANDIDATES, WEIGHED, B

Note = tuple[list[str], list[str], list[str]]
"""The words of a name, of a description and of a text."""
NOTES = st.lists(st.tuples(*[st.lists(st.sampled_from(["oak", "elm", "fig"]), max_size=size) for size in (2, 3, 12)]), max_size=12)
WEIGHTS = st.dictionaries(st.sampled_from(["oak", "elm", "fig", "yew"]), st.floats(0.1, 9), min_size=1)


def collection(notes: Mapping[str, tuple[str, str, str]]) -> Collection:
    """Files with name, description and text."""
    found = Collection()
    for path, (name, about, text) in notes.items():
        found.add(path, Document(text, name, about), 0)
    found.write()
    return found


@given(NOTES, WEIGHTS)
def test_the_best_files_are_those_that_bm25_finds(notes: list[Note], weights: dict[str, float]) -> None:
    """A name's word counts four times, a description's twice; the length is that of the file beside that of all that match."""
    files = {f"{n:02}.md": note for n, note in enumerate(notes)}
    index = collection({path: (" ".join(name), " ".join(about), " ".join(text)) for path, (name, about, text) in files.items()})
    (lengths,) = [dict(index.cache.db.execute("SELECT path, length FROM file"))]
    counts = {
        path: {term: 4 * name.count(term) + 2 * about.count(term) + text.count(term) for term in weights}
        for path, (name, about, text) in files.items()
    }
    matching = [path for path in files if any(counts[path].values())]
    average = sum(lengths[path] for path in matching) / (len(matching) or 1)

    def score(path: str) -> float:
        extra = K1 * (1 - B + B * lengths[path] / average)
        return sum(weight * counts[path][term] / (counts[path][term] + extra) for term, weight in weights.items())

    found = index.match(weights, MAX_CANDIDATES)
    assert sorted(found) == sorted(matching)
    assert [score(path) for path in found] == pytest.approx(sorted(map(score, matching), reverse=True))


def test_among_many_files_a_name_and_a_short_text_come_first() -> None:
    """What a file is called counts more than what stands in it, and in a short text a word counts more than in a long one."""
    long = {f"long-{n:03}.md": ("", "", "oak " + "elm " * (100 + n)) for n in range(10 * WEIGHED)}
    index = collection({**long, "short.md": ("", "", "oak elm"), "named.md": ("oak", "", "elm " * 100)})
    assert index.match({"oak": 1.0}, 4)[:3] == ["named.md", "short.md", "long-000.md"]


def test_files_that_are_allowed_are_found_however_many_others_are_better() -> None:
    """S3: a filter comes before the ranking, so that what it leaves is found."""
    better = {f"{n:03}.md": ("oak", "oak", "oak oak") for n in range(50 * WEIGHED)}
    index = collection({**better, "allowed.md": ("", "", "fig " * 80 + "oak")})
    assert index.match({"oak": 1.0}, 2, {"allowed.md", "absent.md"}) == ["allowed.md"]


def test_rare_words_find_the_files_and_common_ones_put_them_in_order() -> None:
    """Of files with a rare word those with a common one too are the best; where these are many, others are not looked for."""
    rare = {f"rare-{n:03}.md": ("", "", "oak fig" if n == 150 else "oak yew") for n in range(MAX_CANDIDATES)}
    common = {f"common-{n:03}.md": ("", "", "fig fig") for n in range(MAX_CANDIDATES + 50)}
    index = collection({**rare, **common})
    found = index.match({"oak": 2.0, "fig": 1.9}, 12)
    assert found[0] == "rare-150.md" and all(path.startswith("rare") for path in found)
    assert index.match({"oak": 2.0, "fig": 1.9}, 12, {"common-007.md"}) == ["common-007.md"]


def test_what_is_added_is_found_once_it_is_written() -> None:
    """Files that wait are written together, and the last text of each is what counts."""
    index = Collection()
    for text in ("oak", "elm"):
        index.add("a.md", Document(text), 0)
        index.add("b.md", Document(text), 0)
    index.write(fewest=3)
    assert index.match({"elm": 1.0}, 9) == [] and "a.md" not in index
    index.remove("b.md")
    index.write(fewest=1)
    assert index.match({"elm": 1.0, "oak": 1.0}, 9) == ["a.md"] and index.holding(["oak", "elm"]) == {"oak": 0, "elm": 1}
    index.write()
    assert index.match({"elm": 1.0}, 9) == ["a.md"]
