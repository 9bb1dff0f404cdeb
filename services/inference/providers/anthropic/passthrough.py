"""Whole messages that are passed through unchanged, or read in one step. Pure.

Only answers that translation would not change significantly: text only, with every field that the
facade would write. An answer with anything unknown is translated. Two differences are ignored:
nulls, and usage details that are zero.
"""

from typing import Annotated, Any, Literal

import orjson
from msgspec import DecodeError, Meta, Struct
from msgspec.json import Decoder

from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.inference.v1.inference_pb2 import Event
from services.common.messages.passthrough_answer import PassthroughAnswer, TokenCounts
from services.common.messages.plain_answer import PlainAnswer, PlainChoice
from services.inference.providers.anthropic.parts import (
    OF_MESSAGES,
    MalformedError,
    add_unknown_usage,
)
from services.inference.providers.bounds import MAX_NAME, MAX_TOKENS
from services.inference.providers.finish_reasons import ANTHROPIC_REASONS

Json = dict[str, Any]

_OF_MESSAGES = frozenset(OF_MESSAGES)
_TEXT = frozenset({"type", "text"})

_ID = "msg_"

_Filled = Annotated[str, Meta(min_length=1)]
_Count = Annotated[int, Meta(ge=0, lt=MAX_TOKENS)]


class _Text(Struct, gc=False):
    type: Literal["text"]
    text: _Filled
    citations: Any = None


class _OutputDetails(Struct, forbid_unknown_fields=True, gc=False):
    thinking_tokens: _Count


class _Iteration(Struct, gc=False):
    type: Literal["message"]


class _Usage(Struct, gc=False):
    input_tokens: _Count
    output_tokens: _Count
    cache_read_input_tokens: _Count
    cache_creation_input_tokens: _Count
    output_tokens_details: _OutputDetails | None = None
    # All others have tokens that the counts above do not include.
    iterations: list[_Iteration] | None = None


class _Message(Struct, gc=False):
    id: str
    type: Literal["message"]
    role: Literal["assistant"]
    model: _Filled
    content: list[_Text]
    stop_reason: Literal[
        "end_turn",
        "max_tokens",
        "stop_sequence",
        "refusal",
        "pause_turn",
        "model_context_window_exceeded",
    ]
    stop_sequence: str | None
    usage: _Usage
    stop_details: Any = None
    error: None = None


_MESSAGE = Decoder(_Message)


def passthrough_answer(body: bytes) -> PassthroughAnswer | None:
    """Return a whole answer to pass through, None if it must be translated.

    Args:
        body: the response.
    """
    read = _read(body)
    return None if read is None else PassthroughAnswer(body, read[1])


def plain_answer(body: bytes) -> PlainAnswer | None:
    """Return a plain answer of one text for a caller of another dialect.

    None if it must be translated; the argument as for `passthrough_answer`.
    """
    read = _read(body)
    if read is None:
        return None
    message, usage = read
    content = message.content
    if len(content) != 1 or content[0].citations or message.stop_details:
        return None
    if len(message.id) > MAX_NAME or len(message.model) > MAX_NAME:
        return None
    choice = PlainChoice(
        content[0].text, ANTHROPIC_REASONS[message.stop_reason], message.stop_sequence or ""
    )
    return PlainAnswer(message.id, message.model, [choice], usage)


def whole_of_text(body: bytes, message: Json) -> Event | None:
    """Return the translation of a plain answer as one event, None if it takes several.

    Args:
        body: the response.
        message: the parsed body.
    """
    plain = plain_answer(body)
    if plain is None or message["content"][0].keys() != _TEXT:
        return None
    if any(value is not None for name, value in message.items() if name not in _OF_MESSAGES):
        return None
    whole = plain.response()
    try:
        add_unknown_usage(whole.usage, message["usage"])
    except MalformedError:
        return None
    return Event(whole=whole)


def _read(body: bytes) -> tuple[_Message, TokenCounts | Usage] | None:
    """Return an answer that translation would not change, and its usage; else None.

    The usage is a `Usage` message if it has cache writes, whose price depends on their lifetime.
    """
    try:
        message = _MESSAGE.decode(body)
        # The decoder does not check that skipped strings are UTF-8.
        if not body.isascii():
            body.decode()
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    matched = message.stop_sequence
    if not message.id.startswith(_ID):
        return None
    if not matched if message.stop_reason == "stop_sequence" else matched is not None:
        return None
    reported = message.usage
    details = reported.output_tokens_details
    counts = TokenCounts(
        reported.input_tokens,
        reported.output_tokens,
        reported.cache_read_input_tokens,
        reported.cache_creation_input_tokens,
        0 if details is None else details.thinking_tokens,
    )
    if not reported.cache_creation_input_tokens:
        return message, counts
    usage = counts.message()
    try:
        add_unknown_usage(usage, orjson.loads(body)["usage"])
    except (MalformedError, orjson.JSONDecodeError):
        return None
    return message, usage
