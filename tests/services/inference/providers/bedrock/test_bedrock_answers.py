"""Answers of Converse and ConverseStream: each block, stop reason, count and exception."""

import base64
from typing import Any

import orjson
import pytest

from gateway.conversation.v1.conversation_pb2 import FinishReason
from gateway.errors.v1.errors_pb2 import Reason
from gateway.inference.v1.inference_pb2 import GenerateResponse
from services.common.errors import UpstreamError
from services.inference.providers.bedrock.errors import classify
from services.inference.stream.accumulator import whole_of
from tests.services.inference.providers.bedrock.calls import (
    START,
    USAGE,
    answer_of,
    delta,
    events_of,
    reader_of,
    stop,
    stream_of,
)

PNG = base64.b64encode(b"\x89PNG a picture").decode()
TOO_LONG = "Input is too long for requested model."
NO_MODEL = "The provided model identifier is invalid."
HIDDEN = base64.b64encode(b"hidden").decode()


def whole(*content: Any, **fields: Any) -> GenerateResponse:
    out: list[Any] = []
    message = {"role": "assistant", "content": list(content)}
    answer = {"output": {"message": message}, "stopReason": "end_turn", "usage": USAGE, **fields}
    reader_of().read_whole(answer, out)
    return whole_of([out])


BLOCKS = {
    "text": ({"text": "Hello"}, [delta({"text": "Hel"}), delta({"text": "lo"})]),
    "thinking": (
        {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}},
        [
            delta({"reasoningContent": {"text": "Hm."}}),
            delta({"reasoningContent": {"signature": "c2ln"}}),
        ],
    ),
    "hidden thinking": (
        {"reasoningContent": {"redactedContent": HIDDEN}},
        [delta({"reasoningContent": {"redactedContent": HIDDEN}})],
    ),
    "call": (
        {"toolUse": {"toolUseId": "t1", "name": "f", "input": {"a": 1}}},
        [
            (
                "contentBlockStart",
                {"start": {"toolUse": {"toolUseId": "t1", "name": "f"}}, "contentBlockIndex": 0},
            ),
            delta({"toolUse": {"input": '{"a"'}}),
            delta({"toolUse": {"input": ":1}"}}),
        ],
    ),
    "image": (
        {"image": {"format": "png", "source": {"bytes": PNG}}},
        [
            (
                "contentBlockStart",
                {"start": {"image": {"format": "png"}}, "contentBlockIndex": 0},
            ),
            delta({"image": {"source": {"bytes": PNG}}}),
        ],
    ),
    "citation": (
        {
            "citationsContent": {
                "content": [{"text": "So."}],
                "citations": [{"title": "A", "location": {"web": {"url": "https://a.example"}}}],
            }
        },
        [
            delta({"text": "So."}),
            delta({"citation": {"title": "A", "location": {"web": {"url": "https://a.example"}}}}),
        ],
    ),
    "tool of the server": (
        {"toolUse": {"toolUseId": "t", "name": "nova_grounding", "type": "server_tool_use"}},
        [
            (
                "contentBlockStart",
                {
                    "start": {
                        "toolUse": {
                            "toolUseId": "t",
                            "name": "nova_grounding",
                            "type": "server_tool_use",
                        }
                    },
                    "contentBlockIndex": 0,
                },
            ),
            delta({"toolUse": {"input": "{}"}}),
        ],
    ),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_are_alike_whole_and_streamed(name: str):
    block, events = BLOCKS[name]
    streamed = answer_of(*events, ("contentBlockStop", {"contentBlockIndex": 0}), stop())
    assert whole(block).choices == streamed.choices
    (read,) = streamed.choices[0].blocks
    assert read.WhichOneof("kind") == {
        "text": "text",
        "thinking": "thinking",
        "hidden thinking": "redacted_thinking",
        "call": "tool_use",
        "image": "media",
        "citation": "text",
        "tool of the server": "opaque",
    }.get(name)
    if name == "hidden thinking":
        assert read.redacted_thinking == HIDDEN
    if name == "citation":
        assert [(one.url, one.end_index) for one in read.citations] == [("https://a.example", 3)]


def test_hidden_thinking_in_pieces_is_joined():
    pieces = [base64.b64encode(part).decode() for part in (b"hid", b"den")]
    deltas = [delta({"reasoningContent": {"redactedContent": piece}}) for piece in pieces]
    assert answer_of(*deltas, stop()).choices[0].blocks[0].redacted_thinking == HIDDEN


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", "END_TURN"),
        ("tool_use", "TOOL_USE"),
        ("max_tokens", "MAX_TOKENS"),
        ("stop_sequence", "STOP_SEQUENCE"),
        ("model_context_window_exceeded", "CONTEXT_WINDOW"),
        ("guardrail_intervened", "REFUSAL"),
        ("content_filtered", "REFUSAL"),
        ("a_newer_one", "END_TURN"),
    ],
)
def test_stop_reasons(reason: str, expected: str):
    answer = answer_of(delta({"text": "Sorry, blocked."}), stop(reason))
    assert FinishReason.Name(answer.choices[0].finish.reason) == f"FINISH_REASON_{expected}"
    assert answer.choices[0].blocks[0].text == "Sorry, blocked."


@pytest.mark.parametrize("reason", ["malformed_model_output", "malformed_tool_use"])
def test_output_that_bedrock_cannot_read_fails(reason: str):
    with pytest.raises(UpstreamError) as raised:
        answer_of(delta({"text": "x"}), stop(reason))
    assert raised.value.reason == Reason.REASON_UPSTREAM_ERROR


def test_usage_has_the_cache_and_its_lifetimes():
    usage = {
        **USAGE,
        "cacheReadInputTokens": 7,
        "cacheWriteInputTokens": 5,
        "cacheDetails": [{"ttl": "1h", "inputTokens": 4}, {"ttl": "5m", "inputTokens": 1}],
    }
    read = whole({"text": "x"}, usage=usage).usage
    assert (read.input_tokens, read.output_tokens) == (3, 2)
    assert (read.cache_read_input_tokens, read.cache_creation_input_tokens) == (7, 5)
    assert orjson.loads(read.extra.json)["cache_creation"]["ephemeral_1h_input_tokens"] == 4


@pytest.mark.parametrize(
    ("name", "message", "expected"),
    [
        ("throttlingException", "Too many requests", "UPSTREAM_RATE_LIMITED"),
        ("validationException", "The field is blank", "UPSTREAM_REJECTED"),
        (
            "validationException",
            "Input is too long for requested model.",
            "CONTEXT_LENGTH_EXCEEDED",
        ),
        ("modelStreamErrorException", "failed", "UPSTREAM_ERROR"),
        ("internalServerException", "failed", "UPSTREAM_ERROR"),
        ("serviceUnavailableException", "busy", "UPSTREAM_ERROR"),
    ],
)
def test_exceptions_within_a_stream(name: str, message: str, expected: str):
    sent = stream_of(START, delta({"text": "Hel"}))
    with pytest.raises(UpstreamError) as raised:
        events_of([sent, stream_of((name, {"message": message}), kind="exception")])
    assert Reason.Name(raised.value.reason) == f"REASON_{expected}"


@pytest.mark.parametrize(
    ("status", "name", "message", "expected"),
    [
        (429, "ThrottlingException", "slow down", "UPSTREAM_RATE_LIMITED"),
        (400, "ServiceQuotaExceededException", "quota", "UPSTREAM_RATE_LIMITED"),
        (429, "ModelNotReadyException", "loading", "UPSTREAM_OVERLOADED"),
        (408, "ModelTimeoutException", "slow", "UPSTREAM_TIMEOUT"),
        (424, "ModelErrorException", "failed", "UPSTREAM_ERROR"),
        (503, "ServiceUnavailableException", "busy", "UPSTREAM_ERROR"),
        (400, "ValidationException", "The field is blank", "UPSTREAM_REJECTED"),
        (
            400,
            "ValidationException",
            "Input is too long for requested model.",
            "CONTEXT_LENGTH_EXCEEDED",
        ),
        (
            400,
            "ValidationException",
            "The provided model identifier is invalid.",
            "MODEL_NOT_FOUND",
        ),
        (404, "ResourceNotFoundException", "no such model", "MODEL_NOT_FOUND"),
        (403, "AccessDeniedException", "You don't have access", "UPSTREAM_AUTH"),
        (403, "ExpiredTokenException", "expired", "UPSTREAM_AUTH"),
    ],
)
def test_errors_by_their_names(status: int, name: str, message: str, expected: str):
    body = orjson.dumps({"message": message})
    headers = {"x-amzn-errortype": f"{name}:http://internal.amazon.com/coral/"}
    for head, sent in (
        (headers, body),
        ({}, orjson.dumps({"__type": f"com.amazon#{name}", "message": message})),
    ):
        error = classify("bedrock", status, head, sent, now=lambda: 0)
        assert Reason.Name(error.reason) == f"REASON_{expected}"


def test_a_wrong_clock_is_said_and_no_token_is_kept():
    body = {"message": "Signature expired: 2026. The Canonical String … x-amz-security-token:T0KEN"}
    head = {"x-amzn-errortype": "InvalidSignatureException"}
    error = classify("bedrock", 403, head, orjson.dumps(body), now=lambda: 0)
    assert "clock" in error.message
    assert error.cause is not None and "T0KEN" not in error.cause() + error.body


@pytest.mark.parametrize(
    "events",
    [
        [delta({"text": "x"})],
        [START, START],
        [START, delta({"toolUse": {"input": "x"}})],
        [START, delta({"text": "x"}, -1)],
        [START, stop(), delta({"text": "x"})],
        [START, ("messageStop", {})],
        [START, stop(), ("metadata", {"usage": {"inputTokens": -1}})],
    ],
)
def test_malformed_streams_are_errors(events: list[Any]):
    with pytest.raises(UpstreamError):
        events_of([stream_of(*events)])


def test_a_stream_without_its_end_is_cut_off():
    with pytest.raises(UpstreamError) as raised:
        events_of([stream_of(START, delta({"text": "x"}))])
    assert raised.value.reason == Reason.REASON_UPSTREAM_CONNECTION


def test_unknown_events_and_deltas_are_passed_over():
    assert not answer_of(("newer", {}), delta({"new": 1}), stop()).choices[0].blocks


def test_names_of_tools_are_the_callers():
    use = {"toolUse": {"toolUseId": "t", "name": "f_1", "input": {}}}
    message = {"content": [use]}
    out: list[Any] = []
    answer = {"output": {"message": message}, "stopReason": "tool_use", "usage": USAGE}
    reader_of({"f_1": "the tool"}).read_whole(answer, out)
    assert whole_of([out]).choices[0].blocks[0].tool_use.name == "the tool"
