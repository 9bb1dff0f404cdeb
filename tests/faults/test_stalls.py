"""Streams that stop for 40 seconds and longer after their first words, with the usual limits."""

import asyncio
import logging

import pytest
import pytest_asyncio

from tests.faults import actions
from tests.faults.matrix import ENDPOINTS, MODES, PROVIDERS
from tests.faults.scenario import MESSAGES, request_body, scenario

pytestmark = pytest.mark.asyncio(loop_scope="module")

STALLS = pytest.mark.parametrize("seconds", [40, 90, 280])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory):
    """Return a gateway with the default limits on silence."""
    folder = tmp_path_factory.mktemp("gateway")
    async with scenario(folder, stream_idle_s=300, step_timeout_s=600) as one:
        yield one


@pytest.mark.thorough(one_in=5)
@ENDPOINTS
@PROVIDERS
@MODES
@STALLS
async def test_another_model_soon_continues(at, path, provider, mode, seconds):
    models = at.fresh(provider)
    at.upstream.plays(models.first, actions.dawdles(seconds))
    at.upstream.plays(models.second, actions.answers())
    answer = await at.ask(path, request_body(path, mode, models, stream=True))
    assert answer.whole == actions.TEXT
    assert 15 < answer.took < 35
    assert len(at.upstream.asked(models.first)) == 1


@ENDPOINTS
@STALLS
async def test_a_model_without_another_is_waited_for(at, path, seconds):
    models = at.fresh()
    at.upstream.plays(models.first, actions.dawdles(seconds))
    body = request_body(path, "auto", models, stream=True) | {"model": models.alone}
    answer = await at.ask(path, body)
    assert answer.whole == actions.TEXT
    assert answer.took >= seconds


@ENDPOINTS
async def test_a_usually_slow_model_is_waited_for(at, path):
    models = at.fresh()
    at.upstream.plays(models.first, actions.dawdles(20))
    at.upstream.plays(models.second, actions.answers())
    body = request_body(path, "auto", models, stream=True)
    for _ in range(5):
        assert (await at.ask(path, body)).whole == actions.TEXT
    at.upstream.plays(models.first, actions.dawdles(70))
    assert (await at.ask(path, body)).whole == actions.TEXT
    assert at.upstream.asked(models.second) == []


@ENDPOINTS
async def test_a_usually_quick_model_is_left_sooner(at, path):
    models = at.fresh()
    at.upstream.plays(models.first, actions.answers())
    at.upstream.plays(models.second, actions.answers())
    body = request_body(path, "auto", models, stream=True)
    for _ in range(5):
        await at.ask(path, body)
    at.upstream.plays(models.first, actions.stalls())
    answer = await at.ask(path, body)
    assert answer.whole == actions.TEXT
    assert answer.took < 16


@ENDPOINTS
async def test_own_gaps_of_a_stream_lengthen_its_time(at, path):
    models = at.fresh()
    at.upstream.plays(models.first, actions.pauses(10, 38, 90))
    at.upstream.plays(models.second, actions.answers())
    answer = await at.ask(path, request_body(path, "auto", models, stream=True))
    assert answer.whole == actions.TEXT
    assert at.upstream.asked(models.second) == []


@ENDPOINTS
async def test_a_steps_time_bounds_each_silence(at, path):
    models = at.fresh()
    at.upstream.plays(models.first, actions.stalls())
    at.upstream.plays(models.second, actions.answers())
    body = request_body(path, "strict", models, stream=True, first={"timeout_ms": 5000})
    answer = await at.ask(path, body)
    assert answer.whole == actions.TEXT
    assert 5 <= answer.took < 6


@ENDPOINTS
async def test_a_steps_time_bounds_the_last_ones_silence(at, path):
    models = at.fresh()
    at.upstream.plays(models.first, actions.fails(503))
    at.upstream.plays(models.second, actions.stalls())
    body = request_body(path, "strict", models, stream=True, second={"timeout_ms": 5000})
    answer = await at.ask(path, body)
    assert answer.error is not None and answer.error["code"] == "upstream_timeout"
    assert "stopped in the middle" in answer.error["message"]
    assert 5 <= answer.took < 6


@pytest.mark.thorough(one_in=5)
@ENDPOINTS
@PROVIDERS
async def test_a_stream_may_ping_for_as_long_as_a_model_may_think(at, path, provider):
    models = at.fresh(provider)
    at.upstream.plays(models.first, actions.pings(590))
    body = request_body(path, "auto", models, stream=True) | {"model": models.alone}
    answer = await at.ask(path, body)
    assert answer.whole == actions.TEXT
    assert answer.took >= 590


@pytest.mark.thorough(one_in=5)
@ENDPOINTS
@PROVIDERS
async def test_a_stream_of_pings_alone_ends(at, path, provider):
    models = at.fresh(provider)
    at.upstream.plays(models.first, actions.pings(100_000))
    body = request_body(path, "auto", models, stream=True) | {"model": models.alone}
    answer = await at.ask(path, body)
    assert answer.error is not None and answer.error["code"] == "upstream_timeout"
    assert "stopped in the middle" in answer.error["message"]
    assert 600 <= answer.took < 610


@pytest.mark.thorough(one_in=2)
@ENDPOINTS
async def test_another_model_goes_on_after_a_stream_of_pings(at, path):
    models = at.fresh()
    at.upstream.plays(models.first, actions.pings(100_000))
    at.upstream.plays(models.second, actions.answers())
    answer = await at.ask(path, request_body(path, "auto", models, stream=True))
    assert answer.whole == actions.TEXT
    assert 300 <= answer.took < 310


@ENDPOINTS
async def test_the_silent_model_is_not_asked_again(at, path):
    models = at.fresh("openai")
    at.upstream.plays(models.first, actions.stalls())
    at.upstream.plays(models.second, actions.fails(503))
    body = request_body(path, "strict", models, stream=True)
    steps = body["fallback_config"]["steps"]
    steps.append({"step_id": "three", "model": models.names[0]})
    answer = await at.ask(path, body)
    assert answer.error is not None
    assert len(at.upstream.asked(models.first)) == 1


@ENDPOINTS
async def test_a_silent_model_alone_in_its_chain_is_waited_for(at, path):
    models = at.fresh("openai")
    at.upstream.plays(models.first, actions.dawdles(100))
    body = request_body(path, "enabled", models, stream=True)
    body["fallback_config"]["steps"] = [{"step_id": "same", "model": models.names[0]}]
    answer = await at.ask(path, body)
    assert answer.whole == actions.TEXT
    assert len(at.upstream.seen) == 1


@ENDPOINTS
async def test_the_access_log_names_who_finished(at, path, caplog):
    models = at.fresh("openai")
    at.upstream.plays(models.first, actions.stalls())
    at.upstream.plays(models.second, actions.answers())
    caplog.set_level(logging.INFO, "facade.access")
    answer = await at.ask(path, request_body(path, "auto", models, stream=True))
    assert answer.whole == actions.TEXT
    assert answer.headers["x-gateway-model"] == models.auto
    await asyncio.sleep(1)
    line = [one for one in caplog.records if one.name == "facade.access"][-1]
    assert (line.served_model, line.provider) == (models.names[1], "anthropic")
    assert (line.begun_by_model, line.begun_by_provider) == (models.auto, "openai")


async def test_a_whole_answer_that_is_read_as_a_stream_is_too(at):
    """Chats over OpenAI do not say which stop sequence was met: the gateway looks for it."""
    models = at.fresh("openai")
    at.upstream.plays(models.first, actions.stalls())
    at.upstream.plays(models.second, actions.answers())
    body = request_body(MESSAGES, "strict", models) | {"stop_sequences": ["nine"]}
    answer = await at.ask(MESSAGES, body)
    assert answer.whole == actions.TEXT
    assert answer.took < 35
