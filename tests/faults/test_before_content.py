"""Faults before the first word: the caller hears one whole answer and is told who gave it."""

from typing import NamedTuple

import pytest

from tests.faults import acts, wire
from tests.faults.matrix import ENDPOINTS, FORMS, MODES, PROVIDERS
from tests.faults.setting import asking
from tests.faults.upstream import Act

pytestmark = pytest.mark.asyncio(loop_scope="module")

RETRIES = 2  # those of auto, and what the chains here allow
DEADLINE_S = 5
HEDGED_WITHIN_S = 15


class Fault(NamedTuple):
    """What the first model does.

    Attributes:
        acts: its script.
        asked: how often it is asked where retries are allowed.
        recovers: whether it answers then.
    """

    acts: tuple[Act, ...]
    asked: int = 1 + RETRIES
    recovers: bool = False


def once(act: Act) -> Fault:
    return Fault((act, acts.answers()), asked=2, recovers=True)


FAULTS = {
    "429 once": once(acts.fails(429)),
    "429 once with a wait": once(acts.fails(429, retry_after="2")),
    "500 once": once(acts.fails(500)),
    "reset once": once(acts.resets()),
    "408": Fault((acts.fails(408),)),
    "429": Fault((acts.fails(429),)),
    "500": Fault((acts.fails(500),)),
    "503": Fault((acts.fails(503),)),
    "529": Fault((acts.fails(529),)),
    "reset": Fault((acts.resets(),)),
    "garbage": Fault((acts.babbles(),)),
    "a page": Fault((acts.shows_a_page(),)),
    "empty": Fault((acts.ends_early(words=0),)),
    "an error inside 200": Fault((acts.breaks_in_band(words=0),)),
    "malformed at once": Fault((acts.malforms(words=0),)),
    "too long": Fault((acts.too_long(),), asked=1),
    "401": Fault((acts.fails(401),), asked=1),
    "403": Fault((acts.fails(403),), asked=1),
    "404": Fault((acts.fails(404),), asked=1),
}
CHAIN = {
    "first": {"retry_policy": {"max_retries": RETRIES}, "timeout_ms": DEADLINE_S * 1000},
    "second": {"timeout_ms": DEADLINE_S * 1000},
}


@ENDPOINTS
@PROVIDERS
@FORMS
@MODES
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_is_retried_or_passed_by(at, path, provider, stream, mode, fault):
    script, asked, recovers = FAULTS[fault]
    if mode == "enabled":  # asks the model itself once, and goes on
        asked, recovers = 1, False
    models = at.fresh(provider)
    at.upstream.plays(models.first, *script)
    at.upstream.plays(models.second, acts.answers(acts.OTHER))
    answer = await at.ask(path, asking(path, mode, models, stream, **CHAIN))
    text = acts.TEXT if recovers else acts.OTHER
    assert answer.whole == text
    assert answer.usage == (wire.INPUT_TOKENS, wire.output_tokens(text))
    assert len(at.upstream.asked(models.first)) == asked
    assert len(at.upstream.asked(models.second)) == (0 if recovers else 1)
    _, told, step, attempts = answer.served
    assert answer.model == (models.first if recovers else models.second)
    assert told == models.providers[0 if recovers else 1]
    assert attempts == len(at.upstream.seen)
    if mode == "strict":
        assert step == ("one" if recovers else "two")
    elif recovers:
        assert step == "primary"
    else:
        assert step == "two" if mode == "enabled" else step != "primary"


SILENCES = {
    "no answer": acts.says_nothing(),
    "no word": acts.opens_and_stalls(),
    "first word after 20 s": acts.answers_after(20),
}


@ENDPOINTS
@PROVIDERS
@FORMS
@pytest.mark.parametrize("mode", ["auto", "strict"])
@pytest.mark.parametrize("fault", SILENCES)
async def test_a_silent_model_is_not_retried(at, path, provider, stream, mode, fault):
    models = at.fresh(provider)
    at.upstream.plays(models.first, SILENCES[fault])
    at.upstream.plays(models.second, acts.answers(acts.OTHER))
    answer = await at.ask(path, asking(path, mode, models, stream, **CHAIN))
    assert answer.whole == acts.OTHER
    assert len(at.upstream.asked(models.first)) == 1
    assert len(at.upstream.asked(models.second)) == 1
    if mode == "auto":
        assert 10 <= answer.took < HEDGED_WITHIN_S
    else:
        assert DEADLINE_S <= answer.took < DEADLINE_S + 1
    assert answer.served[3] == 2
    assert answer.usage == (wire.INPUT_TOKENS, wire.output_tokens(acts.OTHER))


@ENDPOINTS
@FORMS
async def test_a_model_slow_to_begin_wins_over_a_hedge_that_is_slower(at, path, stream):
    models = at.fresh()
    at.upstream.plays(models.first, acts.answers_after(12))
    at.upstream.plays(models.second, acts.answers_after(60, acts.OTHER))
    answer = await at.ask(path, asking(path, "auto", models, stream))
    assert answer.whole == acts.TEXT
    assert answer.served[2] == "primary"
    assert 12 <= answer.took < 14


@ENDPOINTS
@FORMS
@PROVIDERS
@MODES
@pytest.mark.parametrize("act", [acts.filters(), acts.fails(400), acts.fails(422)])
async def test_a_refusal_of_the_request_ends_the_chain(at, path, provider, stream, mode, act):
    models = at.fresh(provider)
    at.upstream.plays(models.first, act)
    at.upstream.plays(models.second, acts.answers())
    answer = await at.ask(path, asking(path, mode, models, stream, **CHAIN))
    assert answer.status == 400
    assert [one.model for one in at.upstream.seen] == [models.first]
    assert answer.error is not None
    told = answer.error["message"]
    assert "content policy" in told or "no luck" in told
    if provider == "openai" and "content policy" in told:
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
    at.upstream.plays(models.first, acts.answers(reason=reason))
    answer = await at.ask(path, asking(path, mode, models, stream, **CHAIN))
    assert (answer.status, answer.error) == (200, None)
    assert answer.finish == ("refusal" if path.endswith("messages") else "content_filter")
    assert [one.model for one in at.upstream.seen] == [models.first]


@ENDPOINTS
@FORMS
@MODES
@PROVIDERS
async def test_a_stream_that_said_why_it_stopped_needs_no_marker(at, path, provider, stream, mode):
    models = at.fresh(provider)
    at.upstream.plays(models.first, acts.forgets_marker())
    answer = await at.ask(path, asking(path, mode, models, stream, **CHAIN))
    assert answer.whole == acts.TEXT
    assert [one.model for one in at.upstream.seen] == [models.first]
