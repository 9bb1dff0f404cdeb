"""Bodies of responses for tests, and how they are read."""

import json
from typing import Any

import pytest

from facade.dialects.parsed_request import ParsedRequest
from facade.dialects.responses import parse_request
from gateway.conversation.v1.conversation_pb2 import DIALECT_RESPONSES, Message, Opaque
from gateway.errors.v1 import errors_pb2
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import GatewayError

FUNCTION = {"type": "function", "name": "look", "parameters": {"type": "object"}}


def body(**fields: Any) -> bytes:
    """Return a body that is valid but for `fields`; a field given as `...` is left out."""
    request_fields = {"model": "m", "input": "hello"} | fields
    written = {name: value for name, value in request_fields.items() if value is not ...}
    return json.dumps(written, separators=(",", ":")).encode()


def parse(**fields: Any) -> ParsedRequest:
    return parse_request(body(**fields))


def request(**fields: Any) -> GenerateRequest:
    return parse(**fields).request


def messages(*items: Any) -> list[Message]:
    """Return what becomes of input items."""
    return list(request(input=list(items)).messages)


def refused(**fields: Any) -> GatewayError:
    """Return the error that answers a body; its message names the field too."""
    with pytest.raises(GatewayError) as caught:
        parse_request(body(**fields))
    error = caught.value
    assert error.reason == errors_pb2.REASON_INVALID_REQUEST
    assert error.param in error.message
    return error


def json_of(opaque: Opaque) -> Any:
    """Return the JSON of an opaque value, an object in the dialect of responses."""
    assert opaque.dialect == DIALECT_RESPONSES
    return json.loads(opaque.json)
