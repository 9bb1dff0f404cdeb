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
# Of the tests that take longest, those of folders with processes of their own, `make test` runs
# this percentage: a fixed part. All of them together take longer than a change can wait.
PERCENT = {
    "tests/attacks/": 20,
    "tests/console/": 25,
    "tests/e2e/": 40,
    "tests/faults/": 25,
    "tests/services/": 70,
}
# Of the cases of a test with so many, it runs about half.
MANY_CASES = 8


def is_soak() -> bool:
    """Return whether everything is to be tried."""
    return hypothesis.settings.get_current_profile_name() == SOAK


def sampled(cases: Iterable[Case], one_in: int, first: int = 0) -> list[Case]:
    """Return one of every `one_in` cases, from the number `first` on; in `make soak` all."""
    every = list(cases)
    return every if is_soak() else every[first % one_in :: one_in]


def mark_left_out(tests: Sequence[pytest.Item], *, is_sample: bool) -> None:
    """Mark the tests and cases that are left out.

    Of tests for both databases one case is tried, of half of them that on PostgreSQL. Tests of
    storage itself, and of what many callers do at the same time, are tried on both.

    In a sample, as `make test` runs it, further ones are left out:

    - of folders in `PERCENT` a part of the tests is tried;
    - of tests with many cases, and without a sample of their own, about half are tried.
    """
    databases: defaultdict[str, set[str]] = defaultdict(set)
    cases: Counter[str] = Counter()
    for test in tests:
        databases[_function(test)].add(_database(test))
        cases[_function(test)] += 1
    seen: set[str] = set()
    for test in tests:
        function = _function(test)
        # The first case stays. Not every second one: parameters may have two values, in turn.
        is_half = cases[function] >= MANY_CASES and function in seen and _one_in(test) == 1
        if (
            (len(databases[function]) == len(DATABASES) and _is_other_database(test))
            or (is_sample and _is_beyond(function))
            or (is_sample and is_half and crc32(test.nodeid.encode()) % 2)
        ):
            test.add_marker(pytest.mark.thorough(left_out=True))
        seen.add(function)


def _is_other_database(test: pytest.Item) -> bool:
    """Return whether a case is for the database on which its test is not tried."""
    function, database = _function(test), _database(test)
    tried = DATABASES[crc32(function.encode()) % 2]
    return bool(database) and not function.startswith(ON_BOTH) and database != tried


def _is_beyond(function: str) -> bool:
    """Return whether a test is not of the part of its folder that is tried."""
    percent = next((part for folder, part in PERCENT.items() if function.startswith(folder)), 100)
    return crc32(function.encode()) % 100 >= percent


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
    left = [test for test in tests if _is_left_out(test)]
    return [*left, *_of_grids(test for test in tests if not _is_left_out(test))]


def _is_left_out(test: pytest.Item) -> bool:
    return any(mark.kwargs.get("left_out") for mark in test.iter_markers("thorough"))


def _one_in(test: pytest.Item) -> int:
    marks = test.iter_markers("thorough")
    return next((mark.kwargs["one_in"] for mark in marks if "one_in" in mark.kwargs), 1)


def _of_grids(tests: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    numbers: Counter[str] = Counter()
    for test in tests:
        function = _function(test)
        if numbers[function] % _one_in(test):
            yield test
        numbers[function] += 1


def examples(count: int) -> int:
    """Return how many examples hypothesis tries: `count`, in `make soak` ten times as many."""
    return count * _MORE_EXAMPLES if is_soak() else count
