"""Text to search terms: folded, stop words off, stemmed; Chinese, Japanese and Korean as overlapping pairs. Floor 2."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from threading import Lock

from mdmemory.errors import ConfigError
from mdmemory.recall.words import regular_forms, stop_words

ENGLISH = ("english",)
_CJK = r"\u3005\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
_TERM = re.compile(rf"([{_CJK}]+)|([^\W_{_CJK}]+(?:['’][^\W_{_CJK}]+)*)")
_HAS_CJK, _CJK_RUN = re.compile(f"[{_CJK}]"), re.compile(f"[{_CJK}]{{2,}}")
_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_ASCII = bytes(ord(char.lower()) if char.isalnum() or char == "'" else 32 for char in map(chr, range(256)))
_NOT_WITHIN_A_WORD = re.compile(r"'(?:(?<![^\W_]')|(?![^\W_]))")
_STEMMING = Lock()  # a stemmer keeps the word in itself
_KEPT_WORDS = 100_000


def tokens(text: str, languages: tuple[str, ...] = ENGLISH) -> list[str]:
    """The terms of a text, in order and with repetitions."""
    terms = _terms(languages)
    folded = text if text.isascii() else _folded(text)
    if folded.isascii() or not _TERM.search(" ".join(_BEYOND_ASCII.findall(folded))):
        return list(filter(None, map(terms.__getitem__, _ascii_words(folded))))
    if _HAS_CJK.search(folded) is None:
        return list(filter(None, map(terms.__getitem__, _WORD.findall(folded))))
    found: list[str] = []
    for cjk, word in _TERM.findall(folded):
        if cjk:
            found.extend(_pairs(cjk))
        elif term := terms[word]:
            found.append(term)
    return found


def single_characters(text: str) -> list[str]:
    """Each CJK character of a longer run by itself: a text that is searched has these too, for a query of just one."""
    return [] if text.isascii() else list("".join(_CJK_RUN.findall(unicodedata.normalize("NFKC", text))))


def searched(text: str, languages: tuple[str, ...] = ENGLISH) -> list[str]:
    """The terms of a text that is searched, single characters last."""
    return tokens(text, languages) + single_characters(text)


def terms_with_words(text: str, languages: tuple[str, ...] = ENGLISH) -> dict[str, str]:
    """Each term of a text once, with the word it came from: for people, who don't read stems."""
    terms, found = _terms(languages), dict[str, str]()
    for cjk, word in _TERM.findall(_folded(text)):
        for term in [terms[word]] if word else _pairs(cjk):
            if term:
                found.setdefault(term, word or term)
    return found


def _folded(text: str) -> str:
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def _ascii_words(text: str) -> list[str]:
    """What `_WORD` finds in a folded text whose letters are ASCII alone, several times as fast."""
    spaced = text.replace("’", "'").encode("ascii", "replace").translate(_ASCII).decode()
    return (_NOT_WITHIN_A_WORD.sub(" ", spaced) if "'" in spaced else spaced).split()


def _pairs(cjk: str) -> list[str]:
    return [cjk] if len(cjk) == 1 else [cjk[i : i + 2] for i in range(len(cjk) - 1)]


class _Terms(dict[str, str]):
    """Folded words to their terms, each worked out once."""

    def __init__(self, languages: tuple[str, ...]) -> None:
        super().__init__()
        import snowballstemmer

        known = snowballstemmer.algorithms()
        if unknown := set(languages) - set(known):
            raise ConfigError(f"There is no stemmer for {', '.join(sorted(unknown))}; there is one for {', '.join(known)}.")
        self._stop = frozenset[str]().union(*map(stop_words, languages))
        self._forms = {form: base for language in reversed(languages) for form, base in regular_forms(language).items()}
        self._stems = [(language, snowballstemmer.stemmer(language).stemWord) for language in languages]

    def __missing__(self, word: str) -> str:
        if len(self) >= _KEPT_WORDS:
            self.clear()
        term = self[word] = self._term(word)
        return term

    def _term(self, word: str) -> str:
        word = word.replace("’", "'")
        owner = word.removesuffix("'s")
        if word in self._stop or owner in self._stop:
            return ""
        word = owner.replace("'", "")
        word = self._forms.get(word, word)
        stem = self._stem(word)
        return self._stem(self._forms[stem]) if stem in self._forms else stem  # the rose of `roses` goes where `rose` goes

    def _stem(self, word: str) -> str:
        if word.isdigit():
            return word
        with _STEMMING:
            for language, stem in self._stems:
                if word.isascii() or language != "english":  # it has no word with an accent, and would cut a name's end
                    word = stem(word)
        return word


@lru_cache(maxsize=16)
def _terms(languages: tuple[str, ...]) -> _Terms:
    return _Terms(languages)
