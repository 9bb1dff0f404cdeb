"""Faults before the first word: the caller hears one whole answer and is told who gave it."""

from typing import NamedTuple

import pytest

from tests.faults import actions, wire
from tests.faults.matrix import (
    ALL_MODES,
    DIALECTS,
    ENDPOINTS,
    FORMS,
    MODES,
    PROVIDERS,
    STREAMS,
    each_case,
)
from tests.faults.scenario import request_body
from tests.faults.upstream import Action

pytestmark = pytest.mark.asyncio(loop_scope="module")

RETRIES = 2  # those of auto, and what the chains here allow
DEADLINE_S = 5
HEDGED_WITHIN_S = 15


class Fault(NamedTuple):
    """A fault of the first model.

    Attributes:
        actions: its script.
        asked: how often it is asked where retries are allowed.
        recovers: whether it answers then.
    """

    actions: tuple[Action, ...]
    asked: int = 1 + RETRIES
    recovers: bool = False


def once(action: Action) -> Fault:
    return Fault((action, actions.answers()), asked=2, recovers=True)


FAULTS = {
    "429 once": once(actions.fails(429)),
    "429 once with a wait": once(actions.fails(429, retry_after="2")),
    "500 once": once(actions.fails(500)),
    "reset once": once(actions.resets()),
    "408": Fault((actions.fails(408),)),
    "429": Fault((actions.fails(429),)),
    "500": Fault((actions.fails(500),)),
    "503": Fault((actions.fails(503),)),
    "529": Fault((actions.fails(529),)),
    "reset": Fault((actions.resets(),)),
    "garbage": Fault((actions.babbles(),)),
    "a page": Fault((actions.shows_a_page(),)),
    "empty": Fault((actions.ends_early(words=0),)),
    "an error inside 200": Fault((actions.breaks_in_band(words=0),)),
    "malformed at once": Fault((actions.malforms(words=0),)),
    "too long": Fault((actions.too_long(),), asked=1),
    "401": Fault((actions.fails(401),), asked=1),
    "403": Fault((actions.fails(403),), asked=1),
    "404": Fault((actions.fails(404),), asked=1),
}
CHAIN = {
    "first": {"retry_policy": {"max_retries": RETRIES}, "timeout_ms": DEADLINE_S * 1000},
    "second": {"timeout_ms": DEADLINE_S * 1000},
}


@ENDPOINTS
@each_case(11, provider=DIALECTS, stream=STREAMS, mode=ALL_MODES, fault=FAULTS)
async def test_a_fault_is_retried_or_passed_by(at, path, provider, stream, mode, fault):
    script, asked, recovers = FAULTS[fault]
    if mode == "enabled":  # asks the model itself once, and goes on
        asked, recovers = 1, False
    models = at.fresh(provider)
    at.upstream.plays(models.first, *script)
    at.upstream.plays(models.second, actions.answers(actions.OTHER))
    answer = await at.ask(path, request_body(path, mode, models, stream, **CHAIN))
    text = actions.TEXT if recovers else actions.OTHER
    assert answer.whole == text
    assert answer.usage == (wire.INPUT_TOKENS, wire.output_tokens(text))
    assert len(at.upstream.asked(models.first)) == asked
    assert len(at.upstream.asked(models.second)) == (0 if recovers else 1)
    _, served_by, step, attempts = answer.served
    assert answer.model == (models.first if recovers else models.second)
    assert served_by == models.providers[0 if recovers else 1]
    assert attempts == len(at.upstream.seen)
    if mode == "strict":
        assert step == ("one" if recovers else "two")
    elif recovers:
        assert step == "primary"
    else:
        assert step == "two" if mode == "enabled" else step != "primary"


SILENCES = {
    "no answer": actions.says_nothing(),
    "no word": actions.opens_and_stalls(),
    "first word after 20 s": actions.answers_after(20),
}


@ENDPOINTS
@each_case(5, provider=DIALECTS, stream=STREAMS, mode=("auto", "strict"), fault=SILENCES)
async def test_a_silent_model_is_not_retried(at, path, provider, stream, mode, fault):
    models = at.fresh(provider)
    at.upstream.plays(models.first, SILENCES[fault])
    at.upstream.plays(models.second, actions.answers(actions.OTHER))
    answer = await at.ask(path, request_body(path, mode, models, stream, **CHAIN))
    assert answer.whole == actions.OTHER
    assert len(at.upstream.asked(models.first)) == 1
    assert len(at.upstream.asked(models.second)) == 1
    if mode == "auto":
        assert 10 <= answer.took < HEDGED_WITHIN_S
    else:
        assert DEADLINE_S <= answer.took < DEADLINE_S + 1
    assert answer.served[3] == 2
    assert answer.usage == (wire.INPUT_TOKENS, wire.output_tokens(actions.OTHER))


@ENDPOINTS
@FORMS
async def test_a_model_slow_to_begin_wins_over_a_hedge_that_is_slower(at, path, stream):
    models = at.fresh()
    at.upstream.plays(models.first, actions.answers_after(12))
    at.upstream.plays(models.second, actions.answers_after(60, actions.OTHER))
    answer = await at.ask(path, request_body(path, "auto", models, stream))
    assert answer.whole == actions.TEXT
    assert answer.served[2] == "primary"
    assert 12 <= answer.took < 14


@ENDPOINTS
@each_case(
    5,
    stream=STREAMS,
    provider=DIALECTS,
    mode=ALL_MODES,
    action=(actions.filters(), actions.fails(400), actions.fails(422)),
)
async def test_a_refusal_of_the_request_ends_the_chain(at, path, provider, stream, mode, action):
    models = at.fresh(provider)
    at.upstream.plays(models.first, action)
    at.upstream.plays(models.second, actions.answers())
    answer = await at.ask(path, request_body(path, mode, models, stream, **CHAIN))
    assert answer.status == 400
    assert [one.model for one in at.upstream.seen] == [models.first]
    assert answer.error is not None
    message = answer.error["message"]
    assert "content policy" in message or "no luck" in message
    if provider == "openai" and "content policy" in message:
        assert answer.error["code"] == "content_filter"
    (attempt,) = answer.attempts
    assert attempt["status"] in (400, 422)


@ENDPOINTS
@FORMS
@MODES
@pytest.mark.parametrize(
    ("provider", "reason"), [("openai", "content_filter"), ("anthropic", "refusal")]
)
async def test_an_answer_that_is_filtered_is_an_answer(at, path, provider, reason, stream, mode):
    models = at.fresh(provider)
    at.upstream.plays(models.first, actions.answers(reason=reason))
    answer = await at.ask(path, request_body(path, mode, models, stream, **CHAIN))
    assert (answer.status, answer.error) == (200, None)
    assert answer.finish == ("refusal" if path.endswith("messages") else "content_filter")
    assert [one.model for one in at.upstream.seen] == [models.first]


@ENDPOINTS
@FORMS
@MODES
@PROVIDERS
async def test_a_stream_that_said_why_it_stopped_needs_no_marker(at, path, provider, stream, mode):
    models = at.fresh(provider)
    at.upstream.plays(models.first, actions.forgets_marker())
    answer = await at.ask(path, request_body(path, mode, models, stream, **CHAIN))
    assert answer.whole == actions.TEXT
    assert [one.model for one in at.upstream.seen] == [models.first]
