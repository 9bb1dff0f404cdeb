"""JSON of gRPC callers that is nested more deeply than a request's body can be."""

from types import ModuleType

import pytest

from gateway.conversation.v1 import conversation_pb2
from gateway.conversation.v1.conversation_pb2 import Dialect, Opaque
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import OutputFormat
from services.common.errors import GatewayError
from services.inference.providers.base import Call
from tests.services.inference.providers import anthropic_calls, gemini_calls, openai_calls
from tests.services.inference.providers.openai_responses import responses_calls

DEEP = b'{"a":' * 300 + b"1" + b"}" * 300
# Nested more deeply than Python calls functions.
DEEPER = b'{"a":' * 1_000 + b"1" + b"}" * 1_000


def call_with_unknown_field(calls: ModuleType, dialect: Dialect.ValueType) -> Call:
    extra = Opaque(dialect=dialect, json=b'{"unknown":%b}' % DEEP)
    call: Call = calls.call_of(calls.says(conversation_pb2.ROLE_USER, "hi"), dialect=dialect)
    call.request.extra.CopyFrom(extra)
    return call


def call_with_schema() -> Call:
    schema = b'{"type":"object","properties":%b}' % DEEP
    return gemini_calls.call_of(
        gemini_calls.says(gemini_calls.USER, "hi"), tools=[gemini_calls.tool(input_schema=schema)]
    )


def call_with_format() -> Call:
    form = OutputFormat(kind=OutputFormat.KIND_JSON_SCHEMA, schema=DEEPER)
    return anthropic_calls.call_of(
        anthropic_calls.says(anthropic_calls.USER, "hi"), output_format=form
    )


def call_with_covered_fields() -> Call:
    path = ".".join(["a"] * 1_100)
    call = gemini_calls.call_of(gemini_calls.says(gemini_calls.USER, "hi"))
    call.request.extra.CopyFrom(Opaque(json=DEEPER, covered_paths=[path]))
    return call


def test_fields_that_are_covered_far_below_are_left_out() -> None:
    assert gemini_calls.body_of(call_with_covered_fields())


@pytest.mark.parametrize(
    ("calls", "call"),
    [
        pytest.param(
            openai_calls,
            call_with_unknown_field(openai_calls, conversation_pb2.DIALECT_OPENAI),
            id="chat",
        ),
        pytest.param(
            anthropic_calls,
            call_with_unknown_field(anthropic_calls, conversation_pb2.DIALECT_ANTHROPIC),
            id="messages",
        ),
        pytest.param(
            responses_calls,
            call_with_unknown_field(responses_calls, conversation_pb2.DIALECT_RESPONSES),
            id="responses",
        ),
        pytest.param(gemini_calls, call_with_schema(), id="gemini"),
        pytest.param(anthropic_calls, call_with_format(), id="format"),
    ],
)
def test_a_body_that_is_too_deep_is_invalid(calls: ModuleType, call: Call) -> None:
    with pytest.raises(GatewayError) as raised:
        calls.body_of(call)
    assert raised.value.reason == errors_pb2.REASON_INVALID_REQUEST
    assert raised.value.message == "the request is nested too deeply"
