"""A provider that is down for a minute: served all along, probed rarely, soon asked again."""

import asyncio

import pytest

from tests.faults import actions
from tests.faults.matrix import ENDPOINTS, FORMS, MODES
from tests.faults.scenario import request_body

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOWN_S = 60
EVERY_S = 2
OPENS_AFTER = 5


async def watch(at, path, stream, mode, down) -> None:
    models = at.fresh()
    clock = asyncio.get_running_loop().time
    began = clock()
    at.upstream.plays(models.first, down)
    at.upstream.plays(models.second, actions.answers(actions.OTHER))
    back_at = None
    is_down = True
    while clock() < began + DOWN_S + 40:
        if is_down and clock() >= began + DOWN_S:
            is_down = False
            at.upstream.plays(models.first, actions.answers())
        answer = await at.ask(path, request_body(path, mode, models, stream))
        served = answer.whole
        if served == actions.TEXT and back_at is None:
            back_at = clock()
        assert (served == actions.TEXT) == (back_at is not None), "went away again"
        await asyncio.sleep(EVERY_S)
    assert back_at is not None, "never came back"
    assert began + DOWN_S <= back_at < began + DOWN_S + 20
    while_down = [one for one in at.upstream.asked(models.first) if one.at < began + DOWN_S]
    assert OPENS_AFTER <= len(while_down) <= OPENS_AFTER + 6


@pytest.mark.thorough(one_in=3)
@ENDPOINTS
@FORMS
async def test_a_provider_that_resets_for_a_minute(at, path, stream):
    await watch(at, path, stream, "auto", actions.resets())


@pytest.mark.parametrize("mode", ["enabled", "strict"])
async def test_a_provider_that_fails_for_a_minute(at, mode):
    await watch(at, "/beta/v1/messages", True, mode, actions.fails(503))


async def test_many_at_once_send_one_probe(at):
    path = "/beta/v1/chat/completions"
    models = at.fresh()
    at.upstream.plays(models.first, actions.resets())
    at.upstream.plays(models.second, actions.answers())
    for _ in range(3):
        await at.ask(path, request_body(path, "auto", models))
    await asyncio.sleep(11)
    before = len(at.upstream.asked(models.first))
    at.upstream.plays(models.first, actions.says_nothing())
    asked = [at.ask(path, request_body(path, "auto", models)) for _ in range(20)]
    answers = await asyncio.gather(*asked)
    assert all(answer.whole == actions.TEXT for answer in answers)
    assert len(at.upstream.asked(models.first)) == before + 1


@MODES
async def test_the_only_model_left_is_asked_though_it_keeps_failing(at, mode):
    path = "/beta/v1/messages"
    models = at.fresh()
    at.upstream.plays(models.first, actions.resets())
    at.upstream.plays(models.second, actions.resets())
    for _ in range(6):
        assert (await at.ask(path, request_body(path, mode, models))).status == 502
    at.upstream.plays(models.second, actions.answers())
    answer = await at.ask(path, request_body(path, mode, models))
    assert answer.whole == actions.TEXT


async def test_refusals_open_no_breaker(at):
    path = "/beta/v1/messages"
    models = at.fresh()
    at.upstream.plays(models.first, actions.fails(400))
    at.upstream.plays(models.second, actions.answers())
    for _ in range(12):
        assert (await at.ask(path, request_body(path, "auto", models))).status == 400
    assert len(at.upstream.asked(models.first)) == 12


async def test_disabled_asks_a_model_whose_breaker_is_open(at):
    path = "/beta/v1/messages"
    models = at.fresh()
    at.upstream.plays(models.first, actions.resets())
    at.upstream.plays(models.second, actions.answers())
    for _ in range(3):
        await at.ask(path, request_body(path, "auto", models))
    at.upstream.plays(models.first, actions.answers(actions.OTHER))
    body = request_body(path, "auto", models) | {"fallback": "disabled"}
    assert (await at.ask(path, body)).whole == actions.OTHER


async def test_an_open_breaker_is_shown_to_the_operator(at):
    path = "/beta/v1/messages"
    models = at.fresh()
    at.upstream.plays(models.first, actions.resets())
    at.upstream.plays(models.second, actions.answers())
    for _ in range(3):
        await at.ask(path, request_body(path, "auto", models))
    (shown,) = [line for line in (await at.show("/metrics")).splitlines() if models.first in line]
    assert shown == f'gateway_breaker_open{{model="{models.first}",provider="openai"}} 1.0'
    ready = await at.show("/readyz?verbose")
    assert models.first in ready and "open" in ready
