"""Who is given a whole answer as plain values: a facade of another dialect in the same process."""

from typing import Any

import orjson
import pytest

from gateway.inference.v1.inference_pb2 import Event
from services.common.messages.passthrough_answer import PassthroughAnswer, TokenCounts
from services.common.messages.plain_answer import PlainAnswer, PlainChoice
from services.inference.providers.anthropic import AnthropicProvider
from services.inference.providers.anthropic import passthrough as anthropic_passthrough
from services.inference.providers.base import AnswerForm, Call, Provider
from services.inference.providers.finish_reasons import ANTHROPIC_REASONS, OPENAI_REASONS
from services.inference.providers.openai import OpenAIProvider
from services.inference.providers.openai import passthrough as openai_passthrough
from tests.lazy_requests import lazy_of
from tests.services.inference.providers.caller_bodies import (
    HELLO,
    TARGET,
    chat,
    messages,
    response,
)
from tests.services.inference.providers.scripted_server import (
    ScriptedUpstream,
    scripted_upstream,
)

HELLO_RESPONSE = {"model": "m", "input": "Hi", "store": False}
COMPLETION = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hi ☕", "refusal": None},
            "logprobs": None,
            "finish_reason": "length",
        }
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
    "system_fingerprint": "fp",
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude",
    "content": [{"type": "text", "text": "Hi ☕"}],
    "stop_reason": "stop_sequence",
    "stop_sequence": "END",
    "usage": {
        "input_tokens": 3,
        "output_tokens": 2,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "service_tier": "standard",
    },
}


def openai(here: ScriptedUpstream) -> Provider:
    return OpenAIProvider(
        "acme", here.upstream(None), pass_stateful=False, newest=True, fetches_urls=False
    )


def anthropic(here: ScriptedUpstream) -> Provider:
    return AnthropicProvider(
        "claude", here.upstream(None), pass_stateful=False, fetches_urls=False, official=True
    )


async def answered(
    make: Any, parse: Any, body: Any, answer: Any, accepts: AnswerForm = AnswerForm.PLAIN
) -> Any:
    """Return what a provider that is asked with a lazy request makes of an answer."""
    lazy = lazy_of(parse(orjson.dumps(body), True))
    async with scripted_upstream() as here:
        here.server.plays(lambda connection: connection.answer(orjson.dumps(answer)))
        call = Call(lazy.request, TARGET, False, [], accepts, lazy=lazy, plain=lazy.plain)
        return await make(here).whole(call)


@pytest.mark.parametrize(("parse", "body"), [(messages, HELLO), (response, HELLO_RESPONSE)])
async def test_a_completion_is_plain_for_other_dialects(parse: Any, body: Any) -> None:
    answer = await answered(openai, parse, body, COMPLETION)
    assert isinstance(answer, PlainAnswer)
    assert (answer.id, answer.model, answer.passthrough) == ("chatcmpl-1", "gpt", b"")
    assert answer.choices == [PlainChoice("Hi ☕", OPENAI_REASONS["length"])]
    assert answer.usage == TokenCounts(3, 2)


@pytest.mark.parametrize(("parse", "body"), [(chat, HELLO), (response, HELLO_RESPONSE)])
async def test_a_message_is_plain_for_other_dialects(parse: Any, body: Any) -> None:
    answer = await answered(anthropic, parse, body, MESSAGE)
    assert isinstance(answer, PlainAnswer)
    assert (answer.id, answer.model, answer.passthrough) == ("msg_1", "claude", b"")
    assert answer.choices == [PlainChoice("Hi ☕", ANTHROPIC_REASONS["stop_sequence"], "END")]
    assert answer.usage == TokenCounts(3, 2)


@pytest.mark.parametrize(
    ("make", "parse", "answer"), [(openai, chat, COMPLETION), (anthropic, messages, MESSAGE)]
)
async def test_fields_of_its_own_dialect_reach_a_caller(make: Any, parse: Any, answer: Any) -> None:
    passed = await answered(make, parse, HELLO, answer, AnswerForm.PASSTHROUGH)
    assert isinstance(passed, PassthroughAnswer) and orjson.loads(passed.passthrough) == answer
    [event] = await answered(make, parse, HELLO, answer, AnswerForm.WHOLE)
    assert event.whole.HasField("extra") or event.whole.usage.HasField("extra")


@pytest.mark.parametrize(
    ("make", "parse", "answer"), [(openai, messages, COMPLETION), (anthropic, chat, MESSAGE)]
)
async def test_a_complete_request_is_answered_by_messages(
    make: Any, parse: Any, answer: Any
) -> None:
    request = parse(orjson.dumps(HELLO), False).request
    async with scripted_upstream() as here:
        here.server.plays(lambda connection: connection.answer(orjson.dumps(answer)))
        [event] = await make(here).whole(Call(request, TARGET, False, [], AnswerForm.WHOLE))
    assert isinstance(event, Event)
    assert event.whole.HasField("extra") or event.whole.usage.HasField("extra")


@pytest.mark.parametrize(
    ("make", "parse", "answer"), [(openai, messages, COMPLETION), (anthropic, chat, MESSAGE)]
)
async def test_an_answer_that_is_filtered_comes_as_events(
    make: Any, parse: Any, answer: Any
) -> None:
    events = await answered(make, parse, HELLO, answer, AnswerForm.EVENTS)
    assert events[0].WhichOneof("kind") == "start"


@pytest.mark.parametrize(
    ("make", "parse", "answer", "passthrough"),
    [
        (openai, messages, {**COMPLETION, "object": "completion"}, openai_passthrough),
        (anthropic, chat, {**MESSAGE, "type": "other"}, anthropic_passthrough),
    ],
)
async def test_what_is_not_plain_is_not_looked_at_twice(
    make: Any, parse: Any, answer: Any, passthrough: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The provider has its own name for what looks first.
    monkeypatch.setattr(passthrough, "plain_answer", lambda *_: pytest.fail("looked at again"))
    [first, *_] = await answered(make, parse, HELLO, answer)
    assert isinstance(first, Event)
