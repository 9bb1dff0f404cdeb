"""Regular expressions of operators, which must take linear time on any text. Pure.

`re` backtracks, so that some expressions take exponential time. A bound of the steps that a search
takes from one position follows from the tree of an expression. It exists if repeats have a maximum,
except for the last one, after which nothing can fail.
"""

import re

# The tree of an expression has no public form, and these modules no types.
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Sequence
from typing import Any, NamedTuple

# Maximum steps from one position of a text.
MAX_STEPS = 256
MAX_PATTERN = 500  # characters
_ONE = frozenset({sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN})


class _Cost(NamedTuple):
    """Bounds of part of an expression: ways to match, and steps of each."""

    ways: int
    steps: int


def compile_linear(pattern: str) -> re.Pattern[str]:
    """Compile a regular expression that takes linear time.

    Raises:
        ValueError: it is invalid, matches the empty text, or may take longer; the message states
            what to change.
    """
    if len(pattern) > MAX_PATTERN:
        raise ValueError(f"must have at most {MAX_PATTERN} characters")
    try:
        compiled = re.compile(pattern)
        tree = parser.parse(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"is no regular expression: {error}") from None
    if tree.getwidth()[0] == 0:
        raise ValueError("must not match the empty text")
    cost = _of_sequence(list(tree), is_last=True)
    if cost.ways * cost.steps > MAX_STEPS:
        raise ValueError(
            f"may take more than {MAX_STEPS} steps at each character of a text: repeat less "
            "({1,50}), or possessively ({1,50}+)"
        )
    return compiled


def _of_sequence(items: Sequence[tuple[Any, Any]], *, is_last: bool) -> _Cost:
    ways, steps = 1, 0
    for place, (operation, argument) in enumerate(items):
        cost = _of(operation, argument, is_last=is_last and place == len(items) - 1)
        ways, steps = min(ways * cost.ways, MAX_STEPS + 1), steps + cost.steps
    return _Cost(ways, max(1, steps))


def _of(operation: Any, argument: Any, *, is_last: bool) -> _Cost:
    if operation in _ONE or operation is sre.AT:
        return _Cost(1, 1)
    if operation is sre.SUBPATTERN:
        return _of_sequence(list(argument[3]), is_last=False)
    if operation is sre.BRANCH:
        costs = [_of_sequence(list(branch), is_last=False) for branch in argument[1]]
        return _Cost(sum(cost.ways for cost in costs), sum(cost.steps for cost in costs))
    if operation in (sre.ATOMIC_GROUP, sre.ASSERT, sre.ASSERT_NOT):
        inner = argument if operation is sre.ATOMIC_GROUP else argument[1]
        cost = _of_sequence(list(inner), is_last=False)
        return _Cost(1, cost.ways * cost.steps)
    if operation in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return _of_repeat(operation, *argument, is_last=is_last)
    raise ValueError("must not refer to groups")


def _of_repeat(operation: Any, fewest: int, most: int, inner: Any, *, is_last: bool) -> _Cost:
    items = list(inner)
    if most == sre.MAXREPEAT:
        if not is_last or len(items) != 1 or items[0][0] not in _ONE:
            raise ValueError(
                "may have * and + for single characters at its very end alone: repeat at most so "
                "often, such as {1,50}"
            )
        # Nothing follows that could fail, and what has been matched is not searched again.
        return _Cost(1, fewest + 1)
    cost = _of_sequence(items, is_last=False)
    if operation is sre.POSSESSIVE_REPEAT:
        return _Cost(1, most * cost.ways * cost.steps)
    ways = most - fewest + 1
    if cost.ways > 1:
        # More than the maximum from this many repeats on.
        most_ways = min(most, MAX_STEPS.bit_length())
        ways = sum(cost.ways**times for times in range(min(fewest, most_ways), most_ways + 1))
    return _Cost(ways, max(1, most * cost.steps))
