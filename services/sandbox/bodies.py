"""Values in request and response bodies, common to the dialects."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import orjson

from services.sandbox.model.models import SandboxError

# A cache mark; the sandbox ignores its content.
MARK = b"{}"

_MAX_UINT32 = (1 << 32) - 1


def decode(data: str) -> bytes:
    """Decode base64.

    Raises:
        SandboxError: the data is not base64.
    """
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise SandboxError(
            "invalid", 400, "The media of the request is not valid base64"
        ) from error


def to_json(value: Any) -> bytes:
    """Serialize a value of a parsed body."""
    return orjson.dumps(value)


def bounded(tokens: int | None) -> int | None:
    """Return a token count, limited to the canonical request's range."""
    return None if tokens is None else min(tokens, _MAX_UINT32)


def server_sent(event: Mapping[str, Any]) -> bytes:
    """Serialize a server-sent event; its `type` is its name."""
    return b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), orjson.dumps(event))
