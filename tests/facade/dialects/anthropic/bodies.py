"""Bodies to build requests from, and what reading them gives."""

from collections.abc import Sequence
from typing import Any

import orjson

from facade.dialects.anthropic import parse_messages
from gateway.inference.v1.inference_pb2 import GenerateRequest
from services.common.errors import GatewayError


def body(**fields: Any) -> dict[str, Any]:
    """Return the smallest valid body with `fields` set in it; a field given as ... is left out."""
    whole = {
        "model": "m",
        "max_tokens": 4096,
        "messages": [{"role": "user", "content": "Hi"}],
        **fields,
    }
    return {name: value for name, value in whole.items() if value is not ...}


def parsed(*, coding: bool = False, betas: Sequence[str] = (), **fields: Any) -> GenerateRequest:
    """Read the smallest valid body with `fields` set in it."""
    return parse_messages(orjson.dumps(body(**fields)), betas=betas, coding=coding).request


def refusal(*, coding: bool = False, **fields: Any) -> GatewayError:
    """Read a body that must be refused as invalid; give the error."""
    try:
        request = parsed(coding=coding, **fields)
    except GatewayError as error:
        assert error.http_status == 400
        assert error.code == "invalid_request"
        return error
    raise AssertionError(f"the body was taken: {request}")


def user(*blocks: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a conversation of one user message."""
    return [{"role": "user", "content": list(blocks)}]


def after_question(*blocks: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a conversation whose second message is the assistant's."""
    return [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": list(blocks)}]
