"""The bytes that the benchmark sends: 1 KB requests, 1.2 KB answers, streams of 200 events."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

Dialect = Literal["openai", "anthropic"]

DIALECTS: tuple[Dialect, ...] = ("openai", "anthropic")
# Who calls, and what the provider speaks.
PAIRS: tuple[tuple[Dialect, Dialect], ...] = (
    ("openai", "openai"),
    ("anthropic", "openai"),
    ("openai", "anthropic"),
    ("anthropic", "anthropic"),
)
EVENTS = 200
BRIEF_EVENTS = 24
# Every piece of text that a stream carries begins so; nothing else does.
MARK = b"~"

_REQUEST_BYTES = 1024
_ANSWER_BYTES = 1200
PATHS: dict[Dialect, str] = {
    "openai": "/beta/v1/chat/completions",
    "anthropic": "/beta/v1/messages",
}


def request(
    dialect: Dialect,
    model: str,
    key: str,
    *,
    stream: bool = False,
    fields: Mapping[str, Any] = MappingProxyType({}),
) -> bytes:
    """Return a whole HTTP request for a server that speaks `dialect`, as a caller sends it.

    `fields` come on top of what every request has, its size included.
    """
    content = body(model, stream=stream, fields=fields)
    head = (
        f"POST {PATHS[dialect]} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\n"
        "anthropic-version: 2026-10-21\r\n"
        f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def body(
    model: str, *, stream: bool = False, fields: Mapping[str, Any] = MappingProxyType({})
) -> bytes:
    """Return the JSON of a request, which both dialects read; see `request`."""
    content: dict[str, Any] = {
        "model": model,
        "max_tokens": 512,
        "messages": [{"role": "user", "content": ""}],
    }
    if stream:
        content["stream"] = True
    missing = _REQUEST_BYTES - len(encoded(content))
    content["messages"][0]["content"] = ("What is a gateway? " * 60)[:missing]
    return encoded(content | fields)


def answer(dialect: Dialect) -> bytes:
    """Return the JSON of a whole answer."""
    text = ("A gateway stands between callers and models. " * 30)[:_ANSWER_BYTES]
    missing = _ANSWER_BYTES - len(encoded(_whole(dialect, text)))
    return encoded(_whole(dialect, text[: len(text) + missing]))


def stream(dialect: Dialect, events: int = EVENTS) -> Sequence[bytes]:
    """Return the parts of a streamed answer.

    The first part ends with the first piece of text; each other one is an event.
    Together they hold `events` events.
    """
    return _openai_stream(events) if dialect == "openai" else _anthropic_stream(events)


def pieces(dialect: Dialect, events: int = EVENTS) -> int:
    """Return how many pieces of text a stream of that many events carries."""
    return sum(part.count(MARK) for part in stream(dialect, events))


def encoded(content: Any) -> bytes:
    """Return a value as JSON, without spaces."""
    return json.dumps(content, separators=(",", ":")).encode()


def _whole(dialect: Dialect, text: str) -> dict[str, Any]:
    if dialect == "openai":
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": "bench",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text, "refusal": None},
                    "logprobs": None,
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 200, "completion_tokens": 220, "total_tokens": 420},
        }
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "bench",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": 200,
            "output_tokens": 220,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
        },
    }


def _openai_stream(events: int) -> list[bytes]:
    def chunk(delta: dict[str, Any] | None, reason: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        content: dict[str, Any] = {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000,
            "model": "bench",
            "choices": [] if delta is None else [choice],
            "usage": None,
        }
        if delta is None:
            content["usage"] = {
                "prompt_tokens": 200,
                "completion_tokens": 196,
                "total_tokens": 396,
            }
        return b"data: " + encoded(content) + b"\n\n"

    role = chunk({"role": "assistant", "content": "", "refusal": None})
    words = [chunk({"content": f"~{number:03} "}) for number in range(events - 4)]
    tail = [chunk({}, "stop"), chunk(None), b"data: [DONE]\n\n"]
    return [role + words[0], *words[1:], *tail]


def _anthropic_stream(events: int) -> list[bytes]:
    def event(kind: str, **fields: Any) -> bytes:
        return f"event: {kind}\ndata: ".encode() + encoded({"type": kind, **fields}) + b"\n\n"

    def word(number: int) -> bytes:
        delta = {"type": "text_delta", "text": f"~{number:03} "}
        return event("content_block_delta", index=0, delta=delta)

    message = _whole("anthropic", "") | {"content": [], "stop_reason": None}
    block = {"type": "text", "text": ""}
    head = event("message_start", message=message)
    head += event("content_block_start", index=0, content_block=block)
    words = [word(number) for number in range(events - 5)]
    tail = [
        event("content_block_stop", index=0),
        event(
            "message_delta",
            delta={"stop_reason": "end_turn", "stop_sequence": None},
            usage={"output_tokens": 195},
        ),
        event("message_stop"),
    ]
    return [head + words[0], *words[1:], *tail]
