"""Whole messages that are passed through unchanged, or read at once. Pure.

Only answers whose translation would change nothing significant: text only, with every field that
the facade would write. Everything unknown is translated. Two differences are ignored: nulls, and
usage details that are zero.
"""

from typing import Annotated, Any, Literal

from msgspec import DecodeError, Meta, Struct
from msgspec.json import Decoder

from gateway.conversation.v1.conversation_pb2 import Usage
from gateway.inference.v1.inference_pb2 import Event
from services.common.passed_answer import PassedAnswer, TokenCounts
from services.inference.providers.anthropic.parts import (
    OF_MESSAGES,
    REASONS,
    MalformedError,
    set_unnamed_usage,
)
from services.inference.providers.bounds import MAX_TOKENS, name_of

Json = dict[str, Any]

_OF_MESSAGES = frozenset(OF_MESSAGES)
_TEXT = frozenset({"type", "text"})

_ID = "msg_"
_REASONS = (
    *("end_turn", "max_tokens", "stop_sequence"),
    *("refusal", "pause_turn", "model_context_window_exceeded"),
)

_Filled = Annotated[str, Meta(min_length=1)]
_Count = Annotated[int, Meta(ge=0, lt=MAX_TOKENS)]


class _Text(Struct, gc=False):
    type: Literal["text"]
    text: _Filled


class _OutputDetails(Struct, forbid_unknown_fields=True, gc=False):
    thinking_tokens: _Count


class _Usage(Struct, gc=False):
    input_tokens: _Count
    output_tokens: _Count
    cache_read_input_tokens: _Count
    cache_creation_input_tokens: _Count
    output_tokens_details: _OutputDetails | None = None


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
    error: None = None


_MESSAGE = Decoder(_Message)


def passed_answer(body: bytes) -> PassedAnswer | None:
    """Return a whole answer that is passed through, None if it has to be looked at further.

    Most are found by this one scan of their JSON; `passthrough` finds the others.
    """
    try:
        message = _MESSAGE.decode(body)
        # Strings that are not built are not checked to be UTF-8.
        if not body.isascii():
            body.decode()
    except (DecodeError, UnicodeDecodeError, RecursionError):
        return None
    matched = message.stop_sequence
    if not message.id.startswith(_ID):
        return None
    if not matched if message.stop_reason == "stop_sequence" else matched is not None:
        return None
    usage = message.usage
    if usage.cache_creation_input_tokens:
        return None  # how long they last is billed
    details = usage.output_tokens_details
    return PassedAnswer(
        body,
        TokenCounts(
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_input_tokens,
            0,
            0 if details is None else details.thinking_tokens,
        ),
    )


def passthrough(body: bytes, message: Json) -> PassedAnswer | None:
    """Return a whole answer that is passed through, or None if it must be translated.

    Args:
        body: the unparsed response.
        message: the parsed body, not an error.
    """
    event = _read(message)
    if event is None:
        return None
    usage = event.whole.usage
    if usage.cache_creation_input_tokens:
        # How long they last, which is billed.
        try:
            set_unnamed_usage(usage, message["usage"])
        except MalformedError:
            return None
    return PassedAnswer(body, usage)


def whole_of_text(message: Json) -> Event | None:
    """Return an answer of one text that could be passed through as its translation.

    None if it must be translated a part at a time.

    Args:
        message: as `passthrough` takes it.
    """
    event = _read(message)
    if event is None:
        return None
    content = message["content"]
    if len(content) != 1 or content[0].keys() != _TEXT:
        return None
    if any(value is not None for name, value in message.items() if name not in _OF_MESSAGES):
        return None
    whole = event.whole
    try:
        whole.id, whole.model = name_of(message["id"]), name_of(message["model"])
        set_unnamed_usage(whole.usage, message["usage"])
    except (ValueError, MalformedError):
        return None
    choice = whole.choices.add()
    choice.blocks.add(text=content[0]["text"])
    finish = choice.finish
    finish.reason = REASONS[message["stop_reason"]]
    if matched := message["stop_sequence"]:
        finish.stop_sequence = matched
    return event


def _read(message: Json) -> Event | None:
    """Return an event with the usage of an answer that could be passed through, else None."""
    content = message.get("content")
    if not (_has_usual_head(message) and _has_usual_end(message) and isinstance(content, list)):
        return None
    for block in content:
        if not _is_text(block):
            return None
    event = Event()
    if not _read_usage(message.get("usage"), event.whole.usage):
        return None
    return event


def _has_usual_head(message: Json) -> bool:
    name, model = message.get("id"), message.get("model")
    return (
        isinstance(name, str)
        and name.startswith(_ID)
        and isinstance(model, str)
        and model != ""
        and message.get("type") == "message"
        and message.get("role") == "assistant"
    )


def _has_usual_end(message: Json) -> bool:
    matched = message.get("stop_sequence", 0)  # null, and not missing
    reason = message.get("stop_reason")
    if reason == "stop_sequence":
        return isinstance(matched, str) and matched != ""
    return matched is None and reason in _REASONS


def _is_text(block: Any) -> bool:
    """Return whether a block is text; empty text would be dropped."""
    if not isinstance(block, dict) or block.get("type") != "text":
        return False
    text = block.get("text")
    return isinstance(text, str) and text != ""


def _read_usage(report: Any, usage: Usage) -> bool:
    """Read token counts; return whether translation would not change them."""
    if not isinstance(report, dict):
        return False
    details = report.get("output_tokens_details")
    thoughts: Any = 0
    if details is not None:
        if not isinstance(details, dict) or details.keys() != {"thinking_tokens"}:
            return False
        thoughts = details["thinking_tokens"]
    read, written = report.get("input_tokens", -1), report.get("output_tokens", -1)
    cache_read = report.get("cache_read_input_tokens", -1)
    cache_written = report.get("cache_creation_input_tokens", -1)
    for count in (read, written, cache_read, cache_written, thoughts):
        if type(count) is not int or not 0 <= count < MAX_TOKENS:
            return False
    usage.input_tokens = read
    usage.output_tokens = written
    usage.cache_creation_input_tokens = cache_written
    usage.cache_read_input_tokens = cache_read
    usage.reasoning_tokens = thoughts
    return True
