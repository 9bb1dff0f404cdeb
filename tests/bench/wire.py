"""The bytes that the benchmark sends: 1 KB requests, 1.2 KB answers, streams of 200 events."""

import base64
import json
import struct
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from tests.bench import responses

Dialect = Literal["openai", "anthropic", "responses"]

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
    "responses": "/beta/v1/responses",
}
EMBEDDINGS_PATH = "/beta/v1/embeddings"
_TEXTS = 100
_DIMENSIONS = 1536


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
    as_response = dialect == "responses"
    content = body(model, stream=stream, fields=fields, as_response=as_response)
    return _posted(PATHS[dialect], key, content)


def body(
    model: str,
    *,
    stream: bool = False,
    fields: Mapping[str, Any] = MappingProxyType({}),
    as_response: bool = False,
) -> bytes:
    """Return the JSON of a request; see `request`.

    Chats and messages are the same; a request of a response is another one.
    """
    message = {"role": "user", "content": ""}
    content: dict[str, Any] = {"model": model, "max_tokens": 512, "messages": [message]}
    if as_response:
        content = {"model": model, "max_output_tokens": 512, "input": [message], "store": False}
    if stream:
        content["stream"] = True
    missing = _REQUEST_BYTES - len(encoded(content))
    message["content"] = ("What is a gateway? " * 60)[:missing]
    return encoded(content | fields)


def embeddings_request(model: str, key: str) -> bytes:
    """Return a whole HTTP request for the embeddings of a hundred texts, in base64."""
    texts = [f"{number}: What is a gateway? " * 4 for number in range(_TEXTS)]
    content = encoded({"model": model, "input": texts, "encoding_format": "base64"})
    return _posted(EMBEDDINGS_PATH, key, content)


def embeddings_answer() -> bytes:
    """Return the JSON of the embeddings of a hundred texts."""
    vectors = [
        base64.b64encode(struct.pack("<f", number / _TEXTS) * _DIMENSIONS).decode()
        for number in range(_TEXTS)
    ]
    data = [
        {"object": "embedding", "index": index, "embedding": vector}
        for index, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": 2000, "total_tokens": 2000}
    return encoded({"object": "list", "data": data, "model": "bench", "usage": usage})


def answer(dialect: Dialect) -> bytes:
    """Return the JSON of a whole answer; a response says as much as a chat does."""
    if dialect == "responses":
        chat_text = json.loads(answer("openai"))["choices"][0]["message"]["content"]
        return encoded(_whole(dialect, chat_text))
    text = ("A gateway stands between callers and models. " * 30)[:_ANSWER_BYTES]
    missing = _ANSWER_BYTES - len(encoded(_whole(dialect, text)))
    return encoded(_whole(dialect, text[: len(text) + missing]))


def stream(dialect: Dialect, events: int = EVENTS) -> Sequence[bytes]:
    """Return the parts of a streamed answer.

    The first part ends with the first piece of text; each other one is an event.
    Together they hold `events` events.
    """
    if dialect == "responses":
        return _responses_stream(events)
    return _openai_stream(events) if dialect == "openai" else _anthropic_stream(events)


def pieces(dialect: Dialect, events: int = EVENTS, caller: Dialect | None = None) -> int:
    """Return how many pieces of text a stream carries.

    Args:
        dialect: of the provider.
        events: how many it sends.
        caller: the dialect of the stream, the provider's own by default.
    """
    words = events - responses.EVENTS_BESIDE_DELTAS
    if dialect != "responses":
        words = sum(part.count(MARK) for part in stream(dialect, events))
    return words * responses.TOLD if (caller or dialect) == "responses" else words


def encoded(content: Any) -> bytes:
    """Return a value as JSON, without spaces."""
    return json.dumps(content, separators=(",", ":")).encode()


def _posted(path: str, key: str, content: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\n"
        "anthropic-version: 2026-10-21\r\n"
        f"content-type: application/json\r\ncontent-length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


def _whole(dialect: Dialect, text: str) -> dict[str, Any]:
    if dialect == "responses":
        return responses.whole(text)
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


def _responses_stream(events: int) -> list[bytes]:
    def event(fields: Mapping[str, Any]) -> bytes:
        return b"event: %b\ndata: %b\n\n" % (fields["type"].encode(), encoded(fields))

    words = events - responses.EVENTS_BESIDE_DELTAS
    head, deltas, tail = responses.stream([f"~{number:03} " for number in range(words)])
    first, *later = map(event, deltas)
    return [b"".join(map(event, head)) + first, *later, *map(event, tail)]


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
