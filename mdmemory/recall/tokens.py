"""Text to search terms: folded, stop words off, stemmed; Chinese, Japanese and Korean as overlapping pairs. Floor 2."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from threading import Lock

import snowballstemmer

_CJK = r"\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_TERM = re.compile(rf"([{_CJK}]+)|([^\W_{_CJK}]+(?:['’][^\W_{_CJK}]+)*)")
_STOP = frozenset(
    """
    a about again am an and any are aren't as at be been being but by can can't could did didn't do does doesn't doing don't
    for from had has have having he her hers him his how i i'd i'll i'm i've if in into is isn't it it's its just let let's
    me my of off on or our ours please she should so some than that that's the their them then there these they this those
    to too us very was wasn't we we'd we're were what what's when where which who whom whose why will with won't would you
    you'd you're your yours
    """.split()
)
_STEMMER = snowballstemmer.stemmer("english")
_STEMMING = Lock()  # the stemmer keeps the word in itself


def tokens(text: str) -> list[str]:
    """The terms of a text, in order and with repetitions."""
    found: list[str] = []
    for cjk, word in _words(text):
        if word:
            term = _term(word)
            if term:
                found.append(term)
        else:
            found.extend(_pairs(cjk))
    return found


def document_tokens(text: str) -> list[str]:
    """The terms of a text that is searched: also each CJK character by itself, for a query of just one."""
    return tokens(text) + [char for cjk, _ in _words(text) if len(cjk) > 1 for char in cjk]


def terms_with_words(text: str) -> dict[str, str]:
    """Each term of a text once, with the word it came from: for people, who don't read stems."""
    found: dict[str, str] = {}
    for cjk, word in _words(text):
        for term in [_term(word)] if word else _pairs(cjk):
            if term:
                found.setdefault(term, word or term)
    return found


def _words(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = _TERM.findall(unicodedata.normalize("NFKC", text).casefold())
    return found


def _pairs(cjk: str) -> list[str]:
    return [cjk] if len(cjk) == 1 else [cjk[i : i + 2] for i in range(len(cjk) - 1)]


@lru_cache(maxsize=50_000)
def _term(word: str) -> str:
    word = word.replace("’", "'")
    owner = word.removesuffix("'s")
    if word in _STOP or owner in _STOP:
        return ""
    word = owner.replace("'", "")
    if not word.isascii() or word.isdigit():
        return word
    with _STEMMING:
        return str(_STEMMER.stemWord(word))
