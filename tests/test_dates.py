"""Dates in queries and files."""

from __future__ import annotations

from datetime import date

import pytest

from mdmemory.recall.dates import Part, asked_parts, in_words, parts_of, stated_date
from mdmemory.recall.entries import Document
from mdmemory.recall.ranking import LexicalIndex


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("what happened in May 2023?", [("month", 5), ("year", 2023)]),
        ("on 8 May, 2023", [("year", 2023), ("month", 5), ("day", 8)]),
        ("on March 3rd", [("month", 3), ("day", 3)]),
        ("am 3. August", [("month", 8), ("day", 3)]),
        ("seit Oktober", [("month", 10)]),
        ("2024-05-17", [("year", 2024), ("month", 5), ("day", 17)]),
        ("2024年5月17日", [("year", 2024), ("month", 5), ("day", 17)]),
        ("what did we do last summer", [("season", 2)]),
        ("in the fall of 2022", [("year", 2022), ("season", 3)]),
        ("冬の旅行", [("season", 0)]),
        ("may I march in? did prices fall?", []),
        ("version 2.2024, 2000 items, 1999.5, x2023", [("year", 2000)]),
        ("13 of 45", []),
    ],
)
def test_a_query_says_what_it_says_about_time(query: str, parts: list[Part]) -> None:
    """Years, months, days and seasons are read in several spellings; verbs and numbers that look like them are not."""
    assert set(asked_parts(query)) == set(parts)


def test_a_file_states_its_date() -> None:
    """The first full date counts; an impossible one, or a month alone, is none."""
    assert stated_date(["no date", "In May", "on 30 February 2024", "8 May 2023 and 2024-01-01"]) == date(2024, 1, 1)
    assert stated_date(["notes of 2023/05/08 (Mon) 02:30"]) == date(2023, 5, 8)
    assert stated_date([in_words(date(2023, 5, 8))]) == date(2023, 5, 8)
    assert stated_date(["v1.2.3", ""]) is None


@pytest.mark.parametrize(("text", "day"), [("2024-02-29", date(2024, 2, 29)), ("2023-02-29", None), ("0000-01-01", None)])
def test_a_date_alone_is_read_as_one_among_words(text: str, day: date | None) -> None:
    """A field that is a date and nothing else states it, if there is such a day."""
    assert stated_date([text]) == stated_date([f"on {text}."]) == day


def test_a_turkish_i_is_an_i() -> None:
    """Months and seasons are known in capitals, also in those of a Turkish keyboard, and with its i that has no dot."""
    assert stated_date(["5 APRİL 2024"]) == stated_date(["aprıl 5, 2024"]) == date(2024, 4, 5)
    assert set(asked_parts("last WİNTER, in Aprıl")) == {("season", 0), ("month", 4)}


def test_winter_is_one_season() -> None:
    """December belongs to the winter of January and February."""
    assert {dict(parts_of(date(2024, month, 1)))["season"] for month in (12, 1, 2)} == {0}


def test_the_month_asked_for_decides_between_equal_notes() -> None:
    """S5: of notes with the same words, the one of the month that the query names comes first and says so."""
    index = LexicalIndex()
    for month in range(1, 13):
        index.put(f"{month:02}.md", Document("board meeting", day=date(2024, month, 3)), 0)
    found = index.rank("board meeting in September", limit=12, now_ns=0, half_life_days=180)
    assert found[0].path == "09.md" and found[0].explain["date"] == "2024-09-03"
    assert "date" not in found[1].explain
