"""Answers, events and errors of providers in both dialects, as bytes and JSON; no I/O."""

from collections.abc import Sequence
from typing import Any, Literal

import orjson

Dialect = Literal["openai", "anthropic"]
Json = dict[str, Any]

INPUT_TOKENS = 11

_ANTHROPIC_ERRORS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def words_of(text: str) -> list[str]:
    """Cut a text into words that join to it again."""
    first, *later_words = text.split(" ")
    return [first, *(f" {word}" for word in later_words)]


def output_tokens(text: str) -> int:
    """Return the tokens that an answer counts for: its words."""
    return len(words_of(text))


def whole(dialect: Dialect, model: str, text: str, reason: str = "") -> bytes:
    """Return the body of a whole answer; `reason` is the dialect's word for its end."""
    if dialect == "openai":
        message = {"role": "assistant", "content": text, "refusal": None}
        choice = {"index": 0, "message": message, "finish_reason": reason or "stop"}
        head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model}
        return orjson.dumps({**head, "choices": [choice], "usage": _openai_usage(text)})
    answered = _anthropic_message(model)
    answered["content"] = [{"type": "text", "text": text}]
    answered["stop_reason"] = reason or "end_turn"
    answered["usage"]["output_tokens"] = output_tokens(text)
    return orjson.dumps(answered)


def events(dialect: Dialect, model: str, text: str, reason: str = "") -> Sequence[bytes]:
    """Return a streamed answer: what opens it, an event a word, and what ends it.

    The end is three events: the reason, the usage or the last of it, the terminal marker.
    """
    words = words_of(text)
    if dialect == "openai":
        head: Json = {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": model,
        }

        def chunk(delta: Json, finish: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "finish_reason": finish}
            return _data({**head, "choices": [choice]})

        return [
            chunk({"role": "assistant", "content": ""}),
            *(chunk({"content": word}) for word in words),
            chunk({}, reason or "stop"),
            _data({**head, "choices": [], "usage": _openai_usage(text)}),
            b"data: [DONE]\n\n",
        ]
    block = {"type": "text", "text": ""}
    opening = _named({"type": "message_start", "message": _anthropic_message(model)})
    opening += _named({"type": "content_block_start", "index": 0, "content_block": block})
    end = {"stop_reason": reason or "end_turn", "stop_sequence": None}
    usage = {"output_tokens": output_tokens(text)}
    return [
        opening,
        *(
            _named(
                {
                    "type": "content_block_delta",
                    "index": 0,
                    "delta": {"type": "text_delta", "text": word},
                }
            )
            for word in words
        ),
        _named({"type": "content_block_stop", "index": 0}),
        _named({"type": "message_delta", "delta": end, "usage": usage}),
        _named({"type": "message_stop"}),
    ]


def malformed(dialect: Dialect) -> bytes:
    """Return an event whose JSON ends too early."""
    return b'data: {"choices":[{"del\n\n' if dialect == "openai" else b'data: {"type":"content_\n\n'


def error(dialect: Dialect, status: int, message: str, code: str = "") -> bytes:
    """Return the body of a failure."""
    if dialect == "openai":
        kind = "invalid_request_error" if status < 500 else "server_error"
        detail = {"message": message, "type": kind, "param": None, "code": code or None}
        return orjson.dumps({"error": detail})
    kind = _ANTHROPIC_ERRORS.get(status, "api_error")
    return orjson.dumps({"type": "error", "error": {"type": kind, "message": message}})


def error_event(dialect: Dialect, status: int, message: str) -> bytes:
    """Return a failure as an event of a stream that has begun."""
    body = error(dialect, status, message)
    return b"data: " + body + b"\n\n" if dialect == "openai" else b"event: error\n" + _data(body)


def _anthropic_message(model: str) -> Json:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": INPUT_TOKENS, "output_tokens": 1},
    }


def _openai_usage(text: str) -> Json:
    written = output_tokens(text)
    return {
        "prompt_tokens": INPUT_TOKENS,
        "completion_tokens": written,
        "total_tokens": INPUT_TOKENS + written,
    }


def _data(value: Json | bytes) -> bytes:
    body = value if isinstance(value, bytes) else orjson.dumps(value)
    return b"data: " + body + b"\n\n"


def _named(value: Json) -> bytes:
    return f"event: {value['type']}\n".encode() + _data(value)
