from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.memory.archive.dates import asks_for_latest, date_terms, dates_in_question
from tests.grid import each_row

# A Wednesday.
NOW_MS = int(datetime(2026, 3, 18, 23, 59, tzinfo=UTC).timestamp() * 1000)


def days(*numbers: int, month: str = "2026-03") -> list[str]:
    return [f"@{month}-{number:02}" for number in numbers]


@each_row(
    ("question", "terms"),
    [
        ("What did I say today?", days(18)),
        ("and Yesterday", days(17)),
        ("last week", days(*range(9, 16))),
        ("this week", days(*range(16, 23))),
        ("last weekend", days(14, 15)),
        ("last Wednesday", days(11)),
        ("on tuesday", days(17)),
        ("three days ago", days(15)),
        ("2 weeks ago", days(*range(1, 8))),
        ("last month", ["@2026-02"]),
        ("a month ago", ["@2026-02"]),
        ("3 months ago", ["@2025-12"]),
        ("last year", [f"@2025-{month:02}" for month in range(1, 13)]),
        ("in March", ["@march"]),
        ("in March 2024", ["@2024-03"]),
        ("on March 3rd", days(3)),
        ("3 May", ["@2025-05-03"]),
        ("the 3rd of May, 2024", ["@2024-05-03"]),
        ("May 3, 2024", ["@2024-05-03"]),
        ("2024-02-29", ["@2024-02-29"]),
        ("I may march to the sun", []),
        ("February 30 or 2026-02-30", []),
        ("Feb 29, 2025 or February 29", []),
        ("999 months ago", ["@1942-12"]),
    ],
)
def test_a_question_names_dates(question: str, terms: list[str]) -> None:
    assert sorted(dates_in_question(question, NOW_MS)) == sorted(terms)


def test_a_turn_bears_the_dates_that_questions_name() -> None:
    at_ms = int(datetime(2026, 3, 9, tzinfo=UTC).timestamp() * 1000)
    assert date_terms(at_ms) == ["@2026-03-09", "@2026-03", "@march"]
    for question in ("last week", "in March", "on March 9", "2026-03-09", "this year"):
        assert set(dates_in_question(question, NOW_MS)) & set(date_terms(at_ms))
    for question in ("this week", "in April", "on March 8", "last month", "last year"):
        assert not set(dates_in_question(question, NOW_MS)) & set(date_terms(at_ms))


def test_a_time_that_no_calendar_has_bears_none() -> None:
    assert date_terms(10**18) == date_terms(-(10**18)) == []


@pytest.mark.parametrize("question", ["Where did I eat most recently?", "my LATEST job"])
def test_a_question_may_want_the_last_of_several(question: str) -> None:
    assert asks_for_latest(question)
    assert not asks_for_latest("Where did I eat on the way to the snow?")


@given(st.text(st.sampled_from("0123456789 -/adyksgowmnthlstMarchMay,ofin")), st.integers(0, 2**41))
def test_any_text_may_be_asked(question: str, now_ms: int) -> None:
    assert all(term.startswith("@") for term in dates_in_question(question, now_ms))
