"""Dates as people write them in files: a year, a month or a day, each of which covers its whole span. Floor 1, pure."""

from __future__ import annotations

import calendar
import re
from datetime import date

_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?![\d-])")


def first_of(text: str | None) -> date | None:
    """The first day of what is written; None where it is no date."""
    return _day(text, last=False)


def last_of(text: str | None) -> date | None:
    """The last day of what is written; None where it is no date."""
    return _day(text, last=True)


def _day(text: str | None, *, last: bool) -> date | None:
    match = _DATE.match(text.strip()) if text else None
    if match is None:
        return None
    year, month = int(match[1]), int(match[2] or (12 if last else 1))
    try:
        return date(year, month, int(match[3] or (calendar.monthrange(year, month)[1] if last else 1)))
    except (ValueError, calendar.IllegalMonthError):
        return None
