"""Values in bodies, which the dialects read and write alike."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

import orjson

from services.sandbox.model.models import SandboxError

# A mark for the cache; the sandbox does not look at what it says.
MARK = b"{}"

_MAX_UINT32 = (1 << 32) - 1


def decode(data: str) -> bytes:
    """Decode base64.

    Raises:
        SandboxError: it is not base64.
    """
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError) as error:
        raise SandboxError(
            "invalid", 400, "The media of the request is not valid base64"
        ) from error


def to_json(value: Any) -> bytes:
    """Return a value of a body as the JSON that it was."""
    return orjson.dumps(value)


def bounded(tokens: int | None) -> int | None:
    """Return a number of tokens as the canonical request can hold it."""
    return None if tokens is None else min(tokens, _MAX_UINT32)


def server_sent(event: Mapping[str, Any]) -> bytes:
    """Return a server-sent event with the name that its `type` says."""
    return b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), orjson.dumps(event))
