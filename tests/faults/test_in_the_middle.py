"""Faults after the first word: the whole answer all the same, or an error, never a part of it."""

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

pytestmark = pytest.mark.asyncio(loop_scope="module")

BREAKS = {
    "cut": actions.cuts(),
    "closed": actions.cuts(reset=False),
    "silent": actions.stalls(),
    "malformed": actions.malforms(),
    "an error in band": actions.breaks_in_band(),
    "no marker": actions.ends_early(),
}
FIRST_WORDS = "One two three"


@ENDPOINTS
@each_case(11, provider=DIALECTS, stream=STREAMS, mode=ALL_MODES, fault=BREAKS)
async def test_an_answer_that_breaks_off_is_made_whole(at, path, provider, stream, mode, fault):
    models = at.fresh(provider)
    at.upstream.plays(models.first, BREAKS[fault])
    at.upstream.plays(models.second, actions.answers())
    answer = await at.ask(path, request_body(path, mode, models, stream))
    assert answer.whole == actions.TEXT
    last = at.upstream.seen[-1]
    missing = actions.TEXT.removeprefix(last.prefill) if last.prefill else actions.TEXT
    assert answer.usage == (wire.INPUT_TOKENS, wire.output_tokens(missing))


@ENDPOINTS
@each_case(5, mode=ALL_MODES, fault=BREAKS)
async def test_the_prefill_is_exactly_the_delivered_text(at, path, mode, fault):
    models = at.fresh("openai")
    at.upstream.plays(models.first, BREAKS[fault])
    at.upstream.plays(models.second, actions.answers())
    answer = await at.ask(path, request_body(path, mode, models, stream=True))
    assert answer.whole == actions.TEXT
    (second,) = at.upstream.asked(models.second)
    assert second.prefill == FIRST_WORDS


@ENDPOINTS
@each_case(5, mode=ALL_MODES, fault=BREAKS)
async def test_another_answer_is_not_glued_to_the_first(at, path, mode, fault):
    models = at.fresh("anthropic")  # the second cannot continue, it begins anew
    at.upstream.plays(models.first, BREAKS[fault], actions.resets())
    at.upstream.plays(models.second, actions.answers(actions.OTHER))
    answer = await at.ask(path, request_body(path, mode, models, stream=True))
    assert answer.text == FIRST_WORDS
    assert answer.error is not None
    assert not answer.finish
    assert len(answer.attempts) == len(at.upstream.seen)


@ENDPOINTS
@MODES
async def test_a_refused_prefill_is_retried_without_one(at, path, mode):
    models = at.fresh("openai")
    for _ in range(2):
        at.upstream.plays(models.first, actions.cuts())
        at.upstream.plays(models.second, actions.refuses_prefill())
        answer = await at.ask(path, request_body(path, mode, models, stream=True))
        assert answer.whole == actions.TEXT
    prefills = [one for one in at.upstream.asked(models.second) if one.prefill]
    assert len(prefills) <= 1


@ENDPOINTS
@MODES
async def test_a_refused_prefill_keeps_the_original_failure(at, path, mode):
    models = at.fresh("openai")
    at.upstream.plays(models.first, actions.cuts(), actions.resets())
    at.upstream.plays(models.second, actions.refuses_prefill(actions.OTHER))
    answer = await at.ask(path, request_body(path, mode, models, stream=True))
    assert answer.text == FIRST_WORDS
    assert answer.error is not None
    assert answer.error["code"] == "upstream_connection"
    assert "prefill" not in answer.error["message"]


@ENDPOINTS
@MODES
async def test_a_text_that_ends_in_a_space_can_be_continued(at, path, mode):
    """Anthropic takes no prefill that ends in white space."""
    models = at.fresh("openai")
    text = "One two three \n four five."
    at.upstream.plays(models.first, actions.cuts(words=4, text=text))
    at.upstream.plays(models.second, actions.refuses_white_space(text))
    answer = await at.ask(path, request_body(path, mode, models, stream=True))
    assert answer.whole.split() == text.split()
    (second,) = at.upstream.asked(models.second)
    assert second.prefill == "One two three"


@ENDPOINTS
@MODES
@PROVIDERS
async def test_an_answer_cut_after_its_reason_to_stop_is_whole(at, path, provider, mode):
    models = at.fresh(provider)
    at.upstream.plays(models.first, actions.cuts_the_end())
    answer = await at.ask(path, request_body(path, mode, models, stream=True))
    assert answer.whole == actions.TEXT
    assert len(at.upstream.seen) == 1


@ENDPOINTS
@FORMS
@PROVIDERS
async def test_an_answer_that_nobody_can_finish_ends_with_the_error(at, path, provider, stream):
    models = at.fresh(provider)
    at.upstream.plays(models.first, actions.cuts(), actions.resets())
    at.upstream.plays(models.second, actions.resets())
    answer = await at.ask(path, request_body(path, "auto", models, stream))
    assert answer.error is not None
    assert answer.error["code"] == "upstream_connection"
    assert len(answer.attempts) == len(at.upstream.seen)
    if stream:
        assert answer.text == FIRST_WORDS
    else:
        assert answer.status == 502
