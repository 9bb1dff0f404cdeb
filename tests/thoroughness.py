"""How much of a large space of cases is tried: samples in `make test`, all of it in `make soak`.

Tests that use these are marked `thorough`, so that `make soak` runs them too. A sample is the same
in every run, and what it leaves out is chosen so that each kind of case stays in it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
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
    """Return the cases of grids that are not tried; in `make soak` none.

    Of tests marked `thorough(one_in=N)` one case in N is tried. N is to have no factor in common
    with how many values those parameters have that change fastest: then each value of the slowest
    one stays, with every value of another.
    """
    return [] if is_soak() else [*_of_grids(tests)]


def _of_grids(tests: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    numbers: Counter[str] = Counter()
    for test in tests:
        marks = test.iter_markers("thorough")
        one_in = next((mark.kwargs["one_in"] for mark in marks if "one_in" in mark.kwargs), 1)
        function = test.nodeid.partition("[")[0]
        if numbers[function] % one_in:
            yield test
        numbers[function] += 1


def examples(count: int) -> int:
    """Return how many examples hypothesis tries: `count`, in `make soak` ten times as many."""
    return count * _MORE_EXAMPLES if is_soak() else count
