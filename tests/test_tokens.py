"""Text to search terms."""

from __future__ import annotations

import re
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import pytest
import snowballstemmer
import Stemmer
from command import REPOSITORY
from hypothesis import given
from hypothesis import strategies as st
from snowballstemmer.english_stemmer import EnglishStemmer
from snowballstemmer.french_stemmer import FrenchStemmer
from snowballstemmer.german_stemmer import GermanStemmer

from mdmemory.errors import ConfigError
from mdmemory.recall.tokens import ENGLISH, _terms, single_characters, terms_with_words, tokens


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Anna", "Anna's"),
        ("James", "James's"),
        ("James", "James’ James'"),
        ("Zoë", "ZOË’S"),
        ("O'Brien", "o’brien"),
        ("Deployments", "deploying deployed"),
        ("ＡＢＣ", "abc"),
        ("Straße", "STRASSE"),
        (unicodedata.normalize("NFD", "Café"), "café"),
        ("snake_case", "Snake-Case"),
        ("ﾃｽﾄ", "テスト"),
    ],
)
def test_what_people_take_for_one_word_is_one_term(one: str, other: str) -> None:
    """Case, possessives, width, composition and the endings of English words make no difference."""
    assert set(tokens(one)) == set(tokens(other)) != set()


@pytest.mark.parametrize("text", ["", " \n", "?!… —", "the of and", "Who's where's the HOW’S", "It's what we're", "___", "'"])
def test_stop_words_and_punctuation_are_no_terms(text: str) -> None:
    """S2: question words, with or without 's, and punctuation give nothing to search for."""
    assert tokens(text) == []
    assert terms_with_words(text) == {}


def test_chinese_and_japanese_become_pairs() -> None:
    """S1: text without spaces is cut into overlapping pairs, beside words in other scripts."""
    assert tokens("GitHub备份脚本") == ["github", "备份", "份脚", "脚本"]
    assert set(tokens("しりとり")) <= set(tokens("今日は成語しりとりをした"))
    assert tokens("茶") == ["茶"]
    assert tokens("한국어") == ["한국", "국어"]
    assert tokens("人々") == ["人々"]


def test_a_document_is_found_by_one_character() -> None:
    """S1: a document has each CJK character by itself too; a query has pairs only, so that they decide."""
    assert set(tokens("茶")) <= set(single_characters("お茶が好き"))
    assert set(terms_with_words("お茶")) == {"お茶"}
    assert single_characters("tea 茶") == []


def test_names_and_numbers_stay_whole() -> None:
    """Names in other alphabets, numbers and mixed words are not stemmed or cut."""
    assert tokens("Müller 2026 v2 Иванов x86") == ["müller", "2026", "v2", "иванов", "x86"]


def test_terms_come_with_the_word_people_wrote() -> None:
    """What explains a match is the word, not its stem, once each and in order."""
    assert list(terms_with_words("Deploying deployments on Fridays").values()) == ["deploying", "fridays"]
    assert terms_with_words("备份x") == {"备份": "备份", "x": "x"}


@given(st.text())
def test_terms_are_those_of_the_text(text: str) -> None:
    """Query and document are cut alike: every term of a query is a term of the document with the same text."""
    assert set(terms_with_words(text)) == set(tokens(text))
    assert "" not in tokens(text)


@given(st.text(alphabet="abcXYZ019_'’.-—…“\u0301\n\t\x1f\x00 "), st.sampled_from(["è", "ß", "и"]))
def test_one_letter_changes_no_other_term(text: str, letter: str) -> None:
    """Text with letters of ASCII alone is cut in another way than the rest, into the same terms."""
    assert tokens(f"{text} {letter}") == [*tokens(text), *tokens(letter)]


@given(st.lists(st.text(alphabet="aB'9 お茶ﾃ备가é\u0301.", max_size=8), max_size=5))
def test_lines_are_cut_by_themselves(lines: list[str]) -> None:
    """A text has the terms and the single characters of its lines: none reaches over the end of one."""
    text = "\n".join(lines)
    assert tokens(text) == [term for line in lines for term in tokens(line)]
    assert single_characters(text) == [char for line in lines for char in single_characters(line)]


@given(st.text(alphabet="お茶备가 ."))
def test_single_characters_are_those_of_the_pairs(text: str) -> None:
    """S1: every character of a pair is there by itself too, and no other."""
    terms = tokens(text)
    assert set(single_characters(text)) == {char for term in terms if len(term) == 2 for char in term}


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("did she buy it", "she bought it"),
        ("children's teeth", "a child's tooth"),
        ("went running", "goes, ran"),
        ("two dogs", "2 dogs"),
        ("what was written", "who writes"),
    ],
)
def test_irregular_forms_and_number_words_meet(asked: str, written: str) -> None:
    """No suffix rule leads from bought to buy, from teeth to tooth or from two to 2: a table does."""
    assert set(tokens(asked)) == set(tokens(written)) != set()


def test_languages_are_a_setting() -> None:
    """German endings and stop words count once German is among the languages, and English ones still do."""
    both = ("german", "english")
    assert tokens("Die Häuser und Verträge", both) == tokens("das Haus, der Vertrag", both)
    assert tokens("Wann ist es?", both) == []
    assert tokens("deployments", both) == tokens("deploying", both)
    assert tokens("Häuser") != tokens("Haus")
    assert tokens("книги", ("russian",)) == tokens("книга", ("russian",))


def test_an_unknown_language_is_refused() -> None:
    """The message lists the languages that there are."""
    with pytest.raises(ConfigError, match=r"stemmer for klingon.*german"):
        tokens("nuqneH", ("klingon",))


def test_threads_do_not_mix_up_stems() -> None:
    """Two event loops in two threads may search at the same time."""
    words = [
        f"{letter}{end}" for letter in "abcdefghijklmnopqrstuvwxyz" for end in ("rationalizing", "conditionally", "hopefulness")
    ]
    wanted = {word: tokens(f"un{word}")[0] for word in words}
    text = [f"un{word}" for word in words]
    for _ in range(20):
        _terms(ENGLISH).clear()
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(tokens, [" ".join(text)] * 4))
        assert found == [[wanted[word] for word in words]] * 4


def test_the_stemmer_in_c_finds_the_endings_that_the_one_in_python_finds() -> None:
    """Where PyStemmer can't be had the words are the same, so that a cache or a database can be shared."""
    text = " ".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "docs").rglob("*.md"))
    words = sorted(set(re.findall(r"[^\W\d_]+", text.lower())))
    assert isinstance(snowballstemmer.stemmer("english"), Stemmer.Stemmer)
    assert len(words) > 1_000
    for language, pure in (("english", EnglishStemmer()), ("german", GermanStemmer()), ("french", FrenchStemmer())):
        fast = Stemmer.Stemmer(language)
        assert [fast.stemWord(word) for word in words] == [pure.stemWord(word) for word in words]
