"""A conversation is translated when a model cannot be asked in its caller's own words."""

from collections.abc import Callable
from typing import Any

import pytest

from gateway.conversation.v1 import conversation_pb2 as conversation
from gateway.conversation.v1.conversation_pb2 import Block, Message
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest, Memory, RetryPolicy, Tool
from services.common.errors import UpstreamError
from services.common.messages.lazy_request import LazyRequest
from services.inference.providers.base import Call
from tests.lazy_requests import AddingLazyRequest
from tests.services.inference.fallback.scripted_engine import (
    ScriptedEngine,
    answer,
    broken,
    chain,
    failing,
    request,
    silence,
    text_of,
)
from tests.services.inference.fallback.virtual_time import in_no_time

FIELDS = {"messages": [{"role": "user", "content": "Hi"}]}
VERBATIM = {"messages": b'[{"role":"user","content":"Hi"}]'}
BOTH = pytest.mark.parametrize("stream", [False, True])


def lazy(model: str = "a", **fields: Any) -> LazyRequest:
    return lazy_of(request(model, dialect=conversation.DIALECT_OPENAI, **fields))


def lazy_of(request: GenerateRequest) -> LazyRequest:
    del request.messages[:]

    def add(target: GenerateRequest) -> None:
        target.messages.append(Message(role=conversation.ROLE_USER, blocks=[Block(text="Hi")]))
        target.tools.append(Tool(name="f"))

    return AddingLazyRequest(request, FIELDS, add, size=100, requires_official_api=False)


def calls_of(scripted: ScriptedEngine) -> list[Call]:
    return [
        call for _, call in sorted((*scripted.p.calls, *scripted.q.calls), key=lambda one: one[0])
    ]


def is_complete(call: Call) -> bool:
    """Return whether a call has its messages; one that is lazy may get them later."""
    assert call.lazy is not None or (call.request.messages and call.request.tools)
    return call.lazy is None


@BOTH
@in_no_time
async def test_it_goes_as_it_is_to_who_takes_it(stream: bool) -> None:
    scripted = ScriptedEngine()
    text, _, _ = await scripted.ask(stream, lazy())
    assert text == "I am a"
    (call,) = calls_of(scripted)
    assert call.lazy is not None and call.lazy.verbatim == VERBATIM
    assert not (call.request.messages or call.request.tools)


@BOTH
@in_no_time
async def test_a_failure_is_followed_by_what_follows_any_other(stream: bool) -> None:
    policy = RetryPolicy(max_retries=2, backoff_factor=3, jitter_ms=100)
    for first in (failing(503), failing(404), failing(401), silence()):
        asked = []
        for is_lazy in (False, True):
            scripted = ScriptedEngine()
            scripted.p.plays("a", [first])
            chained = chain({"model": "a", "retry_policy": policy, "timeout_ms": 2000}, "b")
            chained.dialect = conversation.DIALECT_OPENAI
            if is_lazy:
                chained = lazy_of(chained)
            text, route, _ = await scripted.ask(stream, chained)
            assert scripted.is_quiet()
            began = scripted.asked()[0][0]
            calls = [(round(at - began, 3), name) for at, name in scripted.asked()]
            asked.append((calls, text, route.attempts, scripted.counted("failed")))
        assert asked[0] == asked[1]


def other_dialect(scripted: ScriptedEngine) -> None:
    scripted.p.dialect = conversation.DIALECT_ANTHROPIC


def other_forms(scripted: ScriptedEngine) -> None:
    scripted.p.accepts_lazy = False


@BOTH
@pytest.mark.parametrize("who", [other_dialect, other_forms])
@in_no_time
async def test_who_does_not_take_it_is_asked_in_their_words(
    who: Callable[[ScriptedEngine], None], stream: bool
) -> None:
    scripted = ScriptedEngine()
    who(scripted)
    await scripted.ask(stream, lazy())
    assert [is_complete(call) for call in calls_of(scripted)] == [True]


@BOTH
@in_no_time
async def test_a_fallback_model_may_need_a_translation(stream: bool) -> None:
    scripted = ScriptedEngine(fallbacks=("b", "pre"))
    scripted.q.accepts_lazy = False
    for model in ("a", "b"):
        scripted.p.plays(model, [failing(500)])
    text, route, _ = await scripted.ask(stream, lazy())
    assert (text, route.model) == ("I am pre", "pre")
    asked = [(call.target.upstream, is_complete(call)) for call in calls_of(scripted)]
    assert asked == [*[("a", False)] * 3, *[("b", False)] * 3, ("pre", True)]


@in_no_time
async def test_an_answer_that_breaks_off_is_gone_on_with() -> None:
    scripted = ScriptedEngine(fallbacks=("pre",))
    scripted.p.plays("a", broken("I am a long answer, and ", silence()))
    scripted.q.plays("pre", answer("this is its end"))
    batches = await scripted.engine.stream(lazy())
    events = [event async for batch in batches for event in batch]
    assert text_of(events) == "I am a long answer, and this is its end"
    first, second = calls_of(scripted)
    assert not is_complete(first)
    assert [message.blocks[0].text for message in second.request.messages] == [
        "Hi",
        "I am a long answer, and",
    ]


@BOTH
@pytest.mark.parametrize("model", ["a", "short"])
@in_no_time
async def test_refused_thinking_is_left_out_of_the_translation(model: str, stream: bool) -> None:
    scripted = ScriptedEngine()
    refused = UpstreamError(
        errors_pb2.REASON_UPSTREAM_REJECTED,
        "it said 400",
        status=400,
        body="messages.1.content.0: Invalid `signature` in `thinking` block",
    )
    scripted.p.plays(model, [refused], answer("I am a"))
    await scripted.ask(stream, lazy(model, max_tokens=1000, lowers_max_tokens=True))
    assert [is_complete(call) for call in calls_of(scripted)] == [False, True]


@BOTH
@in_no_time
async def test_memory_reads_its_translation(stream: bool) -> None:
    scripted = ScriptedEngine()
    await scripted.ask(stream, lazy(memory=Memory(memory_id="x")))
    assert [is_complete(call) for call in calls_of(scripted)] == [True]
    (turn,) = scripted.memories.turns
    assert turn.begin.messages[0].blocks[0].text == "Hi"


def test_it_is_serialized_complete() -> None:
    parsed = GenerateRequest.FromString(lazy().SerializeToString())
    assert parsed.messages and parsed.tools
    assert parsed == lazy().complete()


def test_it_is_completed_once() -> None:
    unread = lazy()
    assert unread.complete() is unread.complete()
    assert len(unread.request.messages) == 1
