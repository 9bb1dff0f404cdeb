"""The images that a forwarded request asks for, and the characters that it lets speak. Pure."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

from gateway.inference.v1.inference_pb2 import ForwardRequest
from services.common.text.texts import parse_digits
from services.inference.pricing.price import Counts, Unit

IMAGES: Final = frozenset(
    {
        ForwardRequest.OPERATION_IMAGE_GENERATION,
        ForwardRequest.OPERATION_IMAGE_EDIT,
        ForwardRequest.OPERATION_IMAGE_VARIATION,
    }
)
_MOST: Final = 1_000


def pieces_of(request: ForwardRequest) -> Counts:
    """Return the images or characters of the answer to a request, by unit."""
    if request.operation in IMAGES:
        return {Unit.IMAGE: min(max(1, _images(request)), _MOST)}
    if request.operation == ForwardRequest.OPERATION_SPEECH:
        text = _fields(request).get("input")
        return {Unit.CHARACTER: len(text)} if isinstance(text, str) else {}
    return {}


def _images(request: ForwardRequest) -> int:
    if request.json:
        number = _fields(request).get("n")
        return number if type(number) is int else 1
    for part in request.parts:
        if part.name == "n":
            return parse_digits(part.content.decode(errors="replace")) or 1
    return 1


def _fields(request: ForwardRequest) -> Mapping[str, Any]:
    try:
        fields = orjson.loads(request.json)
    except orjson.JSONDecodeError:
        return {}
    return fields if isinstance(fields, dict) else {}
