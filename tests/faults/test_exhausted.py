"""When all fail: the last failure in the endpoint's shape, every attempt told, no word too much."""

import pytest

from tests.faults import actions
from tests.faults.matrix import (
    ALL_MODES,
    CHAINS,
    ENDPOINTS,
    FORMS,
    MODES,
    STREAMS,
    each_case,
)
from tests.faults.scenario import CHAT, request_body

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Of the last failure: what the provider did, the HTTP status and the code of the answer.
LAST = {
    "429": (actions.fails(429, retry_after="2"), 429, "upstream_rate_limited"),
    "500": (actions.fails(500), 502, "upstream_error"),
    "503": (actions.fails(503), 502, "upstream_error"),
    "529": (actions.fails(529), 529, "upstream_overloaded"),
    "reset": (actions.resets(), 502, "upstream_connection"),
    "silent": (actions.says_nothing(), 504, "upstream_timeout"),
    "401": (actions.fails(401), 502, "upstream_auth"),
    "403": (actions.fails(403), 502, "upstream_auth"),
    "too long": (actions.too_long(), 400, "context_length_exceeded"),
    "400": (actions.fails(400), 400, "upstream_rejected"),
    "garbage": (actions.babbles(), 502, "upstream_error"),
}


@ENDPOINTS
@each_case(5, stream=STREAMS, mode=ALL_MODES, fault=LAST)
async def test_the_last_failure_is_reported_with_every_attempt(at, path, stream, mode, fault):
    action, status, code = LAST[fault]
    models = at.fresh()
    at.upstream.plays(models.first, actions.fails(503, "a secret of the provider's"))
    at.upstream.plays(models.second, action)
    answer = await at.ask(path, request_body(path, mode, models, stream))
    assert answer.error is not None
    assert answer.error["code"] == code
    assert b"a secret" not in answer.raw
    if stream and fault == "silent":  # longer than headers are held
        assert answer.status == 200
    else:
        assert answer.status == (503 if path == CHAT and status == 529 else status)
        assert answer.headers["x-should-retry"] == "false"
    if answer.status in (429, 503, 529):
        assert int(answer.headers["Retry-After"]) >= 1
    attempts = answer.attempts
    names = dict(zip((models.first, models.second), models.names, strict=True))
    assert [one["model"] for one in attempts] == [names[one.model] for one in at.upstream.seen]
    steps = ["primary" if mode == "enabled" else "one", "two"]
    if mode != "auto":
        assert [one["step"] for one in attempts] == steps
    first, *_, last = attempts
    assert (first["status"], first["reason"]) == (503, "upstream_error")
    assert last["reason"] == code
    assert all(set(one) == {"step", "model", "status", "reason", "ms"} for one in attempts)
    assert all(isinstance(one["ms"], int) and one["ms"] >= 0 for one in attempts)
    if fault in ("reset", "silent", "garbage"):
        assert last["status"] is None or fault == "garbage"


# What fail_on makes of the first model's fault: whether the second is asked.
FAIL_ON = [
    ({"status_code": [503]}, actions.fails(503), True),
    ({"status_code": [500, 429]}, actions.fails(503), False),
    ({"status_code": [418]}, actions.fails(418), True),
    ({"status_code": [400]}, actions.fails(400), True),
    ({"status_code": [400]}, actions.fails(429), False),
    ({"error_contains": ["NO LUCK"]}, actions.fails(400, "There was no luck today"), True),
    ({"error_contains": ["STRASSE"]}, actions.fails(400, "In der Straße"), True),
    ({"error_contains": ["quota"]}, actions.fails(400, "no luck"), False),
    ({"error_contains": ["quota"], "status_code": [404]}, actions.fails(404), True),
    ({}, actions.fails(500), False),
    ({}, actions.fails(401), False),
    ({}, actions.too_long(), False),
    ({}, actions.resets(), True),
    ({}, actions.says_nothing(), True),
    ({"status_code": [418]}, actions.ends_early(words=0), True),
]


@ENDPOINTS
@each_case(4, stream=STREAMS, rule=FAIL_ON)
async def test_fail_on_decides_what_moves_on(at, path, stream, rule):
    fail_on, action, moves = rule
    models = at.fresh()
    at.upstream.plays(models.first, action)
    at.upstream.plays(models.second, actions.answers())
    step = {"fail_on": fail_on, "timeout_ms": 5000}
    answer = await at.ask(path, request_body(path, "strict", models, stream, first=step))
    assert (len(at.upstream.asked(models.second)) == 1) == moves
    if moves:
        assert answer.whole == actions.TEXT
    else:
        assert answer.error is not None
        assert len(answer.attempts) == 1


@ENDPOINTS
@FORMS
async def test_retries_come_before_fail_on(at, path, stream):
    models = at.fresh()
    at.upstream.plays(models.first, actions.fails(503), actions.answers())
    step = {"fail_on": {"status_code": [418]}, "retry_policy": {"max_retries": 1}}
    answer = await at.ask(path, request_body(path, "strict", models, stream, first=step))
    assert answer.whole == actions.TEXT


@ENDPOINTS
@FORMS
@CHAINS
async def test_parameters_hold_for_their_step_alone(at, path, stream, mode):
    models = at.fresh()
    at.upstream.plays(models.first, actions.fails(503))
    at.upstream.plays(models.second, actions.answers())
    step = {"parameters": {"temperature": 0.25, "max_tokens": 7}}
    answer = await at.ask(path, request_body(path, mode, models, stream, second=step))
    assert answer.whole == actions.TEXT
    first, second = (one.body for one in at.upstream.seen)
    assert "temperature" not in first and "max_tokens" in first and first["max_tokens"] == 100
    assert (second["temperature"], second["max_tokens"]) == (0.25, 7)
    for body in (first, second):
        assert not {"fallback", "fallback_config"} & set(body)


@FORMS
@MODES
async def test_a_model_that_cannot_carry_the_request_is_passed_by(at, stream, mode):
    models = at.fresh("anthropic")
    at.upstream.plays(models.second, actions.answers())
    body = request_body(CHAT, mode, models, stream) | {"logprobs": True}
    answer = await at.ask(CHAT, body)
    assert answer.whole == actions.TEXT
    assert [one.model for one in at.upstream.seen] == [models.second]


@FORMS
async def test_a_request_that_nobody_can_carry_is_400(at, stream):
    models = at.fresh("anthropic")
    body = request_body(CHAT, "strict", models, stream) | {"logprobs": True}
    steps = body["fallback_config"]["steps"]
    steps[1]["model"] = models.names[0]
    answer = await at.ask(CHAT, body)
    assert answer.status == 400
    assert answer.error is not None
    assert answer.error["param"] == "logprobs"
    assert at.upstream.seen == []
