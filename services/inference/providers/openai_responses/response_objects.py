"""Response objects as they are handed on to callers of the same dialect. Pure.

One begins with an id, and says that nothing is kept of it, as is so of those that the gateway asks
for: `background` and `store` are false, `previous_response_id` is null, and there is no
`conversation`. Who hands one on writes the gateway's id, and what the gateway keeps of it.
"""

import re
from typing import Any, Literal

import orjson
from msgspec import DecodeError, Raw, Struct
from msgspec.json import Decoder

from gateway.conversation.v1.conversation_pb2 import Usage
from services.common.passed_answer import PassedAnswer, TokenCounts
from services.inference.providers.openai_responses.event_types import MALFORMED
from services.inference.providers.openai_responses.usage import read_usage, usual_counts
from services.inference.providers.request_fields import Json

# How an object begins, up to its id.
_BEGINNING = re.compile(rb'\s*\{\s*"id"\s*:\s*"')
_REPLACED = ("id", "conversation")
_UNKEPT = {"background": False, "previous_response_id": None, "store": False}


class _Item(Struct, gc=False):
    type: str


class _Answer(Struct, gc=False):
    """What is read of a whole answer."""

    id: str
    object: Literal["response"]
    status: Literal["completed", "incomplete"]
    model: str
    output: list[_Item]
    usage: Raw
    error: None = None
    background: Any = None
    conversation: Any = None
    previous_response_id: Any = ""
    store: Any = None


_ANSWER = Decoder(_Answer)


def passthrough(answer: bytes) -> PassedAnswer | None:
    """Return a whole answer that is passed through, or None if it is not as OpenAI writes it.

    Args:
        answer: JSON.
    """
    try:
        if not answer.isascii():
            answer.decode()  # texts that are not built are not checked to be UTF-8
        read = _ANSWER.decode(answer)
        report = bytes(read.usage)
        usage: TokenCounts | Usage | None = usual_counts(report)
        if usage is None:
            usage = Usage()
            read_usage(orjson.loads(report), usage)
        if not (
            read.background is False
            and read.conversation is None
            and read.previous_response_id is None
            and read.store is False
            and _begins_with(read.id, answer, 0)
        ):
            answer = orjson.dumps(unkept(orjson.loads(answer)))
    except (DecodeError, RecursionError, *MALFORMED):
        return None
    return PassedAnswer(answer, usage)


def is_unkept(data: bytes, response: Json, at: int) -> bool:
    """Return whether a response object, whose JSON is at a place of a text, is handed on as it is.

    Args:
        data: the text.
        response: the object.
        at: where it begins.
    """
    return (
        response.get("background") is False
        and response.get("conversation") is None
        and response.get("previous_response_id", "") is None
        and response.get("store") is False
        and _begins_with(response.get("id"), data, at)
    )


def _begins_with(given_id: object, data: bytes, at: int) -> bool:
    """Return whether the object at a place of a text begins with an id."""
    beginning = _BEGINNING.match(data, at)
    if beginning is None or not isinstance(given_id, str):
        return False
    return data.startswith(b'%b"' % given_id.encode(), beginning.end())


def unkept(response: Json) -> Json:
    """Return a response object as it is handed on."""
    rest = {name: value for name, value in response.items() if name not in _REPLACED}
    return {"id": "", **rest, **_UNKEPT}
