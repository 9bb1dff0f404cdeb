"""Bodies of chat completions for tests, and how they are read."""

import json
from typing import Any

import pytest

from facade.dialects.openai import parse_chat
from facade.dialects.parsed_request import ParsedRequest
from gateway.conversation.v1.conversation_pb2 import DIALECT_OPENAI, Message, Opaque
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import GatewayError

HELLO = {"role": "user", "content": "hello"}


def body(**fields: Any) -> bytes:
    """Return a body that is valid but for `fields`; a field given as `...` is left out."""
    request_fields = {"model": "m", "messages": [HELLO]} | fields
    written = {name: value for name, value in request_fields.items() if value is not ...}
    return json.dumps(written, separators=(",", ":")).encode()


def parse(**fields: Any) -> ParsedRequest:
    return parse_chat(body(**fields))


def request(**fields: Any) -> GenerateRequest:
    return parse(**fields).request


def message(**fields: Any) -> Message:
    """Return what becomes of one message."""
    (only,) = request(messages=[fields]).messages
    return only


def refused(**fields: Any) -> GatewayError:
    """Return the error that answers a body; its message names the field too."""
    return refused_bytes(body(**fields))


def refused_bytes(raw: bytes) -> GatewayError:
    with pytest.raises(GatewayError) as caught:
        parse_chat(raw)
    error = caught.value
    assert error.reason == errors_pb2.REASON_INVALID_REQUEST
    assert error.param in error.message
    return error


def json_of(opaque: Opaque) -> Any:
    """Return the JSON of an opaque value, an object in OpenAI's dialect."""
    assert opaque.dialect == DIALECT_OPENAI
    return json.loads(opaque.json)
