"""How much of a large space of cases is tried: samples in `make test`, all of it in `make soak`.

Tests that use these are marked `thorough`, so that `make soak` runs them too. A sample is the same
in every run, and what it leaves out is chosen so that each kind of case stays in it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar
from zlib import crc32

import hypothesis
import pytest

Case = TypeVar("Case")

SOAK = "soak"
DATABASES = ("postgresql", "sqlite")
ON_BOTH = (
    "tests/services/batches/",
    "tests/services/common/storage/",
    "tests/services/memory/locks/",
)
_MORE_EXAMPLES = 10


def is_soak() -> bool:
    """Return whether everything is to be tried."""
    return hypothesis.settings.get_current_profile_name() == SOAK


def sampled(cases: Iterable[Case], one_in: int, first: int = 0) -> list[Case]:
    """Return one of every `one_in` cases, from the number `first` on; in `make soak` all."""
    every = list(cases)
    return every if is_soak() else every[first % one_in :: one_in]


def mark_other_databases(tests: Sequence[pytest.Item]) -> None:
    """Mark the cases that are not tried of tests for both databases.

    Of each such test one is tried, of half of them that on PostgreSQL. Tests of storage itself, and
    of what many callers do at the same time, are tried on both.
    """
    databases: defaultdict[str, set[str]] = defaultdict(set)
    for test in tests:
        databases[_function(test)].add(_database(test))
    for test in tests:
        function, database = _function(test), _database(test)
        if not database or len(databases[function]) < len(DATABASES):
            continue
        if not function.startswith(ON_BOTH) and database != DATABASES[crc32(function.encode()) % 2]:
            test.add_marker(pytest.mark.thorough(other_database=True))


def _function(test: pytest.Item) -> str:
    return test.nodeid.partition("[")[0]


def _database(test: pytest.Item) -> str:
    """Return the database that a case is for, or ""."""
    values = test.callspec.params.values() if hasattr(test, "callspec") else ()
    return next((value for value in values if isinstance(value, str) and value in DATABASES), "")


def left_out(tests: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Return the cases of grids that are not tried; in `make soak` none.

    Of tests marked `thorough(one_in=N)` one case in N is tried. N is to have no factor in common
    with how many values those parameters have that change fastest: then each value of the slowest
    one stays, with every value of another.
    """
    if is_soak():
        return []
    databases = [test for test in tests if _is_of_other_database(test)]
    rest = [test for test in tests if not _is_of_other_database(test)]
    return [*databases, *_of_grids(rest)]


def _is_of_other_database(test: pytest.Item) -> bool:
    return any(mark.kwargs.get("other_database") for mark in test.iter_markers("thorough"))


def _of_grids(tests: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    numbers: Counter[str] = Counter()
    for test in tests:
        marks = test.iter_markers("thorough")
        one_in = next((mark.kwargs["one_in"] for mark in marks if "one_in" in mark.kwargs), 1)
        function = _function(test)
        if numbers[function] % one_in:
            yield test
        numbers[function] += 1


def examples(count: int) -> int:
    """Return how many examples hypothesis tries: `count`, in `make soak` ten times as many."""
    return count * _MORE_EXAMPLES if is_soak() else count
