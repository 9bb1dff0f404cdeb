"""Callers who leave in the middle: everything ends within a second, and nothing is asked again."""

import asyncio

import pytest

from tests.faults import actions
from tests.faults.matrix import ALL_MODES, DIALECTS, ENDPOINTS, STREAMS, each_case
from tests.faults.scenario import request_body

pytestmark = pytest.mark.asyncio(loop_scope="module")

# What the first model does, what the second, and after how many seconds the caller leaves.
WINDOWS = {
    "before headers": (actions.says_nothing(), actions.answers(), 1),
    "before the first word": (actions.opens_and_stalls(), actions.answers(), 1),
    "in the middle": (actions.stalls(), actions.answers(), 1),
    "while a retry waits": (actions.fails(429, retry_after="20"), actions.says_nothing(), 1),
    "with two asked": (actions.says_nothing(), actions.says_nothing(), 12),
    "in the second": (actions.resets(), actions.stalls(), 4),
    "while it is continued": (actions.cuts(), actions.stalls(), 4),
    "when it continues nothing": (actions.cuts(), actions.says_nothing(), 4),
}


@ENDPOINTS
@each_case(11, provider=DIALECTS, stream=STREAMS, mode=ALL_MODES, window=WINDOWS)
async def test_a_caller_who_leaves_ends_everything(at, path, provider, stream, mode, window):
    first, second, seconds = WINDOWS[window]
    models = at.fresh(provider)
    at.upstream.plays(models.first, first)
    at.upstream.plays(models.second, second)
    retried = {"retry_policy": {"max_retries": 2}}
    talking = asyncio.ensure_future(
        at.ask(path, request_body(path, mode, models, stream, first=retried, second=retried))
    )
    await asyncio.wait({talking}, timeout=seconds)
    talking.cancel()
    await asyncio.gather(talking, return_exceptions=True)
    await at.settled()
    asked = len(at.upstream.seen)
    assert asked
    await asyncio.sleep(35)
    assert len(at.upstream.seen) == asked


@ENDPOINTS
async def test_callers_who_leave_are_no_failures_of_the_model(at, path):
    models = at.fresh()
    at.upstream.plays(models.first, actions.says_nothing())
    at.upstream.plays(models.second, actions.answers())
    for _ in range(8):
        talking = asyncio.ensure_future(at.ask(path, request_body(path, "auto", models)))
        await asyncio.wait({talking}, timeout=1)
        talking.cancel()
        await asyncio.gather(talking, return_exceptions=True)
    await at.settled()
    at.upstream.plays(models.first, actions.answers(actions.OTHER))
    answer = await at.ask(path, request_body(path, "auto", models))
    assert answer.whole == actions.OTHER
