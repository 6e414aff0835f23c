"""Lexical recall: what is found, in which order, and why."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mdmemory.recall.entries import Document
from mdmemory.recall.postings import MAX_CANDIDATES
from mdmemory.recall.ranking import LexicalIndex, Ranked
from mdmemory.recall.tokens import terms_with_words

DAY_NS = 86_400 * 10**9
NOW_NS = 20_000 * DAY_NS
WORDS = st.lists(st.sampled_from("deploy friday coffee anna 备份 tea_pot the".split()), max_size=6).map(" ".join)
PATHS = st.sampled_from(["a.md", "b.md", "c/d.md"])


def index_of(files: Mapping[str, str], age_days: float = 0) -> LexicalIndex:
    """An index of files that are all equally old."""
    index = LexicalIndex()
    for path, text in files.items():
        index.put(path, Document(text), NOW_NS - int(age_days * DAY_NS))
    return index


def rank(index: LexicalIndex, query: str, limit: int = 5) -> list[Ranked]:
    """What is found now, with the default half-life."""
    return index.rank(query, limit=limit, now_ns=NOW_NS, half_life_days=180)


def paths(index: LexicalIndex, query: str, limit: int = 5) -> list[str]:
    """The paths found, best first."""
    return [item.path for item in rank(index, query, limit)]


def test_chinese_and_japanese_are_found() -> None:
    """C3, S1: a word inside a text without spaces is found, and so is a single character."""
    index = index_of({"ja.md": "今日は成語しりとりをした", "zh.md": "GitHub备份脚本上传失败", "en.md": "GitHub backup"})
    assert paths(index, "しりとり") == ["ja.md"]
    assert paths(index, "备份") == ["zh.md"]
    assert paths(index, "失") == ["zh.md"]
    assert set(paths(index, "github")) == {"zh.md", "en.md"}


@pytest.mark.parametrize("query", ["", "  ", "?!", "the and of", "who's where", "\ud800", "\0"])
def test_a_query_without_terms_finds_nothing(query: str) -> None:
    """S2: stop words, punctuation and nothing at all give an empty result and no error."""
    assert rank(index_of({"a.md": "the and of who where"}), query) == []


def test_nothing_is_found_without_a_shared_term() -> None:
    """S2: no lexical overlap never returns, nor does an empty folder or a limit of none."""
    assert rank(index_of({"a.md": "coffee"}), "tea") == []
    assert rank(LexicalIndex(), "tea") == []
    assert rank(index_of({"a.md": "tea"}), "tea", limit=0) == []


def test_an_old_exact_match_beats_a_fresh_irrelevant_note() -> None:
    """C3, S5: age lowers a score, and never below half, so a year-old answer stays ahead of today's noise."""
    index = index_of({"old.md": "staging database password rotation happens in march"}, age_days=365)
    for n in range(20):
        index.put(f"new{n}.md", Document(f"the database meeting number {n} was about lunch"), NOW_NS)
    assert paths(index, "when is the staging database rotation?")[0] == "old.md"


def test_of_two_equal_notes_the_newer_comes_first() -> None:
    """S5: where the words say the same, age decides; a time in the future counts as now."""
    index = index_of({"b.md": "deploy on friday"}, age_days=100)
    index.put("c.md", Document("deploy on friday"), NOW_NS + 10**18)
    index.put("a.md", Document("deploy on friday"), NOW_NS - 50 * DAY_NS)
    assert paths(index, "deploy friday") == ["c.md", "a.md", "b.md"]
    assert rank(index, "deploy friday")[0].explain["decay"] == 1


def test_the_only_file_of_a_folder_scores() -> None:
    """A folder with one file gives a full score to a query that the file covers, and a part to one that it covers in part."""
    index = index_of({"role.md": "Anna is a data engineer in Porto"})
    assert 0.5 < rank(index, "Where does Anna's data live?")[0].score < 0.7
    assert rank(index, "Anna data")[0].score == pytest.approx(1)


def test_people_are_found_by_name() -> None:
    """Possessives, case and accents of names don't hide a file; a rare name outweighs common words."""
    files = {f"{n}.md": "project meeting about the roadmap" for n in range(30)}
    index = index_of({**files, "zoe.md": "Zoë’s manager is James", "project.md": "the roadmap meeting of the project"})
    assert paths(index, "who is ZOË?") == ["zoe.md"]
    assert paths(index, "James' roadmap project meeting", limit=1) == ["zoe.md"]
    assert paths(index, "James's") == ["zoe.md"]


def test_a_match_is_explained() -> None:
    """`explain` names the shared words as they were asked, the rarest first, and the factors of the score."""
    index = index_of({"a.md": "deploys on friday", "b.md": "friday", "c.md": "friday"}, age_days=180)
    best = rank(index, "Deployment windows on Fridays?")[0]
    assert best.path == "a.md"
    assert list(best.explain) == ["coverage", "decay", "file", "passage", "passages", "terms", "lines"]
    assert list(best.explain["terms"]) == ["deployment", "fridays"]  # type: ignore[call-overload]  # the factors differ in type
    assert (best.explain["decay"], best.explain["file"], best.explain["lines"]) == (0.75, 1.0, (1, 1))


def test_long_queries_and_large_folders_give_the_best() -> None:
    """More candidates than are ranked, and a pasted page as query: the file that answers is still first."""
    files = {f"{n}.md": "deploy friday " + "filler " * (n % 7) for n in range(MAX_CANDIDATES * 2)}
    index = index_of({**files, "z.md": "deploy friday rollback"})
    assert paths(index, "deploy friday rollback")[0] == "z.md"
    assert paths(index, " ".join(f"word{n}" for n in range(3_000)) + " rollback deploy")[0] == "z.md"
    assert len(paths(index, "deploy", limit=1_000)) == MAX_CANDIDATES


def test_common_words_fill_up_to_the_limit() -> None:
    """S3: where the rare words give fewer files than asked for, those with common ones follow."""
    files = {f"{n:03}.md": "friday" for n in range(MAX_CANDIDATES + 50)}
    index = index_of({**files, "rare.md": "rollback"})
    found = paths(index, "friday rollback", limit=5)
    assert found[0] == "rare.md"
    assert len(found) == 5


@given(st.dictionaries(PATHS, WORDS), WORDS, st.floats(0, 5_000))
def test_the_score_is_the_covered_share_times_decay(files: dict[str, str], query: str, age_days: float) -> None:
    """M4, S5: the score is what `explain` says, coverage × decay, from 0 to 1; every match shares a term, and says which."""
    words = terms_with_words(query)
    found = rank(index_of(files, age_days), query)
    for match in found:
        coverage, decay, bm25 = (match.explain[key] for key in ("coverage", "decay", "file"))
        assert isinstance(coverage, float) and isinstance(decay, float) and isinstance(bm25, float)
        assert match.score == pytest.approx(coverage * decay, abs=2e-4)
        assert 0 < match.score <= 1 and 0.5 <= decay <= 1 and 0 < bm25 <= 1
        shared = [word for term, word in words.items() if term in terms_with_words(files[match.path])]
        assert sorted(match.explain["terms"]) == sorted(shared)  # type: ignore[call-overload]  # the factors differ in type
    assert {match.path for match in found} == {path for path, text in files.items() if words.keys() & terms_with_words(text)}


@given(st.lists(st.tuples(PATHS, WORDS | st.none(), st.integers(0, 400))), WORDS)
def test_an_index_kept_up_to_date_equals_a_fresh_one(steps: list[tuple[str, str | None, int]], query: str) -> None:
    """D4: after any adding, replacing and removing, what is found is what an index of the files that are there finds."""
    kept, there = LexicalIndex(), dict[str, tuple[str, int]]()
    for path, text, age_days in steps:
        if text is None:
            kept.remove(path)
            there.pop(path, None)
        else:
            kept.put(path, Document(text), NOW_NS - age_days * DAY_NS)
            there[path] = (text, NOW_NS - age_days * DAY_NS)
    fresh = LexicalIndex()
    for path, (text, mtime_ns) in there.items():
        fresh.put(path, Document(text), mtime_ns)
    assert rank(kept, query) == rank(fresh, query)
