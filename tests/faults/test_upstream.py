"""The fault upstream itself, through a gateway: without a fault, and each fault alone."""

import pytest

from tests.faults import actions, wire
from tests.faults.matrix import DIALECTS, ENDPOINTS, FORMS, PROVIDERS, STREAMS, each_case
from tests.faults.scenario import CHAT, MESSAGES

pytestmark = pytest.mark.asyncio(loop_scope="module")


def alone(models, stream):
    body = {"model": models.alone, "max_tokens": 100, "stream": stream, "fallback": "disabled"}
    if stream:
        body["stream_options"] = {"include_usage": True}
    return {**body, "messages": [{"role": "user", "content": "Count."}]}


@ENDPOINTS
@FORMS
@PROVIDERS
async def test_a_model_without_a_fault_answers_whole(at, path, stream, provider):
    models = at.fresh(provider)
    at.upstream.plays(models.first, actions.answers())
    body = alone(models, stream)
    if path == MESSAGES:
        body.pop("stream_options", None)
    answer = await at.ask(path, body)
    assert (answer.status, answer.text) == (200, actions.TEXT)
    assert answer.finish == ("stop" if path == CHAT else "end_turn")
    assert answer.usage == (wire.INPUT_TOKENS, wire.output_tokens(actions.TEXT))
    assert answer.model == models.first
    assert answer.served == (models.alone, provider, "primary", 1)


# Of each fault: the action, and what a caller without a fallback hears of it.
ALONE = {
    "429": (actions.fails(429), 429, "upstream_rate_limited"),
    "500": (actions.fails(500), 502, "upstream_error"),
    "reset": (actions.resets(), 502, "upstream_connection"),
    "silent": (actions.says_nothing(), 504, "upstream_timeout"),
    "stalled at the start": (actions.opens_and_stalls(), 504, "upstream_timeout"),
    "cut": (actions.cuts(), 502, "upstream_connection"),
    "closed": (actions.cuts(reset=False), 502, "upstream_connection"),
    "stalled": (actions.stalls(), 504, "upstream_timeout"),
    "malformed": (actions.malforms(), 502, "upstream_error"),
    "error in band": (actions.breaks_in_band(), 502, "upstream_error"),
    "no marker": (actions.ends_early(), 502, "upstream_"),
    "too long": (actions.too_long(), 400, "context_length_exceeded"),
    "garbage": (actions.babbles(), 502, "upstream_error"),
    "page": (actions.shows_a_page(), 502, "upstream_error"),
}
IN_THE_MIDDLE = {"cut", "closed", "stalled", "malformed", "error in band", "no marker"}


@ENDPOINTS
@each_case(5, stream=STREAMS, provider=DIALECTS, fault=ALONE)
async def test_without_fallback_a_fault_ends_with_an_error(at, path, stream, provider, fault):
    action, status, code = ALONE[fault]
    models = at.fresh(provider)
    at.upstream.plays(models.first, action)
    answer = await at.ask(path, alone(models, stream) | {"stream_options": None})
    if stream and (fault in IN_THE_MIDDLE or answer.status == 200):
        assert answer.status == 200
        assert actions.TEXT.startswith(answer.text)
        assert bool(answer.text) == (fault in IN_THE_MIDDLE)
    else:
        assert answer.status == status
    assert answer.error is not None
    assert answer.error["code"].startswith(code)
    assert len(at.upstream.asked(models.first)) == 1
