"""The expected outcome of each fault: both endpoints over both dialects, both forms, the modes."""

import functools
from collections.abc import Awaitable, Callable, Iterable
from itertools import product
from typing import Any

import pytest

from tests.faults.scenario import CHAT, MESSAGES, Scenario
from tests.grid import each_row
from tests.thoroughness import sampled

STREAMS = (False, True)
DIALECTS = ("openai", "anthropic")
ALL_MODES = ("auto", "enabled", "strict")
CHAIN_MODES = ("enabled", "strict")

ENDPOINTS = pytest.mark.parametrize("path", [CHAT, MESSAGES], ids=["chat", "messages"])
FORMS = pytest.mark.parametrize("stream", STREAMS, ids=["whole", "stream"])
PROVIDERS = pytest.mark.parametrize("provider", DIALECTS)
MODES = pytest.mark.parametrize("mode", ALL_MODES)
CHAINS = pytest.mark.parametrize("mode", CHAIN_MODES)


def each_case(one_in: int, **values: Iterable[Any]) -> Callable[[Any], Any]:
    """Return a decorator: the test runs for all combinations, and reports all that fail.

    Each combination begins with an upstream that has been asked nothing, and leaves nothing behind.

    Args:
        one_in: one of so many combinations is tried; in `make soak` all. It has no factor in common
            with the number of values of the last parameter, so that each of these is tried.
        values: those of each parameter, of which the last changes fastest.
    """

    def decorate(test: Callable[..., Awaitable[None]]) -> Any:
        @functools.wraps(test)
        async def run(at: Scenario, **case: Any) -> None:
            try:
                await test(at, **case)
                await at.settled()
            finally:
                at.upstream.forget()

        rows = each_row(tuple(values), lambda: sampled(product(*values.values()), one_in))(run)
        return pytest.mark.thorough(rows)

    return decorate
