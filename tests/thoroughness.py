"""How much of a large space of cases is tried: samples in `make test`, all of it in `make soak`.

Tests that use these are marked `thorough`, so that `make soak` runs them too. A sample is the same
in every run, and what it leaves out is chosen so that each kind of case stays in it.
"""

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

import hypothesis
import pytest

Case = TypeVar("Case")

SOAK = "soak"
_MORE_EXAMPLES = 10


def is_soak() -> bool:
    """Return whether everything is to be tried."""
    return hypothesis.settings.get_current_profile_name() == SOAK


def sampled(cases: Iterable[Case], one_in: int, first: int = 0) -> list[Case]:
    """Return one of every `one_in` cases, from the number `first` on; in `make soak` all."""
    every = list(cases)
    return every if is_soak() else every[first % one_in :: one_in]


def left_out(tests: Iterable[pytest.Item]) -> list[pytest.Item]:
    """Return the cases that are not tried, of tests marked `thorough(one_in=N)`.

    One case in N is. N is to have no factor in common with how many values those parameters have
    that change fastest: then each value of the slowest one stays, with every value of another.
    """
    numbers: Counter[str] = Counter()
    found = []
    for test in tests:
        mark = test.get_closest_marker("thorough")
        if mark is not None and "one_in" in mark.kwargs and not is_soak():
            function = test.nodeid.partition("[")[0]
            if numbers[function] % mark.kwargs["one_in"]:
                found.append(test)
            numbers[function] += 1
    return found


def examples(count: int) -> int:
    """Return how many examples hypothesis tries: `count`, in `make soak` ten times as many."""
    return count * _MORE_EXAMPLES if is_soak() else count
