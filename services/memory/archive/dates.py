"""Dates as search terms: those of turns, and those that a question names. Pure.

A turn is indexed by its words, its day, its month and its month of any year. "Last week" in a
question means seven days, "in March" that month of any year. Dates in questions are recognized in
English and in ISO 8601. Days are in UTC, since the user's time zone is unknown.
"""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

MONTHS = (
    "january february march april may june july august september october november december"
).split()
WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_NUMBERS = {word: n for n, word in enumerate("a two three four five six seven".split(), start=1)}

_MONTH = "|".join(MONTHS)
_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"
_COUNT = rf"(\d{{1,3}}|{'|'.join(_NUMBERS)})"
# "may" and "march" are verbs too, and count as months only after one of these words.
_LEADS = "in|of|since|during|last|this|early|late|mid|back in"
_LATEST = re.compile(r"\b(?:most recent(?:ly)?|latest|lately|last time|(?:right )?now|currently)\b")


def date_terms(at_ms: int) -> list[str]:
    """Return the date terms of a time in Unix milliseconds.

    No word of a text equals a date term. A time outside of the years 1 to 9999 has none.
    """
    try:
        day = datetime.fromtimestamp(at_ms / 1000, UTC).date()
    except (OverflowError, OSError, ValueError):
        return []
    return [_day(day), _month_of(day), _month(day.month)]


def dates_in_question(question: str, now_ms: int) -> list[str]:
    """Return the date terms of the dates that a question names, each once, in order.

    Args:
        question: any text.
        now_ms: time of the question, in Unix milliseconds.
    """
    today = datetime.fromtimestamp(now_ms / 1000, UTC).date()
    text = question.casefold()
    found: dict[str, None] = {}
    for pattern, dated in _FORMS:
        for match in pattern.finditer(text):
            try:
                found.update(dict.fromkeys(dated(match, today)))
            except (ValueError, OverflowError):
                continue  # an impossible date, such as February 30th
        # The match of one pattern is hidden from the next: a day is not also its month.
        text = pattern.sub(" ", text)
    return list(found)


def asks_for_latest(question: str) -> bool:
    """Return whether a question asks for the newest of several mentions."""
    return _LATEST.search(question.casefold()) is not None


def _day(day: date) -> str:
    return f"@{day.isoformat()}"


def _month(month: int) -> str:
    return f"@{MONTHS[month - 1]}"


def _month_of(day: date) -> str:
    return f"@{day:%Y-%m}"


def _days(first: date, count: int) -> list[str]:
    return [_day(first + timedelta(days)) for days in range(count)]


def _iso(match: re.Match[str], _today: date) -> list[str]:
    return [_day(date.fromisoformat(match[0]))]


def _named(day: int, month: str, year: str | None, today: date) -> list[str]:
    """Return a day of a year; without a year, of the twelve months up to today."""
    number = MONTHS.index(month) + 1
    if year:
        return [_day(date(int(year), number, day))]
    this_years = date(today.year, number, day)
    return [_day(this_years if this_years <= today else this_years.replace(year=today.year - 1))]


def _month_of_year(match: re.Match[str], _today: date) -> list[str]:
    return [f"@{int(match[2]):04}-{MONTHS.index(match[1]) + 1:02}"]


def _weekday(match: re.Match[str], today: date) -> list[str]:
    """Return the last such weekday before today."""
    back = (today.weekday() - WEEKDAYS.index(match[1]) - 1) % 7 + 1
    return [_day(today - timedelta(back))]


def _period(match: re.Match[str], today: date) -> list[str]:
    last = match[1] != "this"
    match match[2]:
        case "week":
            monday = today - timedelta(today.weekday())
            return _days(monday - timedelta(7) if last else monday, 7)
        case "weekend":
            saturday = today - timedelta((today.weekday() + 2) % 7 if last else 0)
            return _days(saturday, 2)
        case "month":
            first = today.replace(day=1)
            return [_month_of(first - timedelta(1) if last else first)]
        case _:
            year = today.year - 1 if last else today.year
            return [f"@{year:04}-{month:02}" for month in range(1, 13)]


def _ago(match: re.Match[str], today: date) -> list[str]:
    """Return the day so many days ago, the seven days around it for weeks, the month for months."""
    count = _NUMBERS.get(match[1]) or int(match[1])
    match match[2]:
        case "day":
            return [_day(today - timedelta(count))]
        case "week":
            return _days(today - timedelta(7 * count + 3), 7)
        case _:
            months = today.year * 12 + today.month - 1 - count
            return [f"@{months // 12:04}-{months % 12 + 1:02}"]


_FORMS: list[tuple[re.Pattern[str], Callable[[re.Match[str], date], list[str]]]] = [
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), _iso),
    (
        re.compile(rf"\b{_DAY}(?: of)? ({_MONTH})\b(?:,? (\d{{4}})\b)?"),
        lambda match, today: _named(int(match[1]), match[2], match[3], today),
    ),
    (
        re.compile(rf"\b({_MONTH}) {_DAY}\b(?!\d)(?:,? (\d{{4}})\b)?"),
        lambda match, today: _named(int(match[2]), match[1], match[3], today),
    ),
    (re.compile(rf"\b({_MONTH}),? (?:of )?(\d{{4}})\b"), _month_of_year),
    (
        re.compile(rf"\b(?:{_LEADS}) ({_MONTH})\b(?! ?\d)"),
        lambda match, _: [_month(MONTHS.index(match[1]) + 1)],
    ),
    (re.compile(r"\btoday\b"), lambda _, today: [_day(today)]),
    (re.compile(r"\byesterday\b"), lambda _, today: [_day(today - timedelta(1))]),
    (re.compile(rf"\b(?:last|on) ({'|'.join(WEEKDAYS)})\b"), _weekday),
    (re.compile(r"\b(last|previous|this) (week|weekend|month|year)\b"), _period),
    (re.compile(rf"\b{_COUNT} (day|week|month)s? ago\b"), _ago),
]
