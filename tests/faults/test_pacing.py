"""How often, how soon and for how long: waits, deadlines, budgets. Seconds are the loop's."""

import asyncio
from itertools import pairwise

import pytest

from tests.faults import actions
from tests.faults.matrix import CHAINS, ENDPOINTS, FORMS, MODES, PROVIDERS
from tests.faults.scenario import request_body

pytestmark = pytest.mark.asyncio(loop_scope="module")

RETRIED = {"first": {"retry_policy": {"max_retries": 2}}}


def gaps(exchanges):
    return [after.at - before.at for before, after in pairwise(exchanges)]


@ENDPOINTS
@PROVIDERS
@FORMS
@pytest.mark.parametrize("mode", ["auto", "strict"])
async def test_a_wait_the_provider_asks_for_is_kept(at, path, provider, stream, mode):
    models = at.fresh(provider)
    at.upstream.plays(models.first, actions.fails(429, retry_after="2"), actions.answers())
    answer = await at.ask(path, request_body(path, mode, models, stream, **RETRIED))
    assert answer.whole == actions.TEXT
    (gap,) = gaps(at.upstream.seen)
    assert 1.8 <= gap < 3


@ENDPOINTS
@FORMS
async def test_a_wait_beyond_the_steps_time_is_not_begun(at, path, stream):
    models = at.fresh()
    at.upstream.plays(models.first, actions.fails(429, retry_after="9"))
    at.upstream.plays(models.second, actions.answers())
    body = request_body(
        path,
        "strict",
        models,
        stream,
        first={"retry_policy": {"max_retries": 2}, "timeout_ms": 5000},
    )
    answer = await at.ask(path, body)
    assert answer.whole == actions.TEXT
    assert answer.took < 1
    assert len(at.upstream.seen) == 2


@ENDPOINTS
@FORMS
@pytest.mark.parametrize("retry_after", ["", "0", "1", "2", "soon"])
async def test_429_for_ever_is_asked_few_times(at, path, stream, retry_after):
    models = at.fresh()
    for model in (models.first, models.second):
        at.upstream.plays(model, actions.fails(429, retry_after=retry_after))
    answer = await at.ask(path, request_body(path, "auto", models, stream))
    assert answer.status == 429
    assert int(answer.headers["Retry-After"]) >= 0
    assert answer.headers["x-should-retry"] == "false"
    assert len(at.upstream.seen) <= 6
    # A provider that asks for no wait gets none; then the bound holds for each model.
    for model in (models.first, models.second) if retry_after == "0" else ("",):
        times = [one.at for one in at.upstream.seen if one.model.startswith(model)]
        assert all(sum(start <= at < start + 3 for at in times) <= 4 for start in times)


@ENDPOINTS
@FORMS
async def test_a_single_model_at_its_limit_is_asked_three_times(at, path, stream):
    models = at.fresh()
    at.upstream.plays(models.first, actions.fails(429))
    body = request_body(path, "auto", models, stream) | {"model": models.alone}
    answer = await at.ask(path, body)
    assert answer.status == 429
    assert len(at.upstream.seen) == 3


async def test_delays_grow_by_the_factor(at):
    models = at.fresh()
    at.upstream.plays(models.first, actions.fails(503))
    at.upstream.plays(models.second, actions.answers())
    policy = {"max_retries": 4, "backoff_factor": 3}
    body = request_body("/beta/v1/messages", "strict", models, first={"retry_policy": policy})
    assert (await at.ask("/beta/v1/messages", body)).status == 200
    # A second at least is what a provider without a word about it is taken to want.
    waited = gaps(at.upstream.asked(models.first))
    assert len(waited) == 4
    for gap, delay in zip(waited[1:], [1.5, 4.5, 13.5], strict=True):
        assert delay <= gap < delay + 0.5


async def test_no_delay_is_above_30_seconds(at):
    models = at.fresh()
    at.upstream.plays(models.first, *[actions.fails(503)] * 2, actions.answers())
    step = {"retry_policy": {"max_retries": 2, "backoff_factor": 1e6}}
    body = request_body("/beta/v1/messages", "strict", models, first=step)
    assert (await at.ask("/beta/v1/messages", body)).whole == actions.TEXT
    assert 30 <= max(gaps(at.upstream.seen)) < 31


@ENDPOINTS
@FORMS
@CHAINS
async def test_the_chain_s_deadline_holds_before_first_content(at, path, stream, mode):
    models = at.fresh()
    for model in (models.first, models.second):
        at.upstream.plays(model, actions.says_nothing())
    body = request_body(path, mode, models, stream, config={"global_timeout_ms": 4000})
    answer = await at.ask(path, body)
    assert answer.status == 504
    assert 4 <= answer.took < 5


@ENDPOINTS
@PROVIDERS
@CHAINS
async def test_the_time_of_the_whole_chain_is_kept_in_a_stream(at, path, provider, mode):
    models = at.fresh(provider)
    for model in (models.first, models.second):
        at.upstream.plays(model, actions.stalls())
    body = request_body(path, mode, models, stream=True, config={"global_timeout_ms": 4000})
    answer = await at.ask(path, body)
    assert answer.text == "One two three"
    assert answer.error is not None
    assert answer.error["code"] in ("timeout", "upstream_timeout")
    assert 4 <= answer.took < 5


@ENDPOINTS
@FORMS
async def test_a_steps_time_holds_its_retries_too(at, path, stream):
    models = at.fresh()
    at.upstream.plays(models.first, actions.fails(503, retry_after="2"))
    at.upstream.plays(models.second, actions.answers())
    step = {"retry_policy": {"max_retries": 10}, "timeout_ms": 5000}
    answer = await at.ask(path, request_body(path, "strict", models, stream, first=step))
    assert answer.whole == actions.TEXT
    assert answer.took < 5.5
    assert len(at.upstream.asked(models.first)) <= 3


@ENDPOINTS
async def test_a_steps_time_ends_with_the_first_word_of_a_stream(at, path):
    models = at.fresh()
    at.upstream.plays(models.first, actions.dawdles(seconds=2))
    body = request_body(path, "strict", models, stream=True, first={"timeout_ms": 3000})
    answer = await at.ask(path, body)
    assert answer.whole == actions.TEXT
    assert answer.took > 3
    assert len(at.upstream.seen) == 1


@ENDPOINTS
async def test_a_steps_time_holds_all_of_a_whole_answer(at, path):
    models = at.fresh()
    at.upstream.plays(models.first, actions.dawdles(seconds=2))
    at.upstream.plays(models.second, actions.answers(actions.OTHER))
    body = request_body(path, "strict", models, first={"timeout_ms": 3000})
    answer = await at.ask(path, body)
    assert answer.whole == actions.OTHER
    assert 3 <= answer.took < 4


@ENDPOINTS
@FORMS
@pytest.mark.parametrize("budget", [0, 1, 3])
async def test_retries_of_all_steps_share_a_budget(at, path, stream, budget):
    models = at.fresh()
    for model in (models.first, models.second):
        at.upstream.plays(model, actions.fails(503))
    step = {"retry_policy": {"max_retries": 2}}
    config = {"max_total_retries": budget}
    body = request_body(path, "strict", models, stream, first=step, second=step, config=config)
    answer = await at.ask(path, body)
    assert answer.status == 502
    assert len(at.upstream.seen) == 2 + budget
    assert len(at.upstream.asked(models.first)) == 1 + min(budget, 2)


@ENDPOINTS
@MODES
async def test_streaming_changes_neither_order_nor_timing(at, path, mode):
    asked = []
    for stream in (False, True):
        models = at.fresh()
        at.upstream.plays(
            models.first, actions.fails(503), actions.fails(429), actions.says_nothing()
        )
        at.upstream.plays(models.second, actions.fails(500), actions.answers())
        body = request_body(path, mode, models, stream, first={"retry_policy": {"max_retries": 2}})
        at.upstream.seen.clear()
        await at.ask(path, body)
        began = at.upstream.seen[0].at
        asked.append([(one.model[:5], round(one.at - began)) for one in at.upstream.seen])
        await asyncio.sleep(0)
    assert asked[0] == asked[1]


@ENDPOINTS
@FORMS
async def test_disabled_is_one_attempt(at, path, stream):
    models = at.fresh()
    at.upstream.plays(models.first, actions.fails(503))
    body = request_body(path, "auto", models, stream) | {"fallback": "disabled"}
    answer = await at.ask(path, body)
    assert answer.status == 502
    assert len(at.upstream.seen) == 1
