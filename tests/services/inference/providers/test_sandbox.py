"""The sandbox in this process."""

import asyncio

import pytest

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import (
    Block,
    Media,
    Message,
    Opaque,
    Thinking,
    ToolResult,
)
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import (
    OutputFormat,
    ThinkingConfig,
    Tool,
    ToolChoice,
)
from services.common.errors import GatewayError, UpstreamError
from services.inference.providers.sandbox import MODELS
from services.sandbox.model import requests
from services.sandbox.model.signatures import redact
from tests.services.inference.providers.sandbox_calls import (
    ASSISTANT,
    PNG,
    SYSTEM,
    TOOL,
    USER,
    answered,
    batches,
    call,
    message,
    provider,
    texts,
)


async def test_a_whole_answer_is_one_batch():
    only = await batches(call("hi"))
    assert len(only) == 1
    assert only[0][0].start.id == "sandbox-1"
    assert only[0][0].start.model == "echo"
    told = [event.usage for event in only[0] if event.HasField("usage")]
    assert [(usage.input_tokens, usage.output_tokens) for usage in told] == [(1, 0), (1, 5)]
    assert texts(await answered(call("hi"))) == 'Sandbox echo: you said "hi".'


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tools": [TOOL]},
        {"thinking": ThinkingConfig(effort="low"), "n": 2, "logprobs": True, "top_logprobs": 1},
    ],
)
async def test_a_stream_holds_the_whole_answer_in_steps(fields):
    streamed = await batches(call("use the tool", stream=True, **fields))
    assert len(streamed) > 5
    whole = await batches(call("use the tool", **fields))
    assert [event for batch in streamed for event in batch] == whole[0]


async def test_blocks_open_hold_deltas_and_end_one_after_the_other():
    asked = call("use the tool", tools=[TOOL], thinking=ThinkingConfig(effort="low"))
    events = (await batches(asked))[0]
    kinds = []
    for event in events:
        kind = (event.WhichOneof("kind"), event.block)
        if not kinds or kinds[-1] != kind:
            kinds.append(kind)
    assert kinds == [
        ("start", 0), ("usage", 0),
        ("block_start", 0), ("thinking", 0), ("block_stop", 0),
        ("block_start", 1), ("text", 1), ("block_stop", 1),
        ("block_start", 2), ("input", 2), ("block_stop", 2),
        ("finish", 0), ("usage", 0),
    ]  # fmt: skip


async def test_a_tool_is_called_and_its_result_quoted():
    asked = await answered(call("get weather", tools=[TOOL]))
    use = asked.choices[0].blocks[-1].tool_use
    assert asked.choices[0].finish.reason == conversation_pb2.FINISH_REASON_TOOL_USE
    assert (use.name, use.input) == ("get_weather", '{"city":"get weather"}')
    result = ToolResult(tool_use_id=use.id, blocks=[Block(text="sunny")], is_error=True)
    answer = await answered(
        call(
            "get weather",
            Message(role=ASSISTANT, blocks=asked.choices[0].blocks),
            message(USER, Block(tool_result=result)),
            tools=[TOOL],
        )
    )
    assert texts(answer) == 'Sandbox echo: The tool failed with "sunny".'


async def test_media_of_the_message_and_of_all_its_results_are_named():
    picture = Block(media=Media(kind=conversation_pb2.MEDIA_KIND_IMAGE, data=PNG))
    result = Block(tool_result=ToolResult(tool_use_id="1", blocks=[picture, picture]))
    told = texts(await answered(call("hi", message(USER, result, picture, result))))
    assert told.count("PNG of 3x2 pixels") == 5


async def test_a_refusal_hidden_thinking_and_a_stop_string():
    refused = await answered(call("sandbox: refuse"))
    assert refused.choices[0].blocks[0].refusal == "Sandbox echo: I refuse, as I was asked to."
    assert refused.choices[0].finish.reason == conversation_pb2.FINISH_REASON_REFUSAL
    hidden = await answered(call("sandbox: redact", thinking=ThinkingConfig(effort="low")))
    thought = 'The sandbox thinks about what it was sent: "sandbox: redact".'
    assert hidden.choices[0].blocks[0].redacted_thinking == redact(thought)
    stopped = await answered(call("hi", stop_sequences=["said"]))
    assert stopped.choices[0].finish.reason == conversation_pb2.FINISH_REASON_STOP_SEQUENCE
    assert stopped.choices[0].finish.stop_sequence == "said"


@pytest.mark.parametrize(
    ("thinking", "thinks"),
    [
        (ThinkingConfig(), False),
        (ThinkingConfig(effort="none"), False),
        (ThinkingConfig(effort="high"), True),
        (ThinkingConfig(mode=ThinkingConfig.MODE_ENABLED, budget_tokens=1024), True),
        (ThinkingConfig(mode=ThinkingConfig.MODE_ADAPTIVE), True),
        (ThinkingConfig(mode=ThinkingConfig.MODE_DISABLED, effort="high"), False),
    ],
)
def test_thinking_is_wanted_or_not(thinking, thinks):
    assert requests.thinks(call("hi", thinking=thinking).request) is thinks


async def test_a_count_is_what_the_usage_will_say():
    asked = call(message(SYSTEM, "be brief"), "hi", tools=[TOOL])
    counted = await provider().count_tokens(asked)
    assert counted == (await answered(asked)).usage.input_tokens > 5


@pytest.mark.parametrize(
    "fields",
    [
        {"messages": [message(USER, Block(text="x" * 400, cache_control=b"{}"))]},
        {"messages": ["x" * 400], "tools": [Tool(name="", cache_control=b"{}")]},
    ],
)
async def test_what_is_marked_for_the_cache_is_counted_as_put_there(fields):
    usage = (await answered(call(*fields.pop("messages"), **fields))).usage
    assert (usage.input_tokens, usage.cache_creation_input_tokens) == (50, 50)


@pytest.mark.parametrize(
    ("model", "reason", "status", "waits"),
    [
        ("fail-429", errors_pb2.REASON_UPSTREAM_RATE_LIMITED, 429, 1),
        ("fail-500", errors_pb2.REASON_UPSTREAM_ERROR, 500, None),
        ("fail-529", errors_pb2.REASON_UPSTREAM_OVERLOADED, 529, 1),
        ("fail-401", errors_pb2.REASON_UPSTREAM_AUTH, 401, None),
        ("fail-context", errors_pb2.REASON_CONTEXT_LENGTH_EXCEEDED, 400, None),
        ("unknown", errors_pb2.REASON_MODEL_NOT_FOUND, 404, None),
    ],
)
async def test_a_failing_model_fails_as_a_provider_does(model, reason, status, waits):
    with pytest.raises(UpstreamError) as raised:
        await batches(call("hi", model=model))
    assert (raised.value.reason, raised.value.status) == (reason, status)
    if waits is not None:
        assert raised.value.retry_after_s == waits


async def test_text_refuses_images_in_words():
    picture = Block(media=Media(kind=conversation_pb2.MEDIA_KIND_IMAGE, data=PNG))
    with pytest.raises(UpstreamError, match="does not read images") as raised:
        await batches(call(message(USER, picture), model="text"))
    assert raised.value.reason == errors_pb2.REASON_UPSTREAM_REJECTED


async def seen_before(asked, error):
    seen = []
    with pytest.raises(error) as raised:
        async for batch in provider().stream(asked):
            seen += batch
    return seen, raised.value


async def test_a_cut_answer_breaks_after_text_has_come():
    seen, error = await seen_before(call("hi", model="cut", stream=True), UpstreamError)
    assert "".join(event.text for event in seen).startswith("Sandbox")
    assert error.reason == errors_pb2.REASON_UPSTREAM_CONNECTION
    with pytest.raises(UpstreamError):
        await provider().whole(call("hi", model="cut"))


async def test_a_late_failure_comes_after_text():
    seen, error = await seen_before(call("hi", model="fail-late", stream=True), UpstreamError)
    assert "".join(event.text for event in seen).startswith("Sandbox")
    assert error.reason == errors_pb2.REASON_UPSTREAM_OVERLOADED


@pytest.mark.parametrize(("model", "batches_before"), [("stall", 0), ("stall-open", 1)])
async def test_a_silent_model_waits_until_it_is_cancelled(model, batches_before):
    answer = provider().stream(call("hi", model=model, stream=True))
    for _ in range(batches_before):
        await anext(answer)
    waiting = asyncio.ensure_future(anext(answer))
    done, _ = await asyncio.wait([waiting], timeout=0)
    assert not done
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


@pytest.mark.parametrize("stream", [True, False])
async def test_slow_waits_before_each_piece(stream):
    waits = []

    async def sleep(seconds):
        waits.append(seconds)

    events = [e for batch in await batches(call("hi", model="slow", stream=stream), sleep=sleep)
              for e in batch]  # fmt: skip
    assert waits == [0.05] * sum(event.WhichOneof("kind") == "text" for event in events)
    assert len(waits) > 3


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        (
            {"tools": [Tool(opaque=True, extra=Opaque(json=b"{}"))]},
            "tools[0]",
        ),
        ({"tool_choice": ToolChoice(extra=Opaque(json=b"{}"))}, "tool_choice"),
        ({"thinking": ThinkingConfig(mode=ThinkingConfig.MODE_OPAQUE)}, "thinking"),
        ({"messages": [message(USER, Block(opaque=Opaque(json=b"{}")))]}, "messages[1].blocks[0]"),
    ],
)
async def test_what_only_a_provider_has_a_name_for_is_refused(fields, param):
    more = fields.pop("messages", [])
    with pytest.raises(GatewayError) as raised:
        await batches(call("hi", *more, **fields))
    assert raised.value.reason == errors_pb2.REASON_UNSUPPORTED
    assert raised.value.param == param
    assert raised.value.message.startswith(param)


@pytest.mark.parametrize("form", [b'{"type":"regex"}', b'"regex"'])
async def test_a_form_that_only_another_dialect_knows_is_refused(form):
    asked = call(
        "hi", extra=Opaque(json=b'{"response_format":' + form + b"}", required=["response_format"])
    )
    with pytest.raises(GatewayError) as refused:
        await batches(asked)
    assert refused.value.param == "extra.response_format"


async def test_fields_of_a_dialect_alone_are_reported_as_dropped():
    asked = call("hi", extra=Opaque(json=b'{"verbosity":"low","audio":null}'))
    await batches(asked)
    assert asked.dropped == ["extra.verbosity"]


async def test_a_schema_that_is_no_json_object_is_refused():
    form = OutputFormat(kind=OutputFormat.KIND_JSON_SCHEMA, schema=b"[")
    with pytest.raises(GatewayError) as raised:
        await batches(call("hi", output_format=form))
    assert raised.value.param == "output_format.schema"


def test_the_catalogue_has_the_promised_models_in_sight():
    listed = [name for name, facts in MODELS.items() if facts.listed]
    assert listed == ["echo", "text", "vision", "slow", "fail-429", "fail-500", "stall", "cut"]
    assert MODELS["text"].inputs == frozenset()
    assert MODELS["vision"].inputs == {conversation_pb2.MEDIA_KIND_IMAGE}
    assert conversation_pb2.MEDIA_KIND_AUDIO in MODELS["echo"].inputs


def test_thinking_sent_back_is_counted():
    thought = Block(thinking=Thinking(text="abcd" * 10))
    asked = call("abcd", message(ASSISTANT, thought, "abcd"), "abcd")
    assert requests.input_tokens(asked.request) == 13
