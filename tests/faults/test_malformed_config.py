"""A malformed `fallback_config` is 400 with the field's path, before any provider is asked."""

from typing import Any

import pytest

from tests.faults import actions
from tests.faults.matrix import CHAIN_MODES, CHAINS, ENDPOINTS, FORMS, each_case
from tests.faults.scenario import CHAT, MESSAGES, request_body

pytestmark = pytest.mark.asyncio(loop_scope="module")

GONE: Any = object()  # the key is left out
STEP = "steps[0]"
ID = "s"


def put(config, path, value):
    """Set what is at a path such as `steps[0].model`; give the whole."""
    if not path:
        return value
    *way, last = path.replace("[", ".[").split(".")
    place = config
    for key in way:
        key = int(key[1:-1]) if key[0] == "[" else key
        if isinstance(place, dict):
            place.setdefault(key, {})
        place = place[key]
    if value is GONE:
        del place[last]
    elif last[0] == "[":
        place[int(last[1:-1])] = value
    else:
        place[last] = value
    return config


# Where something else than a good value is put, what, and the path that is told
# when it is not the same.
FAULTS: list[tuple[str, Any, str | None]] = [
    ("", None, None),
    ("", "sequential", None),
    ("", [], None),
    ("weird", 1, None),
    ("strategy", GONE, None),
    ("strategy", "sequential", None),
    ("strategy.mode", GONE, None),
    ("strategy.mode", "parallel", None),
    ("strategy.mode", "SEQUENTIAL", None),
    ("strategy.mode", None, None),
    ("strategy.weird", 1, None),
    ("global_timeout_ms", 0, None),
    ("global_timeout_ms", -1, None),
    ("global_timeout_ms", "100", None),
    ("global_timeout_ms", 1.5, None),
    ("global_timeout_ms", 2**32, None),
    ("max_total_retries", -1, None),
    ("max_total_retries", True, None),
    ("steps", GONE, None),
    ("steps", None, None),
    ("steps", [], None),
    ("steps", {}, None),
    ("steps", [{"step_id": f"s{number}", "model": "x"} for number in range(17)], None),
    ("steps", ["gpt"], STEP),
    (f"{STEP}.step_id", GONE, None),
    (f"{STEP}.step_id", "", None),
    (f"{STEP}.step_id", 1, None),
    ("steps[1].step_id", ID, None),
    (f"{STEP}.model", GONE, None),
    (f"{STEP}.model", "", None),
    (f"{STEP}.model", None, None),
    (f"{STEP}.model", "nobody/nothing", None),
    ("steps[1].model", "nobody/nothing", None),
    (f"{STEP}.weird", 1, None),
    (f"{STEP}.timeout_ms", 0, None),
    (f"{STEP}.timeout_ms", -5, None),
    (f"{STEP}.timeout_ms", "5", None),
    (f"{STEP}.retry_policy", 3, None),
    (f"{STEP}.retry_policy.weird", 1, None),
    (f"{STEP}.retry_policy.max_retries", -1, None),
    (f"{STEP}.retry_policy.max_retries", 11, None),
    (f"{STEP}.retry_policy.max_retries", 1.5, None),
    (f"{STEP}.retry_policy.backoff_factor", 0.5, None),
    (f"{STEP}.retry_policy.backoff_factor", -2, None),
    (f"{STEP}.retry_policy.backoff_factor", "2", None),
    (f"{STEP}.retry_policy.jitter_ms", -1, None),
    (f"{STEP}.fail_on", [500], None),
    (f"{STEP}.fail_on.weird", 1, None),
    (f"{STEP}.fail_on.status_code", 500, None),
    (f"{STEP}.fail_on.status_code", [500, 99], f"{STEP}.fail_on.status_code[1]"),
    (f"{STEP}.fail_on.status_code", [600], f"{STEP}.fail_on.status_code[0]"),
    (f"{STEP}.fail_on.status_code", [-500], f"{STEP}.fail_on.status_code[0]"),
    (f"{STEP}.fail_on.status_code", ["500"], f"{STEP}.fail_on.status_code[0]"),
    (f"{STEP}.fail_on.error_contains", "quota", None),
    (f"{STEP}.fail_on.error_contains", [""], f"{STEP}.fail_on.error_contains[0]"),
    (f"{STEP}.fail_on.error_contains", [5], f"{STEP}.fail_on.error_contains[0]"),
    (f"{STEP}.parameters", [], None),
    (f"{STEP}.parameters.temperature", 9, None),
    (f"{STEP}.parameters.temperature", -1, None),
    (f"{STEP}.parameters.temperature", "hot", None),
    (f"{STEP}.parameters.top_p", 1.5, None),
    (f"{STEP}.parameters.max_tokens", -7, None),
    (f"{STEP}.parameters.messages", [], None),
    (f"{STEP}.parameters.messages", [{"role": "king", "content": "x"}], None),
    (f"{STEP}.parameters.tools", "none", None),
    (f"{STEP}.parameters.model", "sandbox/echo", None),
    (f"{STEP}.parameters.stream", True, None),
    (f"{STEP}.parameters.fallback", "auto", None),
    (f"{STEP}.parameters.fallback_config", {}, None),
]
# What is wrong only together with the rest of the request, by endpoint.
AGAINST_THE_REQUEST = [
    (MESSAGES, {"thinking": {"type": "enabled", "budget_tokens": 1024}}, "thinking"),
    (MESSAGES, {"tool_choice": {"type": "any"}}, "tool_choice"),
    (MESSAGES, {"tool_choice": {"type": "tool", "name": "f"}}, "tool_choice"),
    (MESSAGES, {"temperature": 1.5}, "temperature"),
    (CHAT, {"tool_choice": "required"}, "tool_choice"),
    # Anthropic's endpoint takes 0, to fill the cache.
    (CHAT, {"max_tokens": 0}, "max_tokens"),
    (CHAT, {"top_logprobs": 3}, "top_logprobs"),
]


def good(models, mode, path, stream=False):
    body = request_body(path, mode, models, stream)
    body["fallback_config"]["steps"] = [
        {"step_id": ID, "model": models.names[0]},
        {"step_id": "t", "model": models.names[1]},
    ]
    return body


@each_case(3, path=(CHAT, MESSAGES), mode=CHAIN_MODES, case=FAULTS)  # each fault at one endpoint
async def test_what_is_malformed_is_named_and_nobody_is_asked(at, path, mode, case):
    where, value, named_field = case
    body = good(at.fresh(), mode, path)
    body["fallback_config"] = put(body["fallback_config"], where, value)
    answer = await at.ask(path, body)
    assert answer.status == 400
    assert answer.error is not None
    expected = f"fallback_config.{named_field or where}".rstrip(".")
    assert (answer.error["param"] or "").startswith(expected)
    assert expected in answer.error["message"]
    assert at.upstream.seen == []


@CHAINS
@FORMS
@pytest.mark.parametrize(("path", "parameters", "field"), AGAINST_THE_REQUEST)
async def test_an_override_must_fit_the_request(at, path, parameters, field, mode, stream):
    body = good(at.fresh(), mode, path, stream)
    body["fallback_config"]["steps"][1]["parameters"] = parameters
    answer = await at.ask(path, body)
    assert answer.status == 400
    assert answer.error is not None
    expected = f"fallback_config.steps[1].parameters.{field}"
    assert (answer.error["param"] or "").startswith(expected)
    assert expected in answer.error["message"]
    assert at.upstream.seen == []


@ENDPOINTS
@CHAINS
async def test_a_chain_needs_its_config(at, path, mode):
    body = good(at.fresh(), mode, path)
    del body["fallback_config"]
    answer = await at.ask(path, body)
    assert answer.status == 400
    assert answer.error is not None
    assert answer.error["param"] == "fallback_config"
    assert at.upstream.seen == []


@ENDPOINTS
@pytest.mark.parametrize("mode", ["always", "", 1, True, ["auto"]])
async def test_an_unknown_mode_is_refused(at, path, mode):
    body = good(at.fresh(), "enabled", path) | {"fallback": mode}
    answer = await at.ask(path, body)
    assert answer.status == 400
    assert answer.error is not None
    assert answer.error["param"] == "fallback"
    assert at.upstream.seen == []


@ENDPOINTS
@pytest.mark.parametrize("mode", ["auto", "disabled"])
async def test_a_config_nobody_reads_may_be_anything(at, path, mode):
    for where, value, _ in FAULTS:
        models = at.fresh()
        at.upstream.plays(models.first, actions.answers())
        body = good(models, "enabled", path) | {"fallback": mode}
        body["fallback_config"] = put(body["fallback_config"], where, value)
        assert (await at.ask(path, body)).whole == actions.TEXT


@ENDPOINTS
async def test_enabled_needs_its_outer_model_and_strict_never_looks(at, path):
    models = at.fresh()
    at.upstream.plays(models.first, actions.answers())
    body = good(models, "enabled", path) | {"model": "nobody/nothing"}
    answer = await at.ask(path, body)
    assert answer.status == 404
    assert answer.error is not None
    assert answer.error["param"] == "model"
    assert (await at.ask(path, body | {"fallback": "strict"})).whole == actions.TEXT


@ENDPOINTS
async def test_16_steps_are_served(at, path):
    models = at.fresh()
    at.upstream.plays(models.first, actions.fails(404))
    at.upstream.plays(models.second, actions.answers())
    body = good(models, "strict", path)
    steps = [{"step_id": f"s{number}", "model": models.names[0]} for number in range(15)]
    body["fallback_config"]["steps"] = [*steps, {"step_id": "last", "model": models.names[1]}]
    answer = await at.ask(path, body)
    assert answer.whole == actions.TEXT
    assert answer.served[2:] == ("last", 16)
