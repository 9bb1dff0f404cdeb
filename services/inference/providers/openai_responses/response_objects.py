"""Response objects, as they are passed on to callers of the same dialect. Pure.

A passed-on object begins with its id and has no state stored at the provider: `background` and
`store` are false, `previous_response_id` is null, and there is no `conversation`. Answers to the
gateway's own requests usually are like this. The facade then sets the gateway's id and the state
that the gateway stores.
"""

import re
from collections.abc import Sequence
from typing import Any, Literal, TypeVar

import orjson
from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from gateway.conversation.v1.conversation_pb2 import Usage
from services.common.messages.passthrough_answer import PassthroughAnswer, TokenCounts
from services.inference.providers.opaque_json import Json
from services.inference.providers.openai_responses.event_types import MALFORMED, OVER
from services.inference.providers.openai_responses.output import KINDS
from services.inference.providers.openai_responses.usage import UsageReport, read_usage

# The start of an object, up to its id: as serialized in events, and in general.
_USUALLY = b'{"id":"'
_BEGINNING = re.compile(rb'\s*\{\s*"id"\s*:\s*"')
_REPLACED = ("id", "conversation")
_NO_STATE = {"background": False, "previous_response_id": None, "store": False}


class OutputItem(Struct, gc=False):
    """The parsed fields of an output item."""

    type: str


class _ResponseObject(Struct, kw_only=True, gc=False):
    """The parsed fields of a response object, without its usage.

    They are in OpenAI's order, in which the decoder finds them without a search.
    """

    id: str
    object: Literal["response"]
    status: str
    background: Any = None
    conversation: Any = None
    error: None = None
    incomplete_details: Any = None
    model: str
    output: list[OutputItem]
    previous_response_id: Any = ""
    store: Any = None

    def is_stateless(self, data: bytes) -> bool:
        """Return whether the object with this JSON can be passed on unchanged."""
        begin = len(_USUALLY) if data.startswith(_USUALLY) else _begin_of_id(data)
        return (
            begin > 0
            and self.background is False
            and self.conversation is None
            and self.previous_response_id is None
            and self.store is False
            and data.startswith(b'%b"' % self.id.encode(), begin)
        )


class ResponseObject(_ResponseObject, kw_only=True, gc=False):
    """The parsed fields of a response object with a usual usage report, or without one."""

    usage: UsageReport | None = None


_Object = TypeVar("_Object", bound=_ResponseObject)


def _begin_of_id(data: bytes) -> int:
    """Return the offset of the id in an object that begins with it, else 0."""
    beginning = _BEGINNING.match(data)
    return 0 if beginning is None else beginning.end()


_USUAL, _WITHOUT_USAGE = Decoder(ResponseObject), Decoder(_ResponseObject)


def read_object(data: bytes) -> ResponseObject | None:
    """Parse a response object; return None if it does not have OpenAI's structure or usage."""
    return _decode(_USUAL, data)


def _decode(decoder: Decoder[_Object], data: bytes) -> _Object | None:
    try:
        if not data.isascii():
            data.decode()  # the decoder does not check that skipped strings are UTF-8
        return decoder.decode(data)
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None


def passthrough(answer: bytes) -> PassthroughAnswer | None:
    """Return a whole answer to pass through, or None if it does not have OpenAI's structure.

    Args:
        answer: the response's JSON.
    """
    usual = read_object(answer)
    response = _decode(_WITHOUT_USAGE, answer) if usual is None else usual
    if response is None or response.status not in OVER:
        return None
    usage: TokenCounts | Usage
    try:
        # The decoder skips values that other parsers refuse, such as numbers beyond floats.
        parsed = orjson.loads(answer)
        check_object(parsed)
        if usual is None:
            usage = Usage()
            read_usage(parsed["usage"], usage)
        elif usual.usage is None:
            return None
        else:
            usage = usual.usage.counts()
        if not response.is_stateless(answer) or _lacks_counts(parsed["usage"]):
            answer = orjson.dumps(without_state(parsed))
    except MALFORMED:
        return None
    return PassthroughAnswer(answer, usage)


def compacted_answer(answer: bytes) -> PassthroughAnswer | None:
    """Return a compacted conversation to pass through; None if it is not one.

    Args:
        answer: the response's JSON.
    """
    usage = Usage()
    try:
        parsed = orjson.loads(answer)
        if parsed["object"] != "response.compaction":
            return None
        check_items(parsed["output"])
        read_usage(parsed["usage"], usage)
    except MALFORMED:
        return None
    return PassthroughAnswer(answer, usage)


def check_object(response: Json) -> None:
    """Check the parts of the object of a complete response that clients read.

    Raises:
        ValueError, LookupError, TypeError, AttributeError: one of them is malformed.
    """
    if response["object"] != "response" or response["status"] not in OVER:
        raise ValueError("no complete response")
    if response.get("error") is not None:
        raise ValueError("an error beside an answer")
    if not isinstance(response["model"], str) or not isinstance(response["output"], list):
        raise ValueError("no response")
    check_items(response["output"])


def check_items(output: Sequence[Json]) -> None:
    """Check the types of the items of a response, and the texts in them.

    Raises:
        ValueError, LookupError, TypeError, AttributeError: one of them is malformed.
    """
    for item in output:
        _check_text(item["type"])
        content = item["content"] if item["type"] == "message" else []
        if not isinstance(content, list):
            raise ValueError("no content")
        for part in content:
            _check_text(part["type"])
            if part["type"] in KINDS:
                _check_text(part["text" if part["type"] == "output_text" else "refusal"])
        if item["type"] == "function_call":
            for name in ("call_id", "name", "arguments"):
                _check_text(item[name])


def _check_text(value: object) -> None:
    if not isinstance(value, str):
        raise ValueError("no text")


def without_state(response: Json) -> Json:
    """Return a response object as it is passed on: with an empty id, without stored state.

    Usage without counts is null, since clients add counts up.
    """
    others = {name: value for name, value in response.items() if name not in _REPLACED}
    if _lacks_counts(others.get("usage")):
        others["usage"] = None
    return {"id": "", **others, **_NO_STATE}


def _lacks_counts(usage: object) -> bool:
    """Return whether a usage is reported without the counts of tokens."""
    return usage is not None and not (
        isinstance(usage, dict)
        and all(
            type(usage.get(name)) is int and usage[name] >= 0
            for name in ("input_tokens", "output_tokens")
        )
    )
