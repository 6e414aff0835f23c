"""Dates that a file states and a query asks for: a year, a month, a day, a season. Floor 2."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date

Part = tuple[str, int]
"""What of a date is meant: ("year", 2024), ("month", 5), ("day", 17), ("season", 2) of winter, spring, summer and autumn."""

_MONTHS = (
    "january february march april may june july august september october november december",
    "januar februar märz april mai juni juli august september oktober november dezember",
    "jan feb mar apr may jun jul aug sep oct nov dec",
)
_MONTH_OF = {name: number for names in _MONTHS for number, name in enumerate(names.split(), 1)} | {"sept": 9, "jänner": 1}
_SEASON_OF = {
    word: number
    for number, words in enumerate(("winter 冬", "spring frühling frühjahr 春", "summer sommer 夏", "autumn fall herbst 秋"))
    for word in words.split()
}
_FULL_NAMES = _MONTHS[0].title().split()
_INITIALS = "".join(sorted({name[0] for name in _MONTH_OF}))  # most words have another, and are passed over at once
_NAMES = f"(?=[{_INITIALS}])(?:{'|'.join(sorted(_MONTH_OF, key=len, reverse=True))})"
_ISO = re.compile(r"(?<!\d)(\d{4})[-/](\d{1,2})(?:[-/](\d{1,2}))?(?!\d)|(?<!\d)(?:(\d{4})年)?(\d{1,2})月(?:(\d{1,2})日)?")
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_DAY_MONTH = re.compile(rf"(?<![\w.])(\d{{1,2}})(?:st|nd|rd|th|\.)?(?: of)? ({_NAMES})\b\.?,?(?: (\d{{4}}))?", re.IGNORECASE)
_MONTH_DAY = re.compile(rf"\b({_NAMES})\b\.? (?:the )?(\d{{1,2}})(?:st|nd|rd|th)?(?!\d)(?:,? (\d{{4}}))?", re.IGNORECASE)
_MONTH_ALONE = re.compile(rf"\b({_NAMES})\b\.?(?:,? (\d{{4}}))?", re.IGNORECASE)
_ALSO_WORDS = frozenset("may mar march dec mai jan sep".split())  # a verb, or short enough to be something else
_BEFORE_MONTH = re.compile(
    r"\b(?:in|of|since|until|till|during|by|early|late|mid|last|this|next|im|seit|bis|ab|ende|anfang|mitte)[ -]$", re.I
)
_FOUR_DIGITS = re.compile(r"\d{4}")
_DIGIT = re.compile(r"\d")
_YEAR = re.compile(r"(?<![\w.,-])((?:19|20)\d\d)(?![\w%]|[.,]\d)(?:年)?|(?<!\d)((?:19|20)\d\d)年")
_SEASON = re.compile(r"\b(?:" + "|".join(word for word in _SEASON_OF if word.isascii() or len(word) > 1) + r")\b|[春夏秋冬]", re.I)
_ARTICLE = re.compile(r"\b(?:in|the|of|this|last|next|during|since|early|late)[ -]$", re.I)


def parts_of(day: date) -> tuple[Part, ...]:
    """Everything that a query can ask of a date."""
    return ("year", day.year), ("month", day.month), ("day", day.day), ("season", day.month % 12 // 3)


def asked_parts(query: str) -> dict[Part, None]:
    """What a query says about time, in order; `may` the verb and `fall` the verb say nothing."""
    found: dict[Part, None] = {}
    for year, month, day in _stated(query):
        for kind, value in (("year", year), ("month", month), ("day", day)):
            if value:
                found[kind, value] = None
    for match in _MONTH_ALONE.finditer(query):
        name = _folded(match[1])
        if name not in _ALSO_WORDS or (match[1][0].isupper() and (match[2] or _BEFORE_MONTH.search(query[: match.start()]))):
            found["month", _MONTH_OF[name]] = None
    for match in _YEAR.finditer(query):
        found["year", int(match[1] or match[2])] = None
    for match in _SEASON.finditer(query):
        word = _folded(match[0])
        if word not in ("fall", "spring") or _ARTICLE.search(query[: match.start()]):
            found["season", _SEASON_OF[word]] = None
    return found


def stated_date(texts: Iterable[str]) -> date | None:
    """The first full date that one of the texts states."""
    for text in filter(_FOUR_DIGITS.search, texts):
        is_whole = _ISO_DAY.fullmatch(text)  # as most files state it: there is no other date in the text to look for
        for year, month, day in [map(int, text.split("-"))] if is_whole else _stated(text):
            if year and day:
                try:
                    return date(year, month, day)
                except ValueError:
                    continue
    return None


def in_words(day: date) -> str:
    """A date as people search for it: `17 May 2024`."""
    return f"{day.day} {_FULL_NAMES[day.month - 1]} {day.year}"


def _folded(word: str) -> str:
    """A word as the tables have it; a pattern that ignores case takes a Turkish i, with or without its dot, for an i."""
    return word.casefold().replace("ı", "i").replace("i\u0307", "i")


def _stated(text: str) -> Iterator[tuple[int, int, int]]:
    """Year, month and day wherever a month stands beside a day or year; 0 for what isn't said."""
    if _DIGIT.search(text) is None:
        return
    for match in _ISO.finditer(text):
        year, month, day = (int(part or 0) for part in (match[1] or match[4], match[2] or match[5], match[3] or match[6]))
        if 1 <= month <= 12 and day <= 31:
            yield year, month, day
    for match in _DAY_MONTH.finditer(text):
        if 1 <= int(match[1]) <= 31:
            yield int(match[3] or 0), _MONTH_OF[_folded(match[2])], int(match[1])
    for match in _MONTH_DAY.finditer(text):
        if 1 <= int(match[2]) <= 31:
            yield int(match[3] or 0), _MONTH_OF[_folded(match[1])], int(match[2])
