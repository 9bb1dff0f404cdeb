"""Values in request and response bodies, common to the dialects."""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import orjson

from services.sandbox.model.models import SandboxError

# Types of fields in requests: answers to one request, alternatives to a token.
Object = dict[str, Any]
Size = Annotated[int, msgspec.Meta(ge=0)]
Choices = Annotated[int, msgspec.Meta(ge=1, le=128)]
Alternatives = Annotated[int, msgspec.Meta(ge=0, le=20)]

# A cache mark; the sandbox ignores its content.
MARK = b"{}"

_MAX_UINT32 = (1 << 32) - 1
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_MISSING = re.compile(r"Object missing required field `(\w+)`")


def check_types(body: Mapping[str, Any], request_type: type[msgspec.Struct]) -> None:
    """Check that a body has the fields of a request type, with values of their types.

    Raises:
        SandboxError: a field is missing or has a wrong type; its path names the field.
    """
    try:
        msgspec.convert(body, request_type)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        path = [name or int(index) for name, index in _STEP.findall(place)]
        if missing := _MISSING.fullmatch(message):
            path.append(missing[1])
            message = "this field is required"
        raise SandboxError("invalid", 400, message, path=tuple(path)) from error


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
